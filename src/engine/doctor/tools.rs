//! What listens, and what is kept: tools attached from outside, CUPTI, the folder of compiled kernels.

use std::env;
use std::path::Path;

use crate::device::{Cache, cupti_version, nvtx_tool};
use crate::report::{Check, file_bytes};
use crate::store::free_bytes;

/// How tools say where the library is that listens to NVTX ranges.
const NVTX_TOOL: &str = "NVTX_INJECTION64_PATH";

pub fn checks() -> Vec<Check> {
    let tool = env::var(NVTX_TOOL).ok().filter(|path| !path.is_empty());
    vec![cupti(), nvtx(tool.as_deref()), kernels(Cache::standard().folder())]
}

fn cupti() -> Check {
    const NAME: &str = "CUPTI";
    match cupti_version() {
        Ok(version) => Check::works(NAME, format!("version {version}")),
        Err(error) => Check::absent(
            NAME,
            error.to_string(),
            "it comes with libtorch for CUDA; nothing here rests on it",
        ),
    }
}

fn nvtx(tool: Option<&str>) -> Check {
    const NAME: &str = "NVTX tool";
    match tool {
        None => Check::absent(
            NAME,
            "none is attached",
            "`nsys profile stepledger run …` attaches one, which sees phases and scopes",
        ),
        Some(path) => match nvtx_tool(Path::new(path)) {
            Ok(()) => Check::works(NAME, format!("{path} can be loaded and takes ranges")),
            Err(error) => {
                Check::fails(NAME, format!("{NVTX_TOOL} is {path}: {error}"), format!("unset {NVTX_TOOL}"))
            }
        },
    }
}

fn kernels(folder: Option<&Path>) -> Check {
    const NAME: &str = "kernel cache";
    let Some(folder) = folder else {
        return Check::absent(NAME, "there is no folder for it: HOME is not set", "set STEPLEDGER_HOME");
    };
    match free_bytes(folder) {
        Ok(bytes) => Check::works(NAME, format!("{}, {} free", folder.display(), file_bytes(bytes))),
        Err(error) => {
            let way_out = "set STEPLEDGER_HOME to a folder that can be written to; without one kernels are compiled again each time";
            Check::fails(NAME, error.to_string(), way_out)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Standing;

    /// A library of this one function, and nothing in it.
    fn library(folder: &Path, function: &str) -> String {
        let (source, file) = (folder.join("tool.c"), folder.join(format!("lib{function}.so")));
        std::fs::write(&source, format!("int {function}(void *p) {{ return p != 0; }}")).unwrap();
        let mut compiler = std::process::Command::new("cc");
        let built = compiler.args(["-shared", "-fPIC", "-o"]).arg(&file).arg(&source).status().unwrap();
        assert!(built.success());
        file.display().to_string()
    }

    #[test]
    fn a_tool_is_a_library_that_takes_ranges_and_not_any_file() {
        assert_eq!(nvtx(None).standing, Standing::Absent);
        let folder = tempfile::tempdir().unwrap();
        let tool = library(folder.path(), "InitializeInjectionNvtx2");
        let found = nvtx(Some(&tool));
        assert_eq!((found.standing, found.found.contains(&tool)), (Standing::Works, true), "{found:?}");
        let other = library(folder.path(), "something_else");
        for (path, why) in [
            ("/not/there.so", "/not/there.so"),
            ("/proc/self/status", "cannot be loaded"),
            (&*other, "has no InitializeInjectionNvtx2"),
        ] {
            let broken = nvtx(Some(path));
            assert_eq!(broken.standing, Standing::Fails, "{path}");
            assert!(broken.found.contains(why) && broken.way_out.is_some(), "{broken:?}");
        }
    }

    #[test]
    fn a_cache_that_cannot_be_written_to_is_told_and_not_needed() {
        let check = kernels(Some(Path::new("/proc/version/kernels")));
        assert_eq!((check.standing, check.needed), (Standing::Fails, false), "{check:?}");
        assert_eq!(kernels(None).standing, Standing::Absent);
    }
}
