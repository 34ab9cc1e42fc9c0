//! libtorch's CUDA half, on demand.

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use crate::device::is_missing;

const LIBRARY: &str = "libtorch_cuda.so";
/// libtorch_cuda's symbols must be seen by libraries that are loaded later.
const FLAGS: i32 = RTLD_NOW | RTLD_GLOBAL;

/// Why libtorch works on no GPU.
#[derive(Debug, thiserror::Error)]
pub enum CudaHalfError {
    #[error("libtorch's CUDA library was not found: {0}")]
    Missing(libloading::Error),
    #[error("libtorch's CUDA library is there and cannot be loaded: {0}")]
    Broken(libloading::Error),
}

/// Makes libtorch's CUDA half known to this process. The linker leaves it out, since nothing names its
/// symbols; loading it here, on demand, also spares runs on the CPU from it.
pub fn load_cuda() -> Result<(), CudaHalfError> {
    // SAFETY: libtorch_cuda registers its kernels when it is loaded and is never unloaded.
    let library = unsafe { Library::open(Some(LIBRARY), FLAGS) };
    library.map(std::mem::forget).map_err(|error| match is_missing(LIBRARY, &error) {
        true => CudaHalfError::Missing(error),
        false => CudaHalfError::Broken(error),
    })
}
