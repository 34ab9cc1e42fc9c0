//! What ended the timing of a device.

use std::fmt;

use super::CudaError;

/// The first call that failed, and the earliest step whose times are lost by it or by one after it: a step is read when the
/// device is through it, which may be four after it ended.
pub struct Trouble {
    error: CudaError,
    /// `None` before the first.
    step: Option<i64>,
}

impl Trouble {
    pub fn new(error: CudaError, step: Option<i64>) -> Self {
        Trouble { error, step }
    }

    /// Says that this step has lost times too.
    pub fn reaches(&mut self, step: Option<i64>) {
        self.step = self.step.min(step);
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self.step {
            Some(step) => write!(out, "device_ns: from step {step} on")?,
            None => write!(out, "device_ns: from before the first step on")?,
        }
        write!(out, " the device was not timed: {}", self.error)
    }
}
