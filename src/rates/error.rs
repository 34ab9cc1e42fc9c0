//! What can go wrong while a device is measured.

use crate::device::DeviceError;

/// Why a device could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum RatesError {
    #[error("libtorch, while the device was measured: {0}")]
    Torch(#[from] tch::TchError),
    #[error(
        "a product of matrices came to {found} where {expected} is right: the device's results cannot be trusted"
    )]
    WrongProduct { found: f64, expected: f64 },
    #[error(transparent)]
    Device(#[from] DeviceError),
}
