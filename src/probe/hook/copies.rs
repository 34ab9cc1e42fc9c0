//! Telling autocast's copies of weights from other allocations.

use std::marker::PhantomData;
use std::sync::atomic::Ordering;

use super::{HookError, RECORDING, ffi, last_error};

/// While it lives, what this thread allocates to copy a leaf that is trained is marked as such a copy.
#[derive(Debug)]
pub struct CopyObserver {
    handle: Option<u64>,
    /// It must be dropped on the thread it was made on.
    _here: PhantomData<*const ()>,
}

impl CopyObserver {
    /// Does nothing while no hook records.
    pub fn start() -> Result<Self, HookError> {
        let mut handle = 0;
        if !RECORDING.load(Ordering::SeqCst) {
            return Ok(CopyObserver { handle: None, _here: PhantomData });
        }
        // SAFETY: writes one number to a place of ours.
        match unsafe { ffi::sl_observe_copies(&raw mut handle) } {
            0 => Ok(CopyObserver { handle: Some(handle), _here: PhantomData }),
            _ => Err(last_error()),
        }
    }
}

impl Drop for CopyObserver {
    fn drop(&mut self) {
        if let Some(handle) = self.handle {
            // SAFETY: the handle is one that `start` was given, on this thread.
            unsafe { ffi::sl_ignore_copies(handle) };
        }
    }
}
