//! Events, which take the time on a device, and the streams that they are recorded on.

use std::ffi::{c_int, c_uint, c_void};

use cudarc::driver::sys::{CUevent, CUevent_flags, CUresult, CUstreamCaptureMode, CUstreamCaptureStatus};

use super::calls::{
    Code, EVENT_CREATE, EVENT_DESTROY, EVENT_ELAPSED_TIME, EVENT_QUERY, EVENT_RECORD, EVENT_SYNCHRONIZE,
    EXCHANGE_CAPTURE_MODE, STREAM_IS_CAPTURING,
};
use super::error::{DriverError, NoDriver};

/// A stream of libtorch's, as `CUstream`; null is the default one.
pub type Stream = *mut c_void;

/// An event that takes the time. It must be made in the context of the streams that it is recorded on.
#[derive(Debug)]
pub struct Event(CUevent);

impl Event {
    /// Says now whether the driver has all that timing takes, and not when the first step has ended.
    pub fn can_be_timed() -> Result<(), NoDriver> {
        EVENT_CREATE.get()?;
        EVENT_RECORD.get()?;
        EVENT_QUERY.get()?;
        EVENT_ELAPSED_TIME.get()?;
        EVENT_DESTROY.get()?;
        STREAM_IS_CAPTURING.get()?;
        EXCHANGE_CAPTURE_MODE.get().map(|_| ())
    }

    pub fn create() -> Result<Event, DriverError> {
        // With timing.
        const FLAGS: c_uint = CUevent_flags::CU_EVENT_DEFAULT as c_uint;
        let mut event = std::ptr::null_mut();
        // SAFETY: writes one pointer to a place of ours.
        EVENT_CREATE.call(|create| unsafe { create(&raw mut event, FLAGS) })?;
        Ok(Event(event))
    }

    /// To be taken when `stream` gets here.
    ///
    /// # Safety
    /// `stream` is one that is there, or null.
    pub unsafe fn record(&self, stream: Stream) -> Result<(), DriverError> {
        // SAFETY: the event is alive until `drop`; the rest as the caller promises.
        EVENT_RECORD.call(|record| unsafe { record(self.0, stream.cast()) })
    }

    /// Whether the device has got there. Does not wait, and since it is `Relaxed` disturbs no capture of a graph.
    pub fn is_done(&self, _: &Relaxed) -> Result<bool, DriverError> {
        const NOT_READY: Code = CUresult::CUDA_ERROR_NOT_READY as Code;
        // SAFETY: the event is alive until `drop`.
        match EVENT_QUERY.call(|query| unsafe { query(self.0) }) {
            Err(error) if error.code() == Some(NOT_READY) => Ok(false),
            asked => asked.map(|()| true),
        }
    }

    /// Waits until the device has got there.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        // SAFETY: the event is alive until `drop`.
        EVENT_SYNCHRONIZE.call(|wait| unsafe { wait(self.0) })
    }

    /// Milliseconds from this event to `end`, on whatever streams they were recorded; the driver checks that they were.
    pub fn elapsed_ms(&self, end: &Event) -> Result<f32, DriverError> {
        let mut ms = 0.0;
        // SAFETY: both events are alive until `drop`; the time goes to a place of ours.
        EVENT_ELAPSED_TIME.call(|ask| unsafe { ask(&raw mut ms, self.0, end.0) })?;
        Ok(ms)
    }

    /// The same in nanoseconds. CUDA tells it in milliseconds with 24 bits of mantissa: to half a microsecond up to 8 s, to
    /// 8 µs up to 134 s.
    pub fn elapsed_ns(&self, end: &Event) -> Result<i64, DriverError> {
        Ok((f64::from(self.elapsed_ms(end)?) * 1e6).round() as i64)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: made by `create` and not used again. A failure has nobody to go to.
        let _ = EVENT_DESTROY.call(|destroy| unsafe { destroy(self.0) });
    }
}

/// While it lives, this thread may ask whether events are done without disturbing the capture of a graph, on whatever
/// stream or thread: by default CUDA takes such a query for a mistake of the program's, and gives the graph up. It is
/// begun once for all the queries made at a time, and ended before the loop goes on: the thread is the program's, whose
/// own mistakes CUDA must go on finding.
#[derive(Debug)]
pub struct Relaxed {
    before: c_int,
}

impl Relaxed {
    pub fn begin() -> Result<Relaxed, DriverError> {
        let mut mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED as c_int;
        // SAFETY: reads the new mode from a place of ours, and puts the old one there.
        EXCHANGE_CAPTURE_MODE.call(|exchange| unsafe { exchange(&raw mut mode) })?;
        Ok(Relaxed { before: mode })
    }
}

impl Drop for Relaxed {
    fn drop(&mut self) {
        // SAFETY: as above, with the mode that the thread had. A failure has nobody to go to.
        let _ = EXCHANGE_CAPTURE_MODE.call(|exchange| unsafe { exchange(&raw mut self.before) });
    }
}

/// Whether a graph is being captured on `stream`, or so that nothing may be recorded there.
///
/// # Safety
/// `stream` is one that is there, or null.
pub unsafe fn is_capturing(stream: Stream) -> Result<bool, DriverError> {
    const NOT_CAPTURED: c_int = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE as c_int;
    /// The default stream, while another one is captured.
    const IMPLICIT: Code = CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT as Code;
    let mut status = NOT_CAPTURED;
    // SAFETY: as the caller promises; writes one number to a place of ours.
    match STREAM_IS_CAPTURING.call(|ask| unsafe { ask(stream.cast(), &raw mut status) }) {
        Err(error) if error.code() == Some(IMPLICIT) => Ok(true),
        asked => asked.map(|()| status != NOT_CAPTURED),
    }
}
