//! A GPU by CUDA's driver: its context, which is libtorch's own, modules of kernels in it, and launches. Compiled
//! everywhere, never yet run on a card.

use std::ffi::{CString, c_void};
use std::sync::Arc;

use cudarc::driver::{DriverError, result, sys};

use super::arch::Arch;
use super::error::DeviceError;

/// A GPU. Kernels and libtorch work in the same context of it, the primary one, so they see the same memory.
#[derive(Debug)]
pub struct Gpu {
    device: sys::CUdevice,
    context: sys::CUcontext,
    arch: Arch,
    shape: GpuShape,
}

/// What launches are sized by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuShape {
    pub multiprocessors: u32,
    /// Threads that one multiprocessor keeps at a time.
    pub threads_each: u32,
}

impl GpuShape {
    /// Blocks of this many threads that fill the card, if the registers of its threads allow that.
    pub fn filling_blocks(self, block_size: u32) -> u32 {
        self.multiprocessors * (self.threads_each / block_size).max(1)
    }
}

// SAFETY: the driver's handles may be used from any thread; each use makes their context that of its thread first.
unsafe impl Send for Gpu {}
// SAFETY: as above; nothing in here is changed after it was made.
unsafe impl Sync for Gpu {}

impl Gpu {
    /// The GPU with this number, as libtorch counts them.
    ///
    /// # Errors
    /// Without NVIDIA's driver, or without such a GPU.
    pub fn open(ordinal: i32) -> Result<Arc<Gpu>, DeviceError> {
        // SAFETY: looks for a library by name. cudarc panics on any call if it is missing, so ask first.
        if !unsafe { sys::is_culib_present() } {
            return Err(DeviceError::NoDriver);
        }
        result::init().map_err(DeviceError::driver("starting"))?;
        let device = result::device::get(ordinal).map_err(DeviceError::driver("opening the GPU"))?;
        let (arch, shape) = (arch(device)?, shape(device)?);
        // SAFETY: `device` comes from the call above. What is retained here is released in `drop`.
        let context = unsafe { result::primary_ctx::retain(device) }
            .map_err(DeviceError::driver("taking the GPU's primary context"))?;
        Ok(Arc::new(Gpu { device, context, arch, shape }))
    }

    /// Its compute capability.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    pub fn shape(&self) -> GpuShape {
        self.shape
    }

    /// Makes its context that of this thread, until the guard is dropped.
    pub(super) fn enter(&self) -> Result<Entered, DeviceError> {
        let before = result::ctx::get_current().map_err(DeviceError::driver("asking for the context"))?;
        // SAFETY: the context is retained while `self` lives.
        unsafe { result::ctx::set_current(self.context) }
            .map_err(DeviceError::driver("entering the context"))?;
        Ok(Entered { before })
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // SAFETY: the counterpart of the retain in `open`. A failure here has nobody to go to.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

/// Gives the thread back the context that it had: libtorch's current device is part of it.
#[derive(Debug)]
pub(super) struct Entered {
    before: Option<sys::CUcontext>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        // SAFETY: was this thread's context before; null, which is none, is allowed too.
        let _ = unsafe { result::ctx::set_current(self.before.unwrap_or(std::ptr::null_mut())) };
    }
}

fn attribute(device: sys::CUdevice, attribute: sys::CUdevice_attribute) -> Result<u32, DeviceError> {
    // SAFETY: the device comes from `result::device::get`.
    let value = unsafe { result::device::get_attribute(device, attribute) };
    let value = value.map_err(DeviceError::driver("asking for a property of the GPU"))?;
    Ok(u32::try_from(value).unwrap_or(0))
}

pub(super) fn arch(device: sys::CUdevice) -> Result<Arch, DeviceError> {
    use sys::CUdevice_attribute::{
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as MAJOR,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as MINOR,
    };
    Ok(Arch::new(attribute(device, MAJOR)?, attribute(device, MINOR)?))
}

fn shape(device: sys::CUdevice) -> Result<GpuShape, DeviceError> {
    use sys::CUdevice_attribute::{
        CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR as THREADS,
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT as COUNT,
    };
    Ok(GpuShape {
        multiprocessors: attribute(device, COUNT)?.max(1),
        threads_each: attribute(device, THREADS)?,
    })
}

