//! When things happen: the host's clock, a device's, and the ranges other tools can see.

mod clock;
mod cuda;
mod nvtx_layer;
mod nvtx_ranges;

pub use clock::{Clock, HostClock, Stamp};
#[cfg(test)]
pub use cuda::double;
pub use cuda::{CudaClock, CudaError, CudaHalfError, device_facts, load_cuda, why_no_gpu};
pub use nvtx_layer::NvtxLayer;
pub use nvtx_ranges::{Name, Range, Ranges, register};
