//! A GPU by CUDA's driver: its context, which is libtorch's own, modules of kernels in it, and launches. Compiled
//! everywhere, never yet run on a card.

use std::ffi::{CString, c_void};
use std::sync::Arc;

use cudarc::driver::sys::{CUfunction, CUmodule, CUresult};

use super::arch::Arch;
use super::driver::{
    CallFailed, Code, Context, Device, Entered, LAUNCH_KERNEL, MODULE_FUNCTION, MODULE_LOAD, MODULE_UNLOAD,
    Stream, init,
};
use super::error::DeviceError;

/// A GPU. Kernels and libtorch work in the same context of it, the primary one, so they see the same memory.
#[derive(Debug)]
pub struct Gpu {
    context: Context,
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

impl Gpu {
    /// The GPU with this number, as libtorch counts them.
    ///
    /// # Errors
    /// Without NVIDIA's driver, or without such a GPU.
    pub fn open(ordinal: i32) -> Result<Arc<Gpu>, DeviceError> {
        init().map_err(DeviceError::driver("starting"))?;
        let device = Device::get(ordinal).map_err(DeviceError::driver("opening the GPU"))?;
        let (arch, shape) = (arch(device)?, shape(device)?);
        let context = Context::retain(device);
        let context = context.map_err(DeviceError::driver("taking the GPU's primary context"))?;
        Ok(Arc::new(Gpu { context, arch, shape }))
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
        self.context.enter().map_err(DeviceError::driver("entering the GPU's context"))
    }
}

pub(super) fn arch(device: Device) -> Result<Arch, DeviceError> {
    let (major, minor) = device.compute_capability().map_err(DeviceError::driver(PROPERTY))?;
    Ok(Arch::new(count(major), count(minor)))
}

fn shape(device: Device) -> Result<GpuShape, DeviceError> {
    let multiprocessors = device.multiprocessors().map_err(DeviceError::driver(PROPERTY))?;
    let threads_each = device.threads_each().map_err(DeviceError::driver(PROPERTY))?;
    Ok(GpuShape { multiprocessors: count(multiprocessors).max(1), threads_each: count(threads_each) })
}

const PROPERTY: &str = "asking for a property of the GPU";

fn count(property: i32) -> u32 {
    u32::try_from(property).unwrap_or(0)
}

/// Kernels in a GPU's memory.
#[derive(Debug)]
pub(super) struct Module {
    gpu: Arc<Gpu>,
    raw: CUmodule,
}

// SAFETY: as for `Context`.
unsafe impl Send for Module {}
// SAFETY: as for `Context`.
unsafe impl Sync for Module {}

/// A kernel of a module, which must outlive it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Function(CUfunction);

// SAFETY: as for `Context`.
unsafe impl Send for Function {}

/// Blocks, threads of each, and the stream that they are queued on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Launch {
    pub blocks: u32,
    pub threads: u32,
    pub stream: Stream,
}

impl Module {
    /// Has the driver assemble the PTX for this GPU.
    pub fn load(gpu: &Arc<Gpu>, ptx: &str) -> Result<Module, DeviceError> {
        let text = c_string(ptx, MODULE_LOAD.name())?;
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
        let mut raw = std::ptr::null_mut();
        // SAFETY: as the caller promises; writes one pointer to a place of ours.
        let loaded = MODULE_LOAD.call(|load| unsafe { load(&raw mut raw, image) });
        loaded.map_err(DeviceError::driver("loading a kernel"))?;
        Ok(Module { gpu: gpu.clone(), raw })
    }

    pub fn function(&self, name: &str) -> Result<Function, DeviceError> {
        let _entered = self.gpu.enter()?;
        let name = c_string(name, MODULE_FUNCTION.name())?;
        let mut function = std::ptr::null_mut();
        // SAFETY: the module is loaded; reads a text that ends with a NUL, and writes one pointer to a place of ours.
        let found = MODULE_FUNCTION.call(|find| unsafe { find(&raw mut function, self.raw, name.as_ptr()) });
        found.map_err(DeviceError::driver("looking for a kernel"))?;
        Ok(Function(function))
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
        let Launch { blocks, threads, stream } = launch;
        let (arguments, none) = (arguments.as_mut_ptr(), std::ptr::null_mut());
        // SAFETY: as the caller promises.
        let launched = LAUNCH_KERNEL.call(|launch| unsafe {
            launch(function.0, blocks, 1, 1, threads, 1, 1, 0, stream.cast(), arguments, none)
        });
        launched.map_err(DeviceError::driver("launching a kernel"))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if let Ok(_entered) = self.gpu.enter() {
            // SAFETY: loaded by `load`, and not used again. A failure here has nobody to go to.
            let _ = MODULE_UNLOAD.call(|unload| unsafe { unload(self.raw) });
        }
    }
}

/// For a call that would take a text with a NUL in it for a shorter one.
fn c_string(text: &str, call: &'static str) -> Result<CString, DeviceError> {
    const INVALID: Code = CUresult::CUDA_ERROR_INVALID_VALUE as Code;
    let refused = |_| DeviceError::Driver {
        doing: "reading a text with a NUL",
        reason: CallFailed { call, code: INVALID },
    };
    CString::new(text).map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::super::driver::is_loadable;
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
        let none = Gpu::open(0).err().filter(|error| matches!(error, DeviceError::NoDriver(_)));
        assert_eq!(none.is_none(), is_loadable(), "{none:?}");
        if let Some(message) = none.map(|none| none.to_string()) {
            assert!(message.contains("libcuda.so.1") && message.contains("--device cpu"), "{message}");
        }
    }
}
