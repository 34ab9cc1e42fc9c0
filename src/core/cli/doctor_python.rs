//! What `doctor` learns of PyTorch: whether there is one to compare with, and of which version.

use std::env;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::patience::{Said, at_most, run};
use crate::report::{Check, Standing};

/// Importing PyTorch from a cold disk takes its time.
const PATIENCE: Duration = Duration::from_secs(60);

const PYTORCH: &str = "PyTorch";
/// Not from the working directory, where a folder of that name may lie.
const IMPORT: &str = "import sys; sys.path[:] = [path for path in sys.path if path]; import torch; \
                      print(torch.__version__, sys.executable)";
/// How Python ends where no module is called so; where it is another's, that of an installed torch is missing.
const NO_TORCH: &str = "ModuleNotFoundError: No module named 'torch'";

/// The PyTorch that tests and `make bench` compare with, waited for as long as `patient` holds: the first of the engine's
/// version, else the first there is.
pub fn pytorch(engine: Option<&str>, patient: impl Fn() -> bool) -> Check {
    best(&interpreters(), engine, |python| import(python, &patient))
}

/// The version of libtorch that the engine has loaded or was built for, as its check tells it where it works:
/// `2.11.0+cu130 in /opt/lib`.
pub fn engine_version(checks: &[Check]) -> Option<String> {
    let works = |check: &&Check| check.name == "libtorch" && check.standing == Standing::Works;
    let check = checks.iter().find(works)?;
    let is_version =
        |word: &&str| word.starts_with(|letter: char| letter.is_ascii_digit()) && word.contains('.');
    let version = check.found.split([' ', ';']).find(is_version)?;
    Some(release(version).to_owned())
}

/// `2.11.0+cu130` is 2.11.0 built for CUDA 13.0.
fn release(version: &str) -> &str {
    version.split('+').next().unwrap_or(version)
}

/// What came of importing it.
#[derive(Debug, Clone, PartialEq)]
enum Import {
    Done {
        version: String,
        python: String,
    },
    /// There is no such interpreter, or it has no torch.
    Missing(String),
    /// There is one that cannot be imported.
    Broken(String),
}

fn best(interpreters: &[PathBuf], engine: Option<&str>, import: impl Fn(&Path) -> Import) -> Check {
    let (mut other, mut broken, mut without) = (None, Vec::new(), Vec::new());
    // A bare name is looked for where commands are.
    for python in interpreters.iter().filter(|path| path.components().count() == 1 || path.exists()) {
        let name = python.display();
        match import(python) {
            Import::Done { version, python } => {
                let Some(engine) = engine.filter(|engine| *engine != release(&version)) else {
                    return Check::works(PYTORCH, format!("{version} {python}"));
                };
                other = other.or_else(|| Some(of_another_version(&version, &python, engine)));
            }
            Import::Missing(why) => without.push(format!("{name}: {why}")),
            Import::Broken(why) => broken.push(format!("{name}: {why}")),
        }
    }
    other.unwrap_or_else(|| none(&broken, &without))
}

fn of_another_version(version: &str, python: &str, engine: &str) -> Check {
    let found = format!("{version} {python}, while the engine has libtorch {engine}");
    let way_out = "tests and benches that compare with it compare two libraries, and may fail for that alone: `make setup` \
                   installs the engine's in .venv";
    Check { way_out: Some(way_out.to_owned()), ..Check::works(PYTORCH, found) }
}

fn none(broken: &[String], without: &[String]) -> Check {
    match broken {
        [] => Check::absent(
            PYTORCH,
            without.join("; "),
            "only tests and benches compare with PyTorch: `make setup` installs it in .venv",
        ),
        broken => Check::fails(
            PYTORCH,
            broken.join("; "),
            "install it again, or `make setup`, which has one of its own in .venv; only tests and benches compare with it",
        ),
    }
}

fn import(python: &Path, patient: impl Fn() -> bool) -> Import {
    let soon = at_most(PATIENCE);
    match run(Command::new(python).args(["-c", IMPORT]), || patient() && soon()) {
        Ok(said) => imported(&said),
        Err(error) if error.kind() == ErrorKind::NotFound => Import::Missing(error.to_string()),
        Err(error) => Import::Broken(error.to_string()),
    }
}

fn imported(said: &Said) -> Import {
    let last = |text: &str| text.trim().lines().last().unwrap_or_default().to_owned();
    match said.status {
        None => Import::Broken(format!("it did not answer within {} s", PATIENCE.as_secs())),
        Some(status) if status.success() => match last(&said.stdout).split_once(' ') {
            Some((version, python)) => {
                Import::Done { version: version.to_owned(), python: python.to_owned() }
            }
            None => Import::Broken("it does not say its version".to_owned()),
        },
        Some(status) => match last(&said.stderr) {
            why if why == NO_TORCH => Import::Missing("it has no torch".to_owned()),
            why if why.is_empty() => Import::Broken(format!("it ended with {status} and said nothing")),
            why => Import::Broken(why),
        },
    }
}

