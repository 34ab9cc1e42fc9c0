//! From a source to a module in a GPU's memory.

use std::sync::Arc;

use cudarc::driver::sys::CUresult;

use super::cache::Cache;
use super::driver::Code;
use super::error::DeviceError;
use super::facts::driver_cuda;
use super::gpu::{Gpu, Module};
use super::nvrtc::Compiler;
use super::source::Source;

/// Compiles a source for this GPU, or takes it from the cache, and has the driver load it.
///
/// A driver that is older than the compiler does not know its PTX, though it serves libtorch well (CUDA's minor version
/// compatibility). It does know machine code for its card, which is made then, each time.
///
/// # Errors
/// What the compiler or the driver refuses; a compiler that is too new for the driver in both ways.
pub fn load(gpu: &Arc<Gpu>, cache: &Cache, source: &Source) -> Result<Module, DeviceError> {
    let compiler = Compiler::find()?;
    let ptx = cache.ptx(&compiler, source, compiler.arch_for(gpu.arch())?)?;
    match Module::load(gpu, &ptx) {
        Err(error) if does_not_know_ptx(&error) => load_machine_code(gpu, &compiler, source),
        loaded => loaded,
    }
}

fn load_machine_code(gpu: &Arc<Gpu>, compiler: &Compiler, source: &Source) -> Result<Module, DeviceError> {
    let too_new = || {
        let driver = driver_cuda().map_or_else(|_| "an unknown version".to_owned(), |cuda| cuda.to_string());
        DeviceError::NewCompiler { compiler: compiler.version().to_string(), driver }
    };
    let code = compiler.machine_code(source, gpu.arch())?.ok_or_else(too_new)?;
    Module::load_code(gpu, &code).map_err(|error| if does_not_know_code(&error) { too_new() } else { error })
}

fn does_not_know_ptx(error: &DeviceError) -> bool {
    const UNKNOWN: Code = CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION as Code;
    error.code() == Some(UNKNOWN)
}

/// What a driver says to an object file that is newer than it is. A newer one would be no help against anything else, memory
/// that is full for one.
fn does_not_know_code(error: &DeviceError) -> bool {
    const NO_IMAGE: Code = CUresult::CUDA_ERROR_INVALID_IMAGE as Code;
    const NO_SOURCE: Code = CUresult::CUDA_ERROR_INVALID_SOURCE as Code;
    const NOT_FOR_IT: Code = CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU as Code;
    matches!(error.code(), Some(NO_IMAGE | NO_SOURCE | NOT_FOR_IT)) || does_not_know_ptx(error)
}

#[cfg(test)]
mod tests {
    use super::super::driver::CallFailed;
    use super::*;

    #[test]
    fn a_newer_driver_is_asked_for_only_where_it_would_help() {
        let refusal = |code| DeviceError::Driver {
            doing: "loading a kernel",
            reason: CallFailed { call: "cuModuleLoadData", code: code as Code },
        };
        use CUresult as code;
        for code in [code::CUDA_ERROR_INVALID_IMAGE, code::CUDA_ERROR_NO_BINARY_FOR_GPU] {
            assert!(does_not_know_code(&refusal(code)), "{code:?}");
        }
        let others = [
            code::CUDA_ERROR_OUT_OF_MEMORY,
            code::CUDA_ERROR_CONTEXT_IS_DESTROYED,
            code::CUDA_ERROR_ECC_UNCORRECTABLE,
        ];
        for code in others {
            assert!(!does_not_know_code(&refusal(code)), "{code:?}");
        }
    }
}
