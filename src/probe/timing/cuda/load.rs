//! libtorch's CUDA half, on demand.

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

/// libtorch_cuda's symbols must be seen by libraries that are loaded later.
const FLAGS: i32 = RTLD_NOW | RTLD_GLOBAL;

/// Makes libtorch's CUDA half known to this process. The linker leaves it out, since nothing names its
/// symbols; loading it here, on demand, also spares runs on the CPU from it.
pub fn load_cuda() -> Result<(), String> {
    // SAFETY: libtorch_cuda registers its kernels when it is loaded and is never unloaded.
    let library = unsafe { Library::open(Some("libtorch_cuda.so"), FLAGS) };
    library
        .map(std::mem::forget)
        .map_err(|error| format!("libtorch's CUDA library cannot be loaded: {error}"))
}
