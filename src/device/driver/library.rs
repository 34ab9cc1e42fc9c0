//! The driver's library, looked for once.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::sync::OnceLock;

use libloading::os::unix::Library;

use super::super::companions::is_missing;
use super::super::library::open;
use super::error::NoDriver;

/// The first is the one by which CUDA's runtime finds the driver, and with it libtorch, whose contexts and streams are worked
/// with. The other is made for linking: it leads to the same library, or to a stub.
const NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

/// Stays loaded for good.
pub struct DriverLibrary {
    library: Library,
    path: String,
}

/// The driver's library.
///
/// # Errors
/// Where there is none that can be loaded.
pub fn library() -> Result<&'static DriverLibrary, NoDriver> {
    static FOUND: OnceLock<Result<DriverLibrary, NoDriver>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let opened = NAMES.iter().map(|&name| (name, open(Path::new(name))));
        first(opened).map(DriverLibrary::located)
    });
    found.as_ref().map_err(NoDriver::clone)
}

/// Whether there is one, found without the code under test.
#[cfg(test)]
pub fn is_loadable() -> bool {
    NAMES.iter().any(|name| open(Path::new(name)).is_ok())
}

/// The first that can be loaded, or why there is none.
fn first<L>(
    opened: impl Iterator<Item = (&'static str, Result<L, libloading::Error>)>,
) -> Result<L, NoDriver> {
    let mut reasons = Vec::new();
    for (name, opened) in opened {
        match opened {
            Ok(library) => return Ok(library),
            Err(why) if is_missing(name, &why) => {}
            Err(why) => reasons.push(why.to_string()),
        }
    }
    match reasons.is_empty() {
        true => Err(NoDriver::NotFound),
        false => Err(NoDriver::Broken { reasons: reasons.join("; ") }),
    }
}

impl DriverLibrary {
    fn located(library: Library) -> DriverLibrary {
        let handle = library.into_raw();
        let path = path_of(handle).unwrap_or_else(|| NAMES[0].to_owned());
        // SAFETY: the handle is that of the library, which was not closed.
        DriverLibrary { library: unsafe { Library::from_raw(handle) }, path }
    }

    /// The function that the library has by the first of these names.
    ///
    /// # Safety
    /// The driver declares the functions of these names as an `F`.
    pub unsafe fn function<F: Copy>(&self, names: &[&'static str]) -> Result<F, NoDriver> {
        // SAFETY: as the caller promises.
        let found = names.iter().find_map(|name| unsafe { self.library.get::<F>(name.as_bytes()) }.ok());
        found.map(|function| *function).ok_or_else(|| NoDriver::Lacks {
            library: self.path.clone(),
            function: names.last().unwrap_or(&"").to_owned(),
        })
    }
}

/// As link.h declares it, as far as it is public.
#[repr(C)]
struct LinkMap {
    address: usize,
    name: *const c_char,
}

const RTLD_DI_LINKMAP: c_int = 2;

unsafe extern "C" {
    fn dlinfo(handle: *mut c_void, request: c_int, info: *mut *const LinkMap) -> c_int;
}

/// Where the loader has found a library.
fn path_of(handle: *mut c_void) -> Option<String> {
    let mut map: *const LinkMap = std::ptr::null();
    // SAFETY: the handle is one of an open library; this request writes one pointer to a place of ours.
    let failed = unsafe { dlinfo(handle, RTLD_DI_LINKMAP, &raw mut map) };
    // SAFETY: the loader's own entry of the library, which stays while that is open, as does the text in it.
    let name = unsafe { map.as_ref().filter(|map| failed == 0 && !map.name.is_null())?.name };
    // SAFETY: as above.
    Some(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()).filter(|path| !path.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_lacks_a_function_is_named_with_its_path() {
        let library = DriverLibrary::located(open(Path::new("libc.so.6")).unwrap());
        // SAFETY: never called.
        let error = unsafe { library.function::<extern "C" fn()>(&["cuNew_v2", "cuOld"]) }.unwrap_err();
        let NoDriver::Lacks { library: path, function } = &error else { panic!("{error:?}") };
        assert!(path.starts_with('/') && path.ends_with("libc.so.6"), "{path}");
        assert_eq!(*function, "cuOld", "which every driver has");
        // SAFETY: libc declares it so.
        let found = unsafe { library.function::<extern "C" fn() -> c_int>(&["cuNew", "getpid"]) }.unwrap();
        assert_eq!(found(), std::process::id() as c_int);
    }

    #[test]
    fn a_driver_that_is_broken_is_told_from_none() {
        let load = |name: &'static str| (name, open(Path::new(name)));
        assert_eq!(first([load("libcuda.so.none")].into_iter()).map(|_| ()), Err(NoDriver::NotFound));
        let broken = first([load("libcuda.so.none"), load("/dev/null")].into_iter()).map(|_| ()).unwrap_err();
        assert!(
            matches!(&broken, NoDriver::Broken { reasons } if reasons.contains("/dev/null")),
            "{broken:?}"
        );
        assert!(first([load("/dev/null"), load("libc.so.6")].into_iter()).is_ok(), "the next one does");
    }
}
