//! The calls of CUDA's driver that timing needs, one wrapper each.

use std::ffi::c_void;
use std::thread;
use std::time::{Duration, Instant};

use cudarc::driver::{DriverError, result, sys};

use super::CudaError;
use crate::device::{elapsed_ms, tells_elapsed_time};

/// A call of the driver that failed, by its name.
#[derive(Debug, thiserror::Error)]
#[error("{call}: {reason}")]
pub struct CallFailed {
    call: &'static str,
    reason: DriverError,
}

trait Named<T> {
    /// Says which call this came from.
    fn in_call(self, call: &'static str) -> Result<T, CallFailed>;
}

impl<T> Named<T> for Result<T, DriverError> {
    fn in_call(self, call: &'static str) -> Result<T, CallFailed> {
        self.map_err(|reason| CallFailed { call, reason })
    }
}

/// A stream of libtorch's, as `CUstream`.
pub type Stream = *mut c_void;

/// A device's primary context, which is the one that libtorch works in.
#[derive(Debug)]
pub struct Context {
    device: sys::CUdevice,
    context: sys::CUcontext,
}

impl Context {
    /// Retains the context of the device with this number. It is not made current.
    pub fn retain(ordinal: i32) -> Result<Self, CudaError> {
        // SAFETY: looks for a library by name. cudarc panics on any call if it is missing, so ask first.
        if !unsafe { sys::is_culib_present() } {
            return Err(CudaError::NoDriver);
        }
        if !tells_elapsed_time() {
            return Err(CudaError::NoEvents);
        }
        result::init().in_call("cuInit")?;
        let device = result::device::get(ordinal).in_call("cuDeviceGet")?;
        // SAFETY: `device` comes from the call above; `drop` releases what is retained here.
        let context = unsafe { result::primary_ctx::retain(device) }.in_call("cuDevicePrimaryCtxRetain")?;
        Ok(Context { device, context })
    }

    pub fn device(&self) -> sys::CUdevice {
        self.device
    }

    /// Makes this the calling thread's context until the guard is dropped. On the training thread it nearly always is
    /// already, which costs one cheap call to learn; a loop that works on several devices may be on another.
    pub fn enter(&self) -> Result<Entered, CallFailed> {
        let before = result::ctx::get_current().in_call("cuCtxGetCurrent")?;
        if before == Some(self.context) {
            return Ok(Entered { before: None });
        }
        // SAFETY: the context is retained until `drop`.
        unsafe { result::ctx::set_current(self.context) }.in_call("cuCtxSetCurrent")?;
        Ok(Entered { before: Some(before.unwrap_or(std::ptr::null_mut())) })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the counterpart of the retain. A failure has nobody to go to.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

/// While it lives, the thread's context is the one that was entered.
#[derive(Debug)]
#[must_use = "the context is left when this guard is dropped"]
pub struct Entered {
    /// What to put back; null is "no context".
    before: Option<sys::CUcontext>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // SAFETY: it was current when the guard was made, by somebody who keeps it.
            let _ = unsafe { result::ctx::set_current(before) };
        }
    }
}

/// An event that takes the time. It must be made in the context of the streams that it is recorded on.
#[derive(Debug)]
pub struct Event(sys::CUevent);

impl Event {
    pub fn create() -> Result<Self, CallFailed> {
        // The default flags: with timing.
        let event = result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).in_call("cuEventCreate")?;
        Ok(Event(event))
    }

    /// To be taken when `stream` gets here.
    pub fn record(&self, stream: Stream) -> Result<(), CallFailed> {
        // SAFETY: the event is alive until `drop`; the stream is one that libtorch has just named.
        unsafe { result::event::record(self.0, stream as sys::CUstream) }.in_call("cuEventRecord")
    }

    /// Whether the device has got there. Does not wait, and since it is `Relaxed` disturbs no capture of a graph.
    pub fn is_done(&self, _: &Relaxed) -> Result<bool, CallFailed> {
        // SAFETY: the event is alive until `drop`.
        match unsafe { result::event::query(self.0) } {
            Ok(()) => Ok(true),
            Err(DriverError(sys::CUresult::CUDA_ERROR_NOT_READY)) => Ok(false),
            Err(error) => Err(error).in_call("cuEventQuery"),
        }
    }

    /// Nanoseconds from this event to `end`, on whatever streams they were recorded. CUDA tells it in milliseconds with
    /// 24 bits of mantissa: to half a microsecond up to 8 s, to 8 µs up to 134 s.
    pub fn elapsed_ns(&self, end: &Event) -> Result<i64, CallFailed> {
        // SAFETY: both events are alive until `drop`.
        let ms = unsafe { elapsed_ms(self.0, end.0) }.in_call("cuEventElapsedTime")?;
        Ok((f64::from(ms) * 1e6).round() as i64)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: made by `create` and not used again. A failure has nobody to go to.
        let _ = unsafe { result::event::destroy(self.0) };
    }
}

/// While it lives, this thread may ask whether events are done without disturbing the capture of a graph, on whatever
/// stream or thread: by default CUDA takes such a query for a mistake of the program's, and gives the graph up. It is
/// begun once for all the queries made at a time, and ended before the loop goes on: the thread is the program's, whose
/// own mistakes CUDA must go on finding.
pub struct Relaxed {
    before: sys::CUstreamCaptureMode,
}

impl Relaxed {
    pub fn begin() -> Result<Self, CallFailed> {
        let mut mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: reads the new mode from a place of ours, and puts the old one there.
        let exchanged = unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut mode) }.result();
        exchanged.in_call("cuThreadExchangeStreamCaptureMode")?;
        Ok(Relaxed { before: mode })
    }
}

impl Drop for Relaxed {
    fn drop(&mut self) {
        // SAFETY: as above, with the mode that the thread had. A failure has nobody to go to.
        let _ = unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut self.before) };
    }
}

/// Whether a graph is being captured on `stream`, or so that nothing may be recorded there.
pub fn is_capturing(stream: Stream) -> Result<bool, CallFailed> {
    // SAFETY: the stream is one that libtorch has just named.
    match unsafe { result::stream::is_capturing(stream as sys::CUstream) } {
        Ok(status) => Ok(status != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE),
        // The default stream, while another one is captured.
        Err(DriverError(sys::CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)) => Ok(true),
        Err(error) => Err(error).in_call("cuStreamIsCapturing"),
    }
}

/// What has come of waiting so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    Done,
    /// Not done, but further than before.
    Some,
    None,
}

/// Asks again and again, until it is done; false if for so long there was no progress.
pub fn until<E>(patience: Duration, mut ask: impl FnMut() -> Result<Progress, E>) -> Result<bool, E> {
    const LONGEST_PAUSE: Duration = Duration::from_millis(1);
    let mut since = Instant::now();
    let mut pause = Duration::from_micros(10);
    loop {
        match ask()? {
            Progress::Done => return Ok(true),
            Progress::Some => since = Instant::now(),
            Progress::None if since.elapsed() >= patience => return Ok(false),
            Progress::None => {}
        }
        thread::sleep(pause);
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}
