//! What can go wrong with kernels of our own.

use std::path::PathBuf;

use cudarc::driver::sys::CUresult;

use super::arch::Arch;
use super::driver::{CallFailed, Code, DriverError, NoDriver};

/// Why a kernel could not be compiled, loaded or run.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    #[error(transparent)]
    NoDriver(#[from] NoDriver),
    #[error(
        "the CUDA driver library that was found (libcuda.so.1) is a stub, which programs are linked with and which drives \
         nothing: take its folder (CUDA's `stubs`) out of LD_LIBRARY_PATH, install the driver, or use --device cpu"
    )]
    StubDriver,
    #[error("NVIDIA's driver knows no GPU")]
    NoGpu,
    #[error(
        "CUDA's compiler library (libnvrtc.so.13 or .12) was not found, neither in {} nor by the system's loader; it \
         comes with CUDA's toolkit and with libtorch for CUDA (the wheel nvidia-cuda-nvrtc): put its folder into \
         LD_LIBRARY_PATH. Only --adamw kernel and calibrating a GPU need it; --adamw fused does not",
        paths(looked)
    )]
    NoCompiler { looked: Vec<PathBuf> },
    #[error(
        "CUDA's compiler library (NVRTC) is there and cannot be loaded: {reasons}; install it again (the wheel \
         nvidia-cuda-nvrtc). Only --adamw kernel and calibrating a GPU need it; --adamw fused does not"
    )]
    BrokenCompiler { reasons: String },
    #[error("kernels/{kernel}.cu does not compile for {arch}:\n{log}")]
    Source { kernel: String, arch: String, log: String },
    #[error("CUDA's compiler (NVRTC), on kernels/{kernel}.cu: {reason}")]
    Compiler { kernel: String, reason: String },
    #[error(
        "a GPU of compute capability {}.{} is older than the oldest that CUDA's compiler (NVRTC) knows, {}.{}: an older \
         compiler would do. Only --adamw kernel and calibrating a GPU need it; --adamw fused does not",
        card.major, card.minor, oldest.major, oldest.minor
    )]
    OldCard { card: Arch, oldest: Arch },
    #[error(
        "the driver, for CUDA {driver}, does not know what CUDA's compiler (NVRTC {compiler}) makes: install a newer \
         driver. Only --adamw kernel and calibrating a GPU need it; --adamw fused does not"
    )]
    NewCompiler { compiler: String, driver: String },
    #[error(
        "the kernel {kernel} came to {found} at place {place}, where {expected} is right: neither this GPU's rates nor \
         its results can be trusted; please report it with the GPU's name and driver"
    )]
    WrongResult { kernel: &'static str, place: usize, found: f32, expected: f32 },
    #[error(
        "a tensor of {elements} elements has more chunks than a launch can have blocks; choose a larger tile"
    )]
    TooManyChunks { elements: u64 },
    #[error("{bytes} bytes are too few to measure with; at least {least}")]
    TooFewBytes { bytes: usize, least: usize },
    #[error("CUDA driver, {doing}: {reason}")]
    Driver { doing: &'static str, reason: CallFailed },
}

impl DeviceError {
    /// For `map_err`: what the driver was asked to do.
    pub(super) fn driver(doing: &'static str) -> impl Fn(DriverError) -> DeviceError {
        const STUB: Code = CUresult::CUDA_ERROR_STUB_LIBRARY as Code;
        const NO_GPU: Code = CUresult::CUDA_ERROR_NO_DEVICE as Code;
        move |error| match error {
            DriverError::None(none) => DeviceError::NoDriver(none),
            DriverError::Call(CallFailed { code: STUB, .. }) => DeviceError::StubDriver,
            DriverError::Call(CallFailed { code: NO_GPU, .. }) => DeviceError::NoGpu,
            DriverError::Call(reason) => DeviceError::Driver { doing, reason },
        }
    }

    /// What the driver has returned, where it is the driver that refused.
    pub(super) fn code(&self) -> Option<Code> {
        match self {
            DeviceError::Driver { reason, .. } => Some(reason.code),
            _ => None,
        }
    }
}

fn paths(folders: &[PathBuf]) -> String {
    let names: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
    names.join(", ")
}
