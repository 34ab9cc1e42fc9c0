//! What can go wrong while a device is measured.

use crate::device::DeviceError;

/// Why a device could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum RatesError {
    #[error("libtorch, while the device was measured: {0}")]
    Torch(#[from] tch::TchError),
    #[error(transparent)]
    Device(#[from] DeviceError),
}
