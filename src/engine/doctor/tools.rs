//! What listens, and what is kept: tools attached from outside, CUPTI, the folder of compiled kernels.

use std::env;
use std::path::Path;

use stepledger_core::cli::{NVTX_TOOL, NVTX_VARIABLE, UNSET_NVTX_TOOL};

use crate::device::{Cache, CompanionError, cupti_version, nvtx_tool};
use crate::probe::self_test;
use crate::report::{Check, file_bytes};
use crate::store::free_bytes;

pub const CUPTI: &str = "CUPTI";
pub const CUPTI_COMES_WITH: &str = "it comes with libtorch for CUDA; nothing here rests on it";

pub fn cupti() -> Check {
    of_cupti(cupti_version())
}

fn of_cupti(version: Result<u32, CompanionError>) -> Check {
    match version {
        Ok(version) => Check::works(CUPTI, format!("version {version}")),
        Err(error @ CompanionError::NotFound { .. }) => {
            Check::absent(CUPTI, error.to_string(), CUPTI_COMES_WITH)
        }
        Err(error) => Check::fails(CUPTI, error.to_string(), CUPTI_COMES_WITH),
    }
}

/// The tool that this process was given, which sees a probe as it would see that of a run.
pub fn attached() -> Check {
    let tool = env::var(NVTX_VARIABLE).ok().filter(|path| !path.is_empty());
    let check = nvtx(tool.as_deref());
    if tool.is_some() {
        // A tool that ends its process does so here. What else comes of the probe is told as what the hook is found to be.
        let _ = self_test();
    }
    check
}

fn nvtx(tool: Option<&str>) -> Check {
    match tool {
        None => Check::absent(
            NVTX_TOOL,
            "none is attached",
            "`nsys profile stepledger run …` attaches one, which sees phases and scopes",
        ),
        Some(path) => match nvtx_tool(Path::new(path)) {
            Ok(()) => Check::works(NVTX_TOOL, format!("{path} can be loaded and takes ranges")),
            Err(error) => {
                Check::fails(NVTX_TOOL, format!("{NVTX_VARIABLE} is {path}: {error}"), UNSET_NVTX_TOOL)
            }
        },
    }
}

pub const CACHE: &str = "kernel cache";
pub const OTHER_HOME: &str = "set STEPLEDGER_HOME to a folder that can be written to; without one kernels are compiled again each time";

/// The folder of compiled kernels.
pub fn kernels() -> Check {
    kernels_in(Cache::standard().folder())
}

fn kernels_in(folder: Option<&Path>) -> Check {
    let Some(folder) = folder else {
        return Check::absent(CACHE, "there is no folder for it: HOME is not set", "set STEPLEDGER_HOME");
    };
    match free_bytes(folder) {
        Ok(bytes) => Check::works(CACHE, format!("{}, {} free", folder.display(), file_bytes(bytes))),
        Err(error) => Check::fails(CACHE, error.to_string(), OTHER_HOME),
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
    fn a_cupti_that_is_broken_is_told_from_none() {
        let library = "libcupti.so.13";
        assert_eq!(of_cupti(Err(CompanionError::NotFound { library })).standing, Standing::Absent);
        let lacks = of_cupti(Err(CompanionError::NoFunction { library, function: "cuptiGetVersion" }));
        assert_eq!((lacks.standing, lacks.needed), (Standing::Fails, false));
    }

    #[test]
    fn a_cache_that_cannot_be_written_to_is_told_and_not_needed() {
        let check = kernels_in(Some(Path::new("/proc/version/kernels")));
        assert_eq!((check.standing, check.needed), (Standing::Fails, false), "{check:?}");
        assert_eq!(kernels_in(None).standing, Standing::Absent);
    }
}
