//! What can go wrong between us and the driver.

use std::time::Duration;

use super::super::super::hook::HookError;
use crate::device::DriverError;

/// Why a GPU cannot be timed.
#[derive(Debug, thiserror::Error)]
pub enum CudaError {
    #[error(transparent)]
    Driver(#[from] DriverError),
    #[error(transparent)]
    Hook(#[from] HookError),
    #[error("the device got no further with its work for {0:?}; is it hung, or does a kernel never end?")]
    Hung(Duration),
}
