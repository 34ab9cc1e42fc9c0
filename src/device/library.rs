//! Finds CUDA's compiler library beside the libtorch that this process has loaded, where no loader looks for it.

use std::fs;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::companions::is_missing;

/// The names that the compiler library has, newest first.
const NAMES: [&str; 2] = ["libnvrtc.so.13", "libnvrtc.so.12"];
/// A library that the compiler asks the loader for by name when it compiles.
const BUILTINS: &str = "libnvrtc-builtins.so.";

/// The compiler libraries that there are, or why one cannot be loaded, the nearest first: those that lie where it is looked
/// for, each by its path, and then whatever the system's loader has. A toolkit on the loader's path may be newer than the driver, while
/// libtorch's own compiler belongs to the CUDA that the driver serves.
pub(super) fn compilers() -> impl Iterator<Item = Result<Library, libloading::Error>> {
    let by_path = candidates(&looked()).into_iter().map(|file| {
        load_builtins(&file);
        open(&file)
    });
    let by_name = NAMES.iter().map(|name| (name, open(Path::new(name))));
    by_path.chain(by_name.filter_map(|(name, library)| match library {
        Err(error) if is_missing(name, &error) => None,
        library => Some(library),
    }))
}

/// The folders in which the compiler is looked for before the loader is asked.
pub(super) fn looked() -> Vec<PathBuf> {
    folders(libtorch_folder().as_deref(), std::env::var_os("CUDA_HOME"))
}

pub(crate) fn open(file: &Path) -> Result<Library, libloading::Error> {
    // SAFETY: NVIDIA's library, whose initialisers touch nothing of ours.
    unsafe { Library::open(Some(file), RTLD_NOW | RTLD_LOCAL) }
}

/// The folder of the libtorch that this process has loaded.
pub fn libtorch_folder() -> Option<PathBuf> {
    loaded_from("libtorch_cpu.so")
}

/// Where one of NVIDIA's libraries lies beside this process's libtorch or in the toolkit, if it does.
pub(super) fn companion(name: &str) -> Option<PathBuf> {
    let mut folders = looked();
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

fn candidates(folders: &[PathBuf]) -> Vec<PathBuf> {
    let files = folders.iter().flat_map(|folder| NAMES.iter().map(|name| folder.join(name)));
    files.filter(|file| file.exists()).collect()
}

/// Loads for good what the compiler will ask for by name. What cannot be loaded is left to the system's loader.
fn load_builtins(compiler: &Path) {
    let siblings = compiler.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten();
    let names_builtins =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(BUILTINS));
    let builtins = siblings.flatten().map(|entry| entry.path()).filter(names_builtins);
    builtins.filter_map(|file| open(&file).ok()).for_each(std::mem::forget);
}

#[cfg(test)]
mod tests {
    use super::super::error::DeviceError;
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
        assert!(candidates(&looked).is_empty());
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
        let found = candidates(&[folder.path().to_owned()]);
        assert_eq!(found, NAMES.map(|name| folder.path().join(name)));
    }
}
