//! The instruments: a [`Probe`] watches a training loop, step by step, and hands each step's records to a
//! [`Sink`](crate::record::Sink).

mod activities;
mod current;
mod device;
#[cfg(test)]
mod device_step_tests;
#[cfg(test)]
mod device_tests;
mod error;
#[cfg(test)]
mod gpu_tests;
mod hook;
#[cfg(test)]
mod kept;
mod machine;
mod memory;
mod names;
mod opening;
mod options;
mod pending;
mod recompute;
mod recorder;
#[cfg(test)]
mod recorder_tests;
mod self_test;
mod session;
mod shares;
mod span_rows;
mod spans;
mod step;
mod timing;
mod watched;

pub use current::{Scope, scope, transfer, waiting};
pub use error::ProbeError;
pub use hook::{
    BYTES_PER_EVENT, CopyObserver, HookError, check_libtorch, libtorch_error, this_thread_loads,
    this_thread_trains, torch_version,
};
pub use machine::machine;
pub use options::Options;
pub use recompute::Recomputation;
pub use self_test::{SelfTest, self_test};
pub use session::Probe;
pub use step::{Step, StepSummary};
pub use timing::{CudaError, CudaHalfError, NvtxLayer, load_cuda, why_no_gpu};
