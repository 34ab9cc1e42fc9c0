//! The edge to CUDA's driver. Types and constants are cudarc's; the functions are declared here, each of which returns an
//! integer. cudarc has them return a Rust enum, and a driver that is newer than that enum returns codes that it lacks (917
//! from CUDA 13.1 on): undefined behaviour, which ended the process without a word. So no enum ever comes out of the driver:
//! codes, properties, modes and states are numbers. An enum may go into it.
//!
//! All functions come from one library, the one that CUDA's runtime finds too, each looked up when it is first needed: a driver
//! is asked for nothing that nobody calls.

mod calls;
mod context;
mod devices;
mod error;
mod event;
mod library;

pub(super) use calls::{
    Code, LAUNCH_KERNEL, MEM_ALLOC, MEM_FREE, MEM_SET, MEM_TO_DEVICE, MEM_TO_HOST, MODULE_FUNCTION,
    MODULE_LOAD, MODULE_UNLOAD,
};
pub use context::{Context, Entered};
pub use devices::{Device, count, cuda_version, init};
pub use error::{CallFailed, DriverError, NoDriver};
pub use event::{Event, Relaxed, Stream, is_capturing};
#[cfg(test)]
pub use library::is_loadable;
