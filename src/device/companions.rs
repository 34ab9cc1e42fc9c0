//! NVIDIA's libraries beside the driver's: NVML, which knows the machine's cards, and CUPTI, which traces them. Only asked
//! for their versions.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;

use libloading::os::unix::Library;

use super::library::{companion, open};

/// Why a library of NVIDIA's is of no use.
#[derive(Debug, thiserror::Error)]
pub enum CompanionError {
    #[error("{library} was not found")]
    NotFound { library: &'static str },
    #[error("{library} cannot be loaded: {source}")]
    Unloaded { library: &'static str, source: libloading::Error },
    #[error("{library} has no {function}")]
    NoFunction { library: &'static str, function: &'static str },
    #[error("{library}: {function} failed with code {code}{}", words(library, *code))]
    Failed { library: &'static str, function: &'static str, code: c_int },
}

/// What nvml.h says of the codes of a driver that is not in order, or that one is not allowed to ask.
fn words(library: &str, code: c_int) -> &'static str {
    match (library, code) {
        (NVML, 4) => {
            ": no permission; a container may lack the driver's `utility` capability (NVIDIA_DRIVER_CAPABILITIES)"
        }
        (NVML, 9) => ": the driver is not loaded",
        (NVML, 18) => ": the driver that runs is of another version than its libraries; restart the machine",
        _ => "",
    }
}

const NVML: &str = "libnvidia-ml.so.1";
const CUPTI: [&str; 2] = ["libcupti.so.13", "libcupti.so.12"];

/// The driver's own version, such as `580.65.06`, as NVML tells it.
///
/// # Errors
/// Where there is no driver; where it does not run.
pub fn nvml_driver() -> Result<String, CompanionError> {
    type Init = unsafe extern "C" fn() -> c_int;
    type Version = unsafe extern "C" fn(*mut c_char, u32) -> c_int;
    let library = load(NVML)?;
    // SAFETY: NVML declares its functions so (nvml.h).
    let (init, shutdown, version) = unsafe {
        (
            function::<Init>(&library, NVML, "nvmlInit_v2")?,
            function::<Init>(&library, NVML, "nvmlShutdown")?,
            function::<Version>(&library, NVML, "nvmlSystemGetDriverVersion")?,
        )
    };
    // SAFETY: takes nothing.
    done(NVML, "nvmlInit_v2", unsafe { init() })?;
    // NVML asks for 80 at most.
    let mut text = [0; 96];
    // SAFETY: writes a text that ends with a NUL, of so many bytes at most.
    let asked = unsafe { version(text.as_mut_ptr(), text.len() as u32 - 1) };
    // SAFETY: the counterpart of the call above. Its failure would leave a library open, which is closed next.
    unsafe { shutdown() };
    done(NVML, "nvmlSystemGetDriverVersion", asked)?;
    // SAFETY: the last byte is 0 still, whatever was written before it.
    Ok(unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned())
}

/// CUPTI's own version number. It lies beside libtorch for CUDA, and needs no GPU to say so.
///
/// # Errors
/// Where it is not installed.
pub fn cupti_version() -> Result<u32, CompanionError> {
    type Version = unsafe extern "C" fn(*mut u32) -> c_int;
    let name = CUPTI[0];
    let library = match CUPTI.iter().find_map(|name| companion(name)) {
        Some(path) => open(&path).map_err(|source| unloaded(name, source))?,
        None => load(name)?,
    };
    // SAFETY: CUPTI declares it so (cupti_version.h).
    let version = unsafe { function::<Version>(&library, name, "cuptiGetVersion")? };
    let mut number = 0;
    // SAFETY: writes one number to a place of ours.
    done(name, "cuptiGetVersion", unsafe { version(&raw mut number) })?;
    // It may have started threads of its own by being loaded.
    std::mem::forget(library);
    Ok(number)
}

/// Whether the library at `path` is a tool that NVTX hands its ranges to: it can be loaded, and has the function that NVTX
/// calls first (nvtxInit.h).
///
/// # Errors
/// Where it is none.
pub fn nvtx_tool(path: &Path) -> Result<(), CompanionError> {
    type Initialize = unsafe extern "C" fn(*const c_void) -> c_int;
    const TOOL: &str = "the tool";
    let library = open(path).map_err(|source| unloaded(TOOL, source))?;
    // SAFETY: not called, only looked for.
    let found = unsafe { function::<Initialize>(&library, TOOL, "InitializeInjectionNvtx2") };
    // It may have started threads of its own by being loaded.
    std::mem::forget(library);
    found.map(|_| ())
}

fn load(name: &'static str) -> Result<Library, CompanionError> {
    open(name.as_ref()).map_err(|source| unloaded(name, source))
}

/// The loader tells a library that is not there from one that it cannot load by its words alone, which begin with the name
/// of what is missing: that may be another library, which this one needs.
fn unloaded(library: &'static str, source: libloading::Error) -> CompanionError {
    match is_missing(library, &source) {
        true => CompanionError::NotFound { library },
        false => CompanionError::Unloaded { library, source },
    }
}

/// Whether that is why the loader does not load this library: it is not there.
pub(crate) fn is_missing(library: &str, why: &libloading::Error) -> bool {
    let told = why.to_string();
    told.starts_with(&format!("{library}: ")) && told.contains("No such file")
}

/// # Safety
/// The library declares the function with this type, and it is not called after the library was closed.
unsafe fn function<F: Copy>(
    library: &Library,
    name: &'static str,
    function: &'static str,
) -> Result<F, CompanionError> {
    // SAFETY: as the caller promises.
    let found = unsafe { library.get::<F>(function.as_bytes()) };
    found.map(|found| *found).map_err(|_| CompanionError::NoFunction { library: name, function })
}

fn done(library: &'static str, function: &'static str, code: c_int) -> Result<(), CompanionError> {
    if code == 0 { Ok(()) } else { Err(CompanionError::Failed { library, function, code }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_not_there_is_named() {
        let error = load("libnothing-of-the-kind.so.1").unwrap_err().to_string();
        assert_eq!(error, "libnothing-of-the-kind.so.1 was not found");
    }

    #[test]
    fn a_function_that_a_library_lacks_is_named() {
        let libc = load("libc.so.6").unwrap();
        type Any = unsafe extern "C" fn() -> c_int;
        // SAFETY: never called.
        let error = unsafe { function::<Any>(&libc, "libc.so.6", "nvmlInit_v2") }.unwrap_err().to_string();
        assert_eq!(error, "libc.so.6 has no nvmlInit_v2");
    }

    #[test]
    fn a_code_that_is_not_0_is_a_failure() {
        assert!(done(NVML, "nvmlInit_v2", 0).is_ok());
        let error = done(NVML, "nvmlInit_v2", 9).unwrap_err().to_string();
        assert_eq!(error, "libnvidia-ml.so.1: nvmlInit_v2 failed with code 9: the driver is not loaded");
        let refused = done(NVML, "nvmlInit_v2", 4).unwrap_err().to_string();
        assert!(refused.contains("code 4: no permission"), "{refused}");
        let error = done(CUPTI[0], "cuptiGetVersion", 9).unwrap_err().to_string();
        assert_eq!(error, "libcupti.so.13: cuptiGetVersion failed with code 9");
    }
}
