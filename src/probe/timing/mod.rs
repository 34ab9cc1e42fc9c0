//! When things happen: the host's clock, a device's, and the ranges other tools can see.

mod clock;
mod cuda;
mod nvtx_ranges;

#[cfg(test)]
pub use cuda::double;
pub use clock::{Clock, HostClock, Stamp};
pub use cuda::{CudaClock, CudaError, device_facts, load_cuda};
pub use nvtx_ranges::{Name, Range, Ranges, register};
