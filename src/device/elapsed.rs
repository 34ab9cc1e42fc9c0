//! The time between two events, by whichever of its names the driver has the function.

use std::sync::OnceLock;

use cudarc::driver::{DriverError, sys};

type ElapsedTime = unsafe extern "C" fn(*mut f32, sys::CUevent, sys::CUevent) -> sys::CUresult;

/// Whether the driver, which must be there, can tell the time between events.
pub fn tells_elapsed_time() -> bool {
    elapsed_time().is_some()
}

/// Milliseconds from `begin` to `end`.
///
/// # Safety
/// Both events must be alive. That they were recorded is checked by the driver.
pub unsafe fn elapsed_ms(begin: sys::CUevent, end: sys::CUevent) -> Result<f32, DriverError> {
    let Some(elapsed_time) = elapsed_time() else {
        return Err(DriverError(sys::CUresult::CUDA_ERROR_NOT_FOUND));
    };
    let mut ms = 0.0;
    // SAFETY: as the caller says; the time goes to a place of ours.
    unsafe { elapsed_time(&raw mut ms, begin, end) }.result()?;
    Ok(ms)
}

/// cudarc knows the newer name alone, which drivers before CUDA 12.8 lack, and panics where it is missing.
fn elapsed_time() -> Option<ElapsedTime> {
    static FOUND: OnceLock<Option<ElapsedTime>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let open = |name: &&str| {
            // SAFETY: the driver's library, which cudarc has loaded already.
            unsafe { libloading::Library::new(*name) }.ok()
        };
        let library = ["libcuda.so.1", "libcuda.so"].iter().find_map(open)?;
        let names = [b"cuEventElapsedTime_v2".as_slice(), b"cuEventElapsedTime"];
        // SAFETY: the driver declares both so.
        let found = names.iter().find_map(|name| Some(*unsafe { library.get::<ElapsedTime>(name) }.ok()?));
        // The function is used for as long as the program runs.
        std::mem::forget(library);
        found
    })
}