/// Kernels in a GPU's memory.
#[derive(Debug)]
pub(super) struct Module {
    gpu: Arc<Gpu>,
    raw: sys::CUmodule,
}

// SAFETY: as for `Gpu`.
unsafe impl Send for Module {}
// SAFETY: as for `Gpu`.
unsafe impl Sync for Module {}

/// A kernel of a module, which must outlive it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Function(sys::CUfunction);

// SAFETY: as for `Gpu`.
unsafe impl Send for Function {}

/// Blocks, threads of each, and the stream that they are queued on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Launch {
    pub blocks: u32,
    pub threads: u32,
    pub stream: sys::CUstream,
}

impl Module {
    /// Has the driver assemble the PTX for this GPU.
    pub fn load(gpu: &Arc<Gpu>, ptx: &str) -> Result<Module, DeviceError> {
        let text = c_string(ptx)?;
        // SAFETY: a text that ends with a NUL.
        unsafe { Module::load_image(gpu, text.as_ptr().cast()) }
    }

    /// Takes machine code for this GPU, as the compiler makes it.
    pub fn load_code(gpu: &Arc<Gpu>, code: &[u8]) -> Result<Module, DeviceError> {
        // SAFETY: an object file, which says itself how long it is.
        unsafe { Module::load_image(gpu, code.as_ptr().cast()) }
    }

    /// # Safety
    /// The image is a whole one of a kind that the driver takes. It is read during the call only.
    unsafe fn load_image(gpu: &Arc<Gpu>, image: *const c_void) -> Result<Module, DeviceError> {
        let _entered = gpu.enter()?;
        // SAFETY: as the caller promises.
        let raw = unsafe { result::module::load_data(image) };
        let raw = raw.map_err(DeviceError::driver("loading a kernel"))?;
        Ok(Module { gpu: gpu.clone(), raw })
    }

    pub fn function(&self, name: &str) -> Result<Function, DeviceError> {
        let _entered = self.gpu.enter()?;
        let name = c_string(name)?;
        // SAFETY: the module is loaded.
        let function = unsafe { result::module::get_function(self.raw, name) };
        function.map(Function).map_err(DeviceError::driver("looking for a kernel"))
    }

    /// Queues a kernel of this module. `arguments` point to the values, which are copied before this returns.
    ///
    /// # Safety
    /// 1. The function comes from this module.
    /// 2. The arguments are, in number, type and order, those of the kernel.
    /// 3. The stream is one of the GPU's context, or null.
    /// 4. The memory that the kernel works on stays until it has run, and nothing else on another stream uses it.
    pub unsafe fn launch(
        &self,
        function: Function,
        launch: Launch,
        arguments: &mut [*mut c_void],
    ) -> Result<(), DeviceError> {
        let _entered = self.gpu.enter()?;
        let (grid, block) = ((launch.blocks, 1, 1), (launch.threads, 1, 1));
        // SAFETY: as the caller promises.
        unsafe { result::launch_kernel(function.0, grid, block, 0, launch.stream, arguments) }
            .map_err(DeviceError::driver("launching a kernel"))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if let Ok(_entered) = self.gpu.enter() {
            // SAFETY: loaded by `load`, and not used again. A failure here has nobody to go to.
            let _ = unsafe { result::module::unload(self.raw) };
        }
    }
}

fn c_string(text: &str) -> Result<CString, DeviceError> {
    let invalid = DriverError(sys::cudaError_enum::CUDA_ERROR_INVALID_VALUE);
    CString::new(text)
        .map_err(|_| DeviceError::Driver { doing: "reading a text with a NUL", reason: invalid })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_fills_the_card() {
        let h100 = GpuShape { multiprocessors: 132, threads_each: 2048 };
        assert_eq!(h100.filling_blocks(256), 132 * 8);
        assert_eq!(GpuShape { multiprocessors: 10, threads_each: 1536 }.filling_blocks(1024), 10);
        assert_eq!(GpuShape { multiprocessors: 1, threads_each: 0 }.filling_blocks(256), 1);
    }

    #[test]
    fn without_a_driver_the_error_says_what_to_do() {
        // SAFETY: looks for a library by name.
        if unsafe { sys::is_culib_present() } {
            return;
        }
        let message = Gpu::open(0).unwrap_err().to_string();
        assert!(message.contains("libcuda.so.1") && message.contains("--device cpu"), "{message}");
    }
}
