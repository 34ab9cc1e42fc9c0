//! What can go wrong with kernels of our own.

use std::path::PathBuf;

use cudarc::driver::DriverError;
use cudarc::nvrtc::result::NvrtcError;

/// Why a kernel could not be compiled, loaded or run.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    #[error(
        "the CUDA driver library (libcuda.so.1) was not found; kernels run on NVIDIA's GPUs alone: install the \
         driver, or use --device cpu"
    )]
    NoDriver,
    #[error(
        "CUDA's compiler library (libnvrtc.so.13 or .12) was not found, neither in {} nor by the system's loader; it \
         comes with CUDA's toolkit and with libtorch for CUDA (the wheel nvidia-cuda-nvrtc): put its folder into \
         LD_LIBRARY_PATH, or use --adamw fused, which needs no compiler",
        paths(looked)
    )]
    NoCompiler { looked: Vec<PathBuf> },
    #[error("kernels/{kernel}.cu does not compile for {arch}:\n{log}")]
    Source { kernel: String, arch: String, log: String },
    #[error("CUDA's compiler (NVRTC), on kernels/{kernel}.cu: {reason}")]
    Compiler { kernel: String, reason: NvrtcError },
    #[error(
        "a GPU of compute capability {card} is older than the oldest that CUDA's compiler (NVRTC) knows, {oldest}; \
         use --adamw fused"
    )]
    OldCard { card: String, oldest: String },
    #[error(
        "a tensor of {elements} elements has more chunks than a launch can have blocks; choose a larger tile"
    )]
    TooManyChunks { elements: u64 },
    #[error("{bytes} bytes are too few to measure with; at least {least}")]
    TooFewBytes { bytes: usize, least: usize },
    #[error("CUDA driver, {doing}: {reason}")]
    Driver { doing: &'static str, reason: DriverError },
}

impl DeviceError {
    /// For `map_err`: what the driver was asked to do.
    pub(super) fn driver(doing: &'static str) -> impl Fn(DriverError) -> DeviceError {
        move |reason| DeviceError::Driver { doing, reason }
    }
}

fn paths(folders: &[PathBuf]) -> String {
    let names: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
    names.join(", ")
}
