//! The time between two events, by whichever of its names the driver has the function.

use std::sync::OnceLock;

use cudarc::driver::{DriverError, sys};

type ElapsedTime = unsafe extern "C" fn(*mut f32, sys::CUevent, sys::CUevent) -> sys::CUresult;

/// Whether there is a driver that can tell the time between events.
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

/// cudarc knows the newer name alone, which drivers before CUDA 12.8 lack, and panics where it is missing. It is looked for in
/// the very library that cudarc has found: one that another name leads to would know nothing of its events.
fn elapsed_time() -> Option<ElapsedTime> {
    static FOUND: OnceLock<Option<ElapsedTime>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        // SAFETY: looks for a library by name. cudarc panics if it is missing, so ask first.
        if !unsafe { sys::is_culib_present() } {
            return None;
        }
        // SAFETY: the library is there, and cudarc keeps it for as long as the program runs.
        let library = unsafe { sys::culib() };
        let names = [b"cuEventElapsedTime_v2".as_slice(), b"cuEventElapsedTime"];
        // SAFETY: the driver declares both so.
        names.iter().find_map(|name| Some(*unsafe { library.get::<ElapsedTime>(*name) }.ok()?))
    })
}
