//! What listens, and what is kept: tools attached from outside, CUPTI, the folder of compiled kernels.

use std::env;
use std::path::Path;

use crate::device::{Cache, cupti_version};
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
        Some(path) if Path::new(path).is_file() => Check::works(NAME, format!("{path} is attached")),
        Some(path) => Check::fails(
            NAME,
            format!("{NVTX_TOOL} is {path}, which is no file"),
            format!("unset {NVTX_TOOL}"),
        ),
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

    #[test]
    fn a_tool_that_is_no_file_is_told() {
        assert_eq!(nvtx(None).standing, Standing::Absent);
        assert_eq!(nvtx(Some("/proc/self/exe")).standing, Standing::Works);
        let broken = nvtx(Some("/not/there.so"));
        assert_eq!(broken.standing, Standing::Fails);
        assert!(broken.found.contains("/not/there.so") && broken.way_out.is_some(), "{broken:?}");
    }

    #[test]
    fn a_cache_that_cannot_be_written_to_is_told_and_not_needed() {
        let check = kernels(Some(Path::new("/proc/version/kernels")));
        assert_eq!((check.standing, check.needed), (Standing::Fails, false), "{check:?}");
        assert_eq!(kernels(None).standing, Standing::Absent);
    }
}
