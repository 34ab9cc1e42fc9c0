//! A device's primary context, which is the one that libtorch works in.

use cudarc::driver::sys::CUcontext;

use super::calls::{CTX_GET_CURRENT, CTX_SET_CURRENT, MEM_GET_INFO, PRIMARY_CTX_RELEASE, PRIMARY_CTX_RETAIN};
use super::devices::{Device, init};
use super::error::DriverError;

/// Retained while it lives: what is made in it is seen by libtorch, and the other way round.
#[derive(Debug)]
pub struct Context {
    device: Device,
    context: CUcontext,
}

// SAFETY: the driver's handles may be used from any thread; each use makes their context that of its thread first.
unsafe impl Send for Context {}
// SAFETY: as above; nothing in here is changed after it was made.
unsafe impl Sync for Context {}

impl Context {
    /// That of the device with this number, as libtorch counts them. Starts the driver.
    pub fn of(ordinal: i32) -> Result<Context, DriverError> {
        init()?;
        Context::retain(Device::get(ordinal)?)
    }

    /// It is not made current.
    pub fn retain(device: Device) -> Result<Context, DriverError> {
        let mut context = std::ptr::null_mut();
        // SAFETY: writes one pointer to a place of ours; `drop` releases what is retained here.
        PRIMARY_CTX_RETAIN.call(|retain| unsafe { retain(&raw mut context, device.0) })?;
        Ok(Context { device, context })
    }

    pub fn device(&self) -> Device {
        self.device
    }

    /// Makes this the calling thread's context until the guard is dropped. On the training thread it nearly always is
    /// already, which costs one cheap call to learn; a loop that works on several devices may be on another.
    pub fn enter(&self) -> Result<Entered, DriverError> {
        let mut before = std::ptr::null_mut();
        // SAFETY: writes one pointer to a place of ours.
        CTX_GET_CURRENT.call(|ask| unsafe { ask(&raw mut before) })?;
        if before == self.context {
            return Ok(Entered { before: None });
        }
        // SAFETY: the context is retained until `drop`.
        CTX_SET_CURRENT.call(|set| unsafe { set(self.context) })?;
        Ok(Entered { before: Some(before) })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the counterpart of the retain. A failure has nobody to go to.
        let _ = PRIMARY_CTX_RELEASE.call(|release| unsafe { release(self.device.0) });
    }
}

/// While it lives, the thread's context is the one that was entered. Then the thread has the context back that it had:
/// libtorch's current device is part of that.
#[derive(Debug)]
#[must_use = "the context is left when this guard is dropped"]
pub struct Entered {
    /// What to put back; null is "no context".
    before: Option<CUcontext>,
}

impl Entered {
    /// The device's free memory and all that it has, in bytes.
    pub fn memory(&self) -> Result<(usize, usize), DriverError> {
        let (mut free, mut all) = (0, 0);
        // SAFETY: writes two numbers to places of ours.
        MEM_GET_INFO.call(|ask| unsafe { ask(&raw mut free, &raw mut all) })?;
        Ok((free, all))
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // SAFETY: it was current when the guard was made, by somebody who keeps it. A failure has nobody to go to.
            let _ = CTX_SET_CURRENT.call(|set| unsafe { set(before) });
        }
    }
}
