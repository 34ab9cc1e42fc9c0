//! Kernels of our own on NVIDIA's GPUs: compiled at run time for the card found, kept on disk, run in libtorch's context on
//! its streams.
//!
//! Needs CUDA's compiler library, which comes with libtorch for CUDA, and no toolkit. Compiling needs no GPU: tests
//! compile every kernel for three kinds of cards, have them assembled, and run the same sources on the host. Nothing
//! here has ever run on a card.

mod adamw;
mod arch;
mod bus;
mod cache;
mod companions;
mod driver;
mod error;
mod facts;
mod gpu;
mod library;
mod loading;
mod measure;
mod memory;
mod nvrtc;
mod pattern;
mod source;

pub use adamw::{
    AdamWKernel, Batch, Hyper, Numbers, Operands, Storage, TENSORS, Tiling, TilingError, batches,
};
pub use arch::Arch;
pub use bus::{cards_on_bus, is_fault};
pub use cache::Cache;
pub(crate) use companions::is_missing;
pub use companions::{CompanionError, cupti_version, nvml_driver, nvtx_tool};
#[cfg(test)]
pub(crate) use driver::is_loadable;
pub use driver::{CallFailed, DriverError, NoDriver};
pub(crate) use driver::{Context, Event, Relaxed, Stream, is_capturing};
pub use error::DeviceError;
pub use facts::{Card, cards, driver_cuda};
pub use gpu::{Gpu, GpuShape};
pub use library::libtorch_folder;
pub(crate) use library::open as open_library;
pub use measure::{Bandwidth, Rate, measure_bandwidth, measure_fma};
pub use nvrtc::{Compiler, Version};
pub use source::Source;
