//! Mixed precision by libtorch's autocast, on the CPU and on CUDA devices.

use std::ffi::c_int;

use tch::{Device, Kind, TchError};

use super::error::TrainError;
use super::shim::checked;
use crate::probe::{CopyObserver, ProbeError};

#[repr(C)]
#[derive(Debug)]
struct Saved {
    enabled: bool,
    dtype: i8,
}

unsafe extern "C" {
    fn sl_autocast_enter(cuda: bool, dtype: i8, saved: *mut Saved) -> c_int;
    fn sl_autocast_leave(cuda: bool, saved: *const Saved) -> c_int;
}

/// Runs `work` with autocast on for `device`, in `kind`: matrix products and the like compute in it, from
/// copies of the f32 weights that are made once a region. `kind` is `BFloat16` or `Half`.
///
/// Run forward and the loss inside, backward outside, as in PyTorch. Under a probe the copies that backward
/// keeps are filed as `activation` with the detail `autocast_weight_copy`. Regions may be nested.
///
/// # Errors
/// When libtorch refuses, which then has changed nothing.
pub fn autocast<T>(device: Device, kind: Kind, work: impl FnOnce() -> T) -> Result<T, TrainError> {
    let _copies = CopyObserver::start().map_err(ProbeError::from)?;
    let _region = Region::enter(matches!(device, Device::Cuda(_)), kind)?;
    Ok(work())
}

/// An open region; leaves it when dropped, by a panic too.
struct Region {
    cuda: bool,
    saved: Saved,
}

impl Region {
    fn enter(cuda: bool, kind: Kind) -> Result<Self, TchError> {
        let mut saved = Saved { enabled: false, dtype: 0 };
        // SAFETY: plain values in; writes one struct of ours, whose layout is the shim's.
        checked(unsafe { sl_autocast_enter(cuda, scalar_type(kind)?, &raw mut saved) })?;
        Ok(Region { cuda, saved })
    }
}

/// The number of c10::ScalarType.
fn scalar_type(kind: Kind) -> Result<i8, TchError> {
    match kind {
        Kind::Half => Ok(5),
        Kind::BFloat16 => Ok(15),
        other => Err(TchError::Torch(format!("autocast computes in BFloat16 or Half, not in {other:?}"))),
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: reads what `enter` wrote. Setting flags that were set before does not fail.
        unsafe { sl_autocast_leave(self.cuda, &raw const self.saved) };
    }
}
