//! The functions of the driver, as cuda.h declares them but for its enums, which are integers to C.

use std::ffi::{c_char, c_int, c_uchar, c_uint, c_void};
use std::sync::OnceLock;

use cudarc::driver::sys::{CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUmodule, CUstream};

use super::error::{CallFailed, DriverError, NoDriver};
use super::library::library;

/// What every function returns; 0 is success.
pub type Code = c_int;

/// A function of the driver, by its names, of which the newest comes first. An old driver has the last one alone.
pub struct Function<F> {
    names: &'static [&'static str],
    found: OnceLock<Result<F, NoDriver>>,
}

impl<F: Copy> Function<F> {
    /// # Safety
    /// cuda.h declares the functions of these names so.
    const unsafe fn named(names: &'static [&'static str]) -> Function<F> {
        Function { names, found: OnceLock::new() }
    }

    /// Looks it up, if that was not done yet.
    ///
    /// # Errors
    /// Without a driver, or with one that lacks it.
    pub fn get(&self) -> Result<F, NoDriver> {
        // SAFETY: as was promised when this was made.
        let found = self.found.get_or_init(|| unsafe { library()?.function(self.names) });
        found.clone()
    }

    /// Has `with` call it, and takes any code but 0 for a failure.
    pub fn call(&self, with: impl FnOnce(F) -> Code) -> Result<(), DriverError> {
        match with(self.get()?) {
            0 => Ok(()),
            code => Err(CallFailed { call: self.name(), code }.into()),
        }
    }

    /// Without the version that NVIDIA keeps in it, of which programs in C do not see anything.
    pub fn name(&self) -> &'static str {
        self.names.last().map_or("", |name| name.trim_end_matches("_v2"))
    }
}

macro_rules! functions {
    ($($static:ident = $($name:literal)or+ ($($argument:ty),*);)*) => {
        $(
            // SAFETY: cuda.h declares it so.
            pub static $static: Function<unsafe extern "C" fn($($argument),*) -> Code> = unsafe {
                Function::named(&[$($name),+])
            };
        )*
    };
}

functions! {
    GET_ERROR_NAME = "cuGetErrorName" (Code, *mut *const c_char);
    GET_ERROR_STRING = "cuGetErrorString" (Code, *mut *const c_char);

    INIT = "cuInit" (c_uint);
    DRIVER_GET_VERSION = "cuDriverGetVersion" (*mut c_int);
    DEVICE_GET_COUNT = "cuDeviceGetCount" (*mut c_int);
    DEVICE_GET = "cuDeviceGet" (*mut CUdevice, c_int);
    DEVICE_GET_NAME = "cuDeviceGetName" (*mut c_char, c_int, CUdevice);
    DEVICE_GET_ATTRIBUTE = "cuDeviceGetAttribute" (*mut c_int, c_int, CUdevice);
    DEVICE_TOTAL_MEM = "cuDeviceTotalMem_v2" (*mut usize, CUdevice);
    DEVICE_GET_PCI_BUS_ID = "cuDeviceGetPCIBusId" (*mut c_char, c_int, CUdevice);

    PRIMARY_CTX_RETAIN = "cuDevicePrimaryCtxRetain" (*mut CUcontext, CUdevice);
    PRIMARY_CTX_RELEASE = "cuDevicePrimaryCtxRelease_v2" or "cuDevicePrimaryCtxRelease" (CUdevice);
    CTX_GET_CURRENT = "cuCtxGetCurrent" (*mut CUcontext);
    CTX_SET_CURRENT = "cuCtxSetCurrent" (CUcontext);
    MEM_GET_INFO = "cuMemGetInfo_v2" (*mut usize, *mut usize);

    EVENT_CREATE = "cuEventCreate" (*mut CUevent, c_uint);
    EVENT_RECORD = "cuEventRecord" (CUevent, CUstream);
    EVENT_QUERY = "cuEventQuery" (CUevent);
    EVENT_SYNCHRONIZE = "cuEventSynchronize" (CUevent);
    EVENT_ELAPSED_TIME = "cuEventElapsedTime_v2" or "cuEventElapsedTime" (*mut f32, CUevent, CUevent);
    EVENT_DESTROY = "cuEventDestroy_v2" (CUevent);
    STREAM_IS_CAPTURING = "cuStreamIsCapturing" (CUstream, *mut c_int);
    EXCHANGE_CAPTURE_MODE = "cuThreadExchangeStreamCaptureMode" (*mut c_int);

    MODULE_LOAD = "cuModuleLoadData" (*mut CUmodule, *const c_void);
    MODULE_FUNCTION = "cuModuleGetFunction" (*mut CUfunction, CUmodule, *const c_char);
    MODULE_UNLOAD = "cuModuleUnload" (CUmodule);
    LAUNCH_KERNEL = "cuLaunchKernel" (
        CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CUstream, *mut *mut c_void, *mut *mut c_void
    );
    MEM_ALLOC = "cuMemAlloc_v2" (*mut CUdeviceptr, usize);
    MEM_SET = "cuMemsetD8_v2" (CUdeviceptr, c_uchar, usize);
    MEM_TO_DEVICE = "cuMemcpyHtoD_v2" (CUdeviceptr, *const c_void, usize);
    MEM_TO_HOST = "cuMemcpyDtoH_v2" (*mut c_void, CUdeviceptr, usize);
    MEM_FREE = "cuMemFree_v2" (CUdeviceptr);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_told_by_the_name_that_programs_call_it_by() {
        assert_eq!((EVENT_ELAPSED_TIME.name(), MEM_GET_INFO.name()), ("cuEventElapsedTime", "cuMemGetInfo"));
        assert_eq!((PRIMARY_CTX_RELEASE.name(), INIT.name()), ("cuDevicePrimaryCtxRelease", "cuInit"));
    }
}
