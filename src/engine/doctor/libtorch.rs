//! libtorch itself, and the hook in its allocator.

use std::fs;
use std::path::Path;

use crate::device::libtorch_folder;
use crate::probe::{machine, self_test, torch_version};
use crate::report::{Check, threads};

pub const LIBTORCH: &str = "libtorch";
pub const REPORT: &str = "please report this as a bug";

/// Which libtorch this process has loaded, against the one that this was built for.
pub fn version() -> Check {
    let built = torch_version();
    let Some(folder) = libtorch_folder() else {
        return Check::fails(LIBTORCH, "it is not among this process's libraries", REPORT).needed();
    };
    check(&built, loaded_version(&folder), &folder).needed()
}

fn check(built: &str, loaded: Option<String>, folder: &Path) -> Check {
    let at = folder.display();
    match loaded {
        None => {
            Check::works(LIBTORCH, format!("built for {built}; the one in {at} does not say its version"))
        }
        // `2.11.0+cu130` is 2.11.0 built for CUDA 13.0.
        Some(loaded) if loaded.split('+').next() == Some(built) => {
            let threads = threads(machine().torch_threads.unwrap_or(1));
            Check::works(LIBTORCH, format!("{loaded} in {at}, {threads}"))
        }
        Some(loaded) => {
            let way_out = format!(
                "put libtorch {built} first in LD_LIBRARY_PATH, or build again with LIBTORCH set to this one"
            );
            Check::fails(LIBTORCH, format!("{loaded} in {at}, but this was built for {built}"), way_out)
        }
    }
}

/// As the wheel (`version.py`) or the archive (`build-version`) says beside the libraries' folder.
fn loaded_version(folder: &Path) -> Option<String> {
    let root = folder.parent()?;
    let wheel = fs::read_to_string(root.join("version.py")).ok();
    let line =
        wheel.and_then(|text| Some(text.lines().find(|line| line.starts_with("__version__"))?.to_owned()));
    let version = line.and_then(|line| Some(line.split(['\'', '"']).nth(1)?.to_owned()));
    version.or_else(|| Some(fs::read_to_string(root.join("build-version")).ok()?.trim().to_owned()))
}

pub const HOOK: &str = "allocator hook";
pub const WITHOUT_HOOK: &str = "please report this as a bug; `run --trace phases` works without the hook";

/// Whether the hook sees what is made, and files every byte.
pub fn hook() -> Check {
    match self_test() {
        Ok(test) if test.passed() => {
            Check::works(HOOK, format!("{} of {} tensors seen, difference 0 bytes", test.seen, test.made))
                .needed()
        }
        Ok(test) => {
            let found = format!(
                "{} of {} tensors seen, {} events dropped, difference {} bytes",
                test.seen, test.made, test.dropped_events, test.difference_bytes
            );
            Check::fails(HOOK, found, WITHOUT_HOOK).needed()
        }
        Err(error) => Check::fails(HOOK, error.to_string(), WITHOUT_HOOK).needed(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Standing;

    #[test]
    fn a_wheel_and_an_archive_say_their_version() {
        let root = tempfile::tempdir().unwrap();
        let lib = root.path().join("lib");
        assert_eq!(loaded_version(&lib), None);
        fs::write(root.path().join("build-version"), "2.11.0+cpu\n").unwrap();
        assert_eq!(loaded_version(&lib).as_deref(), Some("2.11.0+cpu"));
        fs::write(root.path().join("version.py"), "import x\n__version__ = '2.9.1+cu128'\n").unwrap();
        assert_eq!(loaded_version(&lib).as_deref(), Some("2.9.1+cu128"));
    }

    #[test]
    fn another_libtorch_than_it_was_built_for_fails() {
        let of = |loaded: Option<&str>| check("2.11.0", loaded.map(str::to_owned), Path::new("/opt/lib"));
        assert_eq!(of(Some("2.11.0+cu130")).standing, Standing::Works);
        assert_eq!(of(None).standing, Standing::Works);
        let other = of(Some("2.11.1"));
        assert_eq!(other.standing, Standing::Fails);
        assert!(other.found.contains("2.11.1 in /opt/lib") && other.found.contains("2.11.0"), "{other:?}");
    }
}
