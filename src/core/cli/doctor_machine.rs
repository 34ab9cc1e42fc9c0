//! What `doctor` looks at by itself: PyTorch, the calibration, room on the disk.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::machine;
use super::patience::{at_most, run};
use crate::report::{Check, file_bytes};
use crate::store::{Calibrations, MachineCalibration, free_bytes, home};

/// Importing PyTorch from a cold disk takes its time.
const PATIENCE: Duration = Duration::from_secs(60);
/// Less than this and a run may not be able to keep its records: thousands of steps take a few MiB.
const LEAST_FREE_BYTES: u64 = 64 << 20;

const PYTHON: &str = "PyTorch";
const IMPORT: &str = "import sys, torch; print(torch.__version__, sys.executable)";

/// The PyTorch that tests and `make bench` compare with, waited for as long as `patient` holds.
pub fn python(patient: impl Fn() -> bool) -> Check {
    let Some(python) =
        interpreters().into_iter().find(|path| path.components().count() == 1 || path.exists())
    else {
        return Check::not_run(PYTHON, "no interpreter was found");
    };
    let name = python.display().to_string();
    let soon = at_most(PATIENCE);
    match run(Command::new(&python).args(["-c", IMPORT]), || patient() && soon()) {
        Ok(said) if said.status.is_some_and(|status| status.success()) => {
            Check::works(PYTHON, said.stdout.trim().to_owned())
        }
        Ok(said) => {
            let why = said.stderr.trim().lines().last().unwrap_or("it did not answer").to_owned();
            absent_python(format!("{name}: {why}"))
        }
        Err(error) => absent_python(format!("{name}: {error}")),
    }
}

fn absent_python(found: String) -> Check {
    Check::absent(
        PYTHON,
        found,
        "only tests and benches compare with PyTorch: `make setup` installs it in .venv",
    )
}

/// The environment in use, the project's own, the system's.
fn interpreters() -> Vec<PathBuf> {
    let active = env::var_os("VIRTUAL_ENV").map(|folder| Path::new(&folder).join("bin/python"));
    active.into_iter().chain([".venv/bin/python".into(), "python3".into()]).collect()
}

const CALIBRATION: &str = "calibration";

/// What is known of this machine from before.
pub fn calibration() -> Check {
    let Some(home) = home() else {
        let way_out = "set STEPLEDGER_HOME to a folder to keep it in";
        return Check::absent(CALIBRATION, "there is no folder for it: HOME is not set", way_out);
    };
    let file = home.join("calibration.json").display().to_string();
    match Calibrations::load(&home) {
        Err(error) => {
            Check::fails(CALIBRATION, error.to_string(), "mend or remove the file, then calibrate again")
        }
        Ok(known) => match known.of(&machine::identity()).map(measured).filter(|parts| !parts.is_empty()) {
            Some(parts) => Check::works(CALIBRATION, format!("{file}: {}", parts.join("; "))),
            None => {
                let way_out = "`stepledger calibrate` and `stepledger calibrate --noise` measure it";
                Check::absent(CALIBRATION, format!("nothing is known of this machine in {file}"), way_out)
            }
        },
    }
}

fn measured(known: &MachineCalibration) -> Vec<String> {
    let rates = known.rates.iter().map(|rates| {
        let threads = rates.threads.map(|threads| format!(" with {threads} threads")).unwrap_or_default();
        format!("rates of {}{threads} ({})", rates.device, rates.measured_at.format("%Y-%m-%d"))
    });
    let noise = known.noise.iter().map(|noise| {
        format!("noise ±{:.2} % ({})", noise.half_width_pct, noise.measured_at.format("%Y-%m-%d"))
    });
    rates.chain(noise).collect()
}

const SPACE: &str = "room for runs";

/// Whether records can be written where runs go.
pub fn free_space(out: &Path) -> Check {
    let folder = out.display();
    match free_bytes(out) {
        Err(error) => Check::fails(
            SPACE,
            error.to_string(),
            "choose another folder with --out, or make this one writable",
        )
        .needed(),
        Ok(bytes) if bytes < LEAST_FREE_BYTES => {
            let found = format!("{} free for {folder}", file_bytes(bytes));
            Check::fails(SPACE, found, "remove runs (`stepledger rm`), or choose another folder with --out")
                .needed()
        }
        Ok(bytes) => Check::works(SPACE, format!("{} free for {folder}", file_bytes(bytes))).needed(),
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::report::Standing;
    use crate::store::Noise;

    #[test]
    fn there_is_room_where_a_folder_could_be_made() {
        let check = free_space(Path::new("./not/there/yet"));
        assert_eq!(check.standing, Standing::Works, "{check:?}");
        assert!(check.needed && check.found.contains("free for ./not/there/yet"), "{check:?}");
    }

    #[test]
    fn a_file_in_the_way_is_named() {
        let check = free_space(Path::new("/proc/version/runs"));
        assert_eq!(check.standing, Standing::Fails);
        assert!(check.found.contains("/proc/version") && check.way_out.is_some(), "{check:?}");
    }

    #[test]
    fn what_was_measured_is_listed() {
        let noise = Noise {
            device: None,
            measured_at: DateTime::UNIX_EPOCH,
            pairs: 5,
            half_width_pct: 1.25,
            pair_sd_pct: 1.0,
            mean_pct: 0.0,
            step_ms: 34.0,
            flags: Vec::new(),
        };
        let known = MachineCalibration { noise: vec![noise], ..MachineCalibration::default() };
        assert_eq!(measured(&known), ["noise ±1.25 % (1970-01-01)"]);
        assert_eq!(measured(&MachineCalibration::default()), [""; 0]);
    }
}
