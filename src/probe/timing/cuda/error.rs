//! What can go wrong between us and the driver.

use std::time::Duration;

use super::super::super::hook::HookError;
use super::driver::CallFailed;

/// Why a GPU cannot be timed.
#[derive(Debug, thiserror::Error)]
pub enum CudaError {
    #[error(
        "the CUDA driver library (libcuda.so.1) was not found; install NVIDIA's driver, or use --device cpu"
    )]
    NoDriver,
    #[error("NVIDIA's driver has no function that tells the time between two events; install a newer one")]
    NoEvents,
    #[error("CUDA driver, {0}")]
    Driver(#[from] CallFailed),
    #[error(transparent)]
    Hook(#[from] HookError),
    #[error("the device got no further with its work for {0:?}; is it hung, or does a kernel never end?")]
    Hung(Duration),
}