/// The environment in use, that of the working directory, the system's.
fn interpreters() -> Vec<PathBuf> {
    let active = env::var_os("VIRTUAL_ENV").map(|folder| Path::new(&folder).join("bin/python"));
    active.into_iter().chain([".venv/bin/python".into(), "python3".into()]).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    fn done(version: &str) -> Import {
        Import::Done { version: version.to_owned(), python: "/bin/python".to_owned() }
    }

    /// Of two interpreters, where importing comes to this in the first and to that in the second.
    fn of_two(first: &Import, second: &Import) -> Check {
        let folder = env::temp_dir();
        let both = [folder.clone(), "python3".into(), folder.join("not/there")];
        best(&both, Some("2.11.0"), |python| if *python == folder { first.clone() } else { second.clone() })
    }

    fn missing() -> Import {
        Import::Missing("it has no torch".to_owned())
    }

    fn broken() -> Import {
        Import::Broken("OSError: libtorch_cpu.so: file too short".to_owned())
    }

    #[test]
    fn an_environment_without_pytorch_does_not_hide_another() {
        let check = of_two(&missing(), &done("2.11.0+cu130"));
        assert_eq!((check.standing, &*check.found), (Standing::Works, "2.11.0+cu130 /bin/python"));
        assert_eq!(check.way_out, None);
        let none = of_two(&missing(), &missing());
        let found = format!("{}: it has no torch; python3: it has no torch", env::temp_dir().display());
        assert_eq!((none.standing, none.found), (Standing::Absent, found));
    }

    #[test]
    fn one_that_is_there_and_broken_fails_unless_another_works() {
        let check = of_two(&missing(), &broken());
        assert_eq!((check.standing, check.needed), (Standing::Fails, false));
        assert_eq!(check.found, "python3: OSError: libtorch_cpu.so: file too short");
        assert!(check.way_out.is_some());
        assert_eq!(of_two(&broken(), &done("2.11.0")).standing, Standing::Works);
    }

    #[test]
    fn another_version_than_the_engines_is_told_with_what_it_means() {
        let check = of_two(&done("2.9.1+cu128"), &broken());
        assert_eq!(check.found, "2.9.1+cu128 /bin/python, while the engine has libtorch 2.11.0");
        assert!(check.way_out.unwrap().contains("compare two libraries"));
        let same = of_two(&done("2.9.1"), &done("2.11.0+cpu"));
        assert_eq!(
            (&*same.found, same.way_out),
            ("2.11.0+cpu /bin/python", None),
            "the engine's comes first"
        );
        let unknown = best(&["python3".into()], None, |_| done("2.9.1"));
        assert_eq!(unknown.way_out, None, "an engine that does not answer has no version");
    }

    #[test]
    fn the_engines_version_is_that_of_its_check() {
        let of =
            |found: &str| engine_version(&[Check::works("engine", "9"), Check::works("libtorch", found)]);
        assert_eq!(of("2.11.0+cu130 in /opt/3/lib, 2 threads").as_deref(), Some("2.11.0"));
        assert_eq!(of("built for 2.11.0; the one in /opt does not say").as_deref(), Some("2.11.0"));
        assert_eq!(of("2 threads, 2.11.0").as_deref(), Some("2.11.0"), "a number alone is none");
        assert_eq!(of("it says nothing"), None);
        for found in ["it ended with signal: 11", "2.10.0 in /opt/lib, but this was built for 2.11.0"] {
            let broken = Check::fails("libtorch", found, "please report this as a bug");
            assert_eq!(engine_version(&[broken]), None, "{found}");
        }
    }

    /// What is made of an interpreter that ended with this exit code or signal.
    fn said(raw: i32, stdout: &str, stderr: &str) -> Import {
        let [stdout, stderr] = [stdout, stderr].map(str::to_owned);
        imported(&Said { status: Some(ExitStatus::from_raw(raw)), stdout, stderr })
    }

    #[test]
    fn a_module_that_torch_lacks_is_told_from_a_torch_that_is_not_there() {
        let failed = 1 << 8;
        let missing = said(failed, "", "Traceback:\nModuleNotFoundError: No module named 'torch'\n");
        assert_eq!(missing, Import::Missing("it has no torch".to_owned()));
        for (import, words) in [
            (said(failed, "", "ModuleNotFoundError: No module named 'torch.version'"), "torch.version"),
            (said(failed, "", "Traceback:\nOSError: file too short\n"), "OSError: file too short"),
            (said(9, "", ""), "signal: 9"),
            (said(0, "2.11.0\n", ""), "does not say its version"),
        ] {
            assert!(matches!(&import, Import::Broken(why) if why.contains(words)), "{words}: {import:?}");
        }
        let python = "/a place/python".to_owned();
        let done = Import::Done { version: "2.11.0+cpu".to_owned(), python };
        assert_eq!(said(0, "a package that talks\n2.11.0+cpu /a place/python\n", ""), done);
    }
}
