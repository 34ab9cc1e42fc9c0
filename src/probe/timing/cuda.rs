//! A GPU's own clock: CUDA events on the stream that libtorch works on. Compiled everywhere, never yet run
//! on a card.

use cudarc::driver::{DriverError, result, sys};

use super::super::hook::{self, HookError};
use super::clock::{Clock, Stamp};

/// Why a GPU cannot be timed.
#[derive(Debug, thiserror::Error)]
pub enum CudaError {
    #[error(
        "the CUDA driver library (libcuda.so.1) was not found; install NVIDIA's driver, or use --device cpu"
    )]
    NoDriver,
    #[error("CUDA driver: {0}")]
    Driver(#[from] DriverError),
    #[error(transparent)]
    Hook(#[from] HookError),
}

/// Makes libtorch's CUDA half known to this process. The linker leaves it out, since nothing names its
/// symbols; loading it here, on demand, also spares runs on the CPU from it.
pub fn load_cuda() -> Result<(), String> {
    // SAFETY: libtorch_cuda registers its kernels when it is loaded and is never unloaded.
    let library = unsafe { libloading::os::unix::Library::open(Some("libtorch_cuda.so"), FLAGS) };
    library
        .map(std::mem::forget)
        .map_err(|error| format!("libtorch's CUDA library cannot be loaded: {error}"))
}

/// libtorch_cuda's symbols must be seen by libraries that are loaded later.
const FLAGS: i32 = libloading::os::unix::RTLD_NOW | libloading::os::unix::RTLD_GLOBAL;

/// Stands for an instant that could not be taken.
const LOST: i64 = -1;

/// Times by CUDA events, recorded on libtorch's current stream of one device.
#[derive(Debug)]
pub struct CudaClock {
    ordinal: i32,
    device: sys::CUdevice,
    /// All events ever made; the first `used` of them are this step's.
    events: Vec<sys::CUevent>,
    used: usize,
    trouble: Option<String>,
}

impl CudaClock {
    /// A clock for the device with this number.
    pub fn new(ordinal: i32) -> Result<Self, CudaError> {
        // SAFETY: looks for a library by name. cudarc panics on any call if it is missing, so ask first.
        if !unsafe { sys::is_culib_present() } {
            return Err(CudaError::NoDriver);
        }
        result::init()?;
        let device = result::device::get(ordinal)?;
        // SAFETY: `device` comes from the call above. The primary context is libtorch's own; it is
        // released in `drop`.
        unsafe { result::ctx::set_current(result::primary_ctx::retain(device)?)? };
        Ok(CudaClock { ordinal, device, events: Vec::new(), used: 0, trouble: None })
    }

    fn record(&mut self) -> Result<Stamp, CudaError> {
        if self.used == self.events.len() {
            // The default flags: with timing.
            self.events.push(result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT)?);
        }
        let stream = hook::current_stream(self.ordinal)? as sys::CUstream;
        // SAFETY: the event is alive until `drop`, and the stream is libtorch's, in the same context.
        unsafe { result::event::record(self.events[self.used], stream)? };
        self.used += 1;
        Ok(Stamp(self.used as i64 - 1))
    }

    fn elapsed(&self, begin: Stamp, end: Stamp) -> Result<i64, CudaError> {
        let (begin, end) = (self.events[begin.0 as usize], self.events[end.0 as usize]);
        // SAFETY: both events are alive and have been recorded; waiting for the later one is what makes
        // their distance readable.
        let ms = unsafe {
            result::event::synchronize(end)?;
            result::event::elapsed(begin, end)?
        };
        Ok((f64::from(ms) * 1e6).round() as i64)
    }

    fn note<T>(&mut self, outcome: Result<T, CudaError>) -> Option<T> {
        outcome.map_err(|error| self.trouble.get_or_insert_with(|| error.to_string()).clone()).ok()
    }
}

impl Clock for CudaClock {
    fn stamp(&mut self) -> Stamp {
        let outcome = self.record();
        self.note(outcome).unwrap_or(Stamp(LOST))
    }

    fn elapsed_ns(&mut self, begin: Stamp, end: Stamp) -> Option<i64> {
        if begin.0 == LOST || end.0 == LOST {
            return None;
        }
        let outcome = self.elapsed(begin, end);
        self.note(outcome)
    }

    fn reset(&mut self) {
        self.used = 0;
    }

    fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }
}

impl Drop for CudaClock {
    fn drop(&mut self) {
        for event in self.events.drain(..) {
            // SAFETY: made by this clock and not used again. A failure here has nobody to go to.
            let _ = unsafe { result::event::destroy(event) };
        }
        // SAFETY: the counterpart of the retain in `new`.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_driver_the_error_says_what_to_do() {
        // SAFETY: looks for a library by name.
        if unsafe { sys::is_culib_present() } {
            return;
        }
        let message = CudaClock::new(0).unwrap_err().to_string();
        assert!(message.contains("libcuda.so.1") && message.contains("--device cpu"), "{message}");
    }
}
