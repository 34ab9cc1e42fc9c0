//! Finds CUDA's compiler library beside the libtorch that this process has loaded, where no loader looks for it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cudarc::nvrtc::sys;
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use super::error::DeviceError;

/// The names that the compiler library has, newest first; cudarc asks the loader for the same.
const NAMES: [&str; 2] = ["libnvrtc.so.13", "libnvrtc.so.12"];
/// A library that the compiler asks the loader for by name when it compiles.
const BUILTINS: &str = "libnvrtc-builtins.so.";

/// Makes CUDA's compiler usable, or says where it was looked for.
pub fn load_compiler() -> Result<(), DeviceError> {
    static PRESENT: OnceLock<bool> = OnceLock::new();
    let folders = || folders(libtorch_folder().as_deref(), std::env::var_os("CUDA_HOME"));
    let present = *PRESENT.get_or_init(|| {
        // One that is loaded already is found by its name from then on, so cudarc finds it too.
        if let Some(library) = find(&folders()) {
            preload(&library);
        }
        // SAFETY: looks for a library by name. cudarc panics on any call if it is missing, so ask first.
        unsafe { sys::is_culib_present() }
    });
    if present { Ok(()) } else { Err(DeviceError::NoCompiler { looked: folders() }) }
}

/// The folder of the libtorch that this process has loaded.
pub fn libtorch_folder() -> Option<PathBuf> {
    loaded_from("libtorch_cpu.so")
}

/// Where one of NVIDIA's libraries lies beside this process's libtorch or in the toolkit, if it does.
pub(super) fn companion(name: &str) -> Option<PathBuf> {
    let mut folders = folders(libtorch_folder().as_deref(), std::env::var_os("CUDA_HOME"));
    let extra = folders.iter().map(|folder| folder.join("../extras/CUPTI/lib64")).collect::<Vec<_>>();
    folders.extend(extra);
    folders.into_iter().map(|folder| folder.join(name)).find(|file| file.exists())
}

/// The folder of a library that this process has loaded.
fn loaded_from(library: &str) -> Option<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    folder_in(&maps, library)
}

/// In the list of a process's mappings, whose sixth column is the file.
fn folder_in(maps: &str, library: &str) -> Option<PathBuf> {
    let files = maps.lines().filter_map(|line| line.find('/').map(|at| Path::new(&line[at..])));
    let mut of_library = files.filter(|file| file.file_name().is_some_and(|name| name == library));
    of_library.next()?.parent().map(Path::to_owned)
}

/// Where the compiler may lie: beside libtorch (as in its archives), in the wheels beside PyTorch's, in the toolkit.
fn folders(libtorch: Option<&Path>, cuda_home: Option<std::ffi::OsString>) -> Vec<PathBuf> {
    let beside = libtorch.into_iter().flat_map(|lib| {
        let site = lib.ancestors().nth(2).unwrap_or(lib).join("nvidia");
        [lib.to_owned(), site.join("cu13/lib"), site.join("cuda_nvrtc/lib")]
    });
    beside.chain(cuda_home.map(|home| Path::new(&home).join("lib64"))).collect()
}

fn find(folders: &[PathBuf]) -> Option<PathBuf> {
    let files = folders.iter().flat_map(|folder| NAMES.iter().map(|name| folder.join(name)));
    files.into_iter().find(|file| file.exists())
}

/// Loads the compiler for good, and before it the library that it will ask for. What cannot be loaded is left to the
/// system's loader.
fn preload(library: &Path) {
    let siblings = library.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten();
    let names_builtins =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(BUILTINS));
    let builtins = siblings.flatten().map(|entry| entry.path()).filter(names_builtins);
    for file in builtins.chain([library.to_owned()]) {
        // SAFETY: NVIDIA's libraries, whose initialisers touch nothing of ours, and which stay loaded.
        if let Ok(library) = unsafe { Library::open(Some(file), RTLD_NOW | RTLD_GLOBAL) } {
            std::mem::forget(library);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
7f00-7f01 r--p 00000000 08:01 1 /usr/lib/libc.so.6
7f02-7f03 r--p 00000000 08:01 2 /opt/my venv/site-packages/torch/lib/libtorch_cpu.so
7f04-7f05 rw-p 00000000 00:00 0 [heap]
";

    #[test]
    fn the_compiler_is_looked_for_beside_the_libtorch_in_use() {
        let lib = folder_in(MAPS, "libtorch_cpu.so").unwrap();
        assert_eq!(lib, Path::new("/opt/my venv/site-packages/torch/lib"));
        assert_eq!(folder_in(MAPS, "libtorch.so"), None);
        let looked = folders(Some(&lib), Some("/usr/local/cuda".into()));
        assert!(looked.contains(&"/opt/my venv/site-packages/nvidia/cu13/lib".into()), "{looked:?}");
        assert!(looked.contains(&"/usr/local/cuda/lib64".into()), "{looked:?}");
        assert!(folders(None, None).is_empty());
    }

    #[test]
    fn what_is_missing_is_named_with_the_way_out() {
        let empty = tempfile::tempdir().unwrap();
        let looked = vec![empty.path().to_owned()];
        assert_eq!(find(&looked), None);
        let message = DeviceError::NoCompiler { looked }.to_string();
        let folder = empty.path().display().to_string();
        for word in ["libnvrtc.so.13", &folder, "nvidia-cuda-nvrtc", "LD_LIBRARY_PATH", "--adamw fused"] {
            assert!(message.contains(word), "{word}: {message}");
        }
    }

    #[test]
    fn the_newest_of_several_compilers_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        for name in NAMES {
            fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(find(&[folder.path().to_owned()]), Some(folder.path().join("libnvrtc.so.13")));
    }
}
