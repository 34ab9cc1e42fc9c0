//! What can go wrong while a run is watched.

use super::hook::HookError;
use super::timing::{CudaError, CudaHalfError};
use crate::record::SinkError;

/// Why a probe could not start or go on.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    #[error(transparent)]
    Hook(#[from] HookError),
    #[error(transparent)]
    Cuda(#[from] CudaError),
    #[error("{0}; install a libtorch for CUDA, or watch the CPU")]
    NoCudaHalf(#[from] CudaHalfError),
    #[error("a limit on memory takes a trace of allocations: it is the hook that keeps it")]
    LimitWithoutTrace,
    /// The place for the records could not be opened; nothing has been run.
    #[error("{0}")]
    Open(SinkError),
    /// The records could not be kept; what was flushed before is safe.
    #[error("{0}")]
    Sink(SinkError),
}
