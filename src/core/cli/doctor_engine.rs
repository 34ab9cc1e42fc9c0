//! What `doctor` learns about the engine: where it is, and what it says when it is asked.

use std::env;
use std::process::Command;
use std::time::Duration;

use super::launch::find;
use super::patience::{Said, at_most, run};
use crate::report::Check;

/// Loading libtorch takes a second, starting a GPU's driver several.
const PATIENCE: Duration = Duration::from_secs(120);

/// The engine itself, and what it has looked at.
pub fn checks() -> Vec<Check> {
    let path = match find() {
        Ok(path) => path.display().to_string(),
        Err(error) => {
            let way_out = "build it (`cargo build --release`), and keep it beside the program";
            return vec![Check::fails("engine", format!("{error:#}"), way_out).needed()];
        }
    };
    match ask() {
        Ok(found) => {
            let mut checks = vec![Check::works("engine", path).needed()];
            checks.extend(found);
            checks
        }
        Err(why) => vec![Check::fails("engine", why.clone(), way_out(&why)).needed()],
    }
}

/// Has the engine look, in a process of its own.
fn ask() -> Result<Vec<Check>, String> {
    let program =
        env::current_exe().map_err(|error| format!("this program's own path is not known: {error}"))?;
    let said = run(Command::new(program).args(["doctor", "--engine"]), at_most(PATIENCE));
    answer(&said.map_err(|error| format!("it cannot be asked: {error}"))?)
}

/// What it found, or what became of it.
fn answer(said: &Said) -> Result<Vec<Check>, String> {
    let complaint = said.stderr.trim();
    let complaint = complaint.strip_prefix("stepledger: ").unwrap_or(complaint);
    match said.status {
        None => Err(format!("it did not answer within {} s", PATIENCE.as_secs())),
        Some(status) if status.success() => {
            serde_json::from_str(&said.stdout).map_err(|error| format!("its answer cannot be read: {error}"))
        }
        Some(status) if complaint.is_empty() => Err(format!("it ended with {status} and said nothing")),
        Some(_) => Err(complaint.to_owned()),
    }
}

fn way_out(why: &str) -> &'static str {
    if why.contains("cannot open shared object file") {
        "put the folder of the library named here (libtorch's `lib`) into LD_LIBRARY_PATH, or build again with LIBTORCH set"
    } else if why.contains("undefined symbol") {
        "this libtorch is not the one it was built for: build again with LIBTORCH set to the one in use"
    } else if why.contains("without libtorch") {
        "build it with the feature `torch`, which is on by default"
    } else {
        "build program and engine again, together (`cargo build --release`)"
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    fn said(raw: Option<i32>, stdout: &str, stderr: &str) -> Said {
        Said { status: raw.map(ExitStatus::from_raw), stdout: stdout.to_owned(), stderr: stderr.to_owned() }
    }

    #[test]
    fn what_the_engine_finds_is_taken_over() {
        let checks = vec![Check::works("libtorch", "2.11.0").needed()];
        let text = serde_json::to_string(&checks).unwrap();
        assert_eq!(answer(&said(Some(0), &text, "a warning")), Ok(checks));
    }

    #[test]
    fn an_engine_that_does_not_answer_is_a_finding() {
        // A raw status below 256 is the number of the signal that ended it.
        for (raw, stdout, stderr, words) in [
            (None, "", "", "did not answer within 120 s"),
            (Some(11), "", "", "signal: 11"),
            (Some(0), "no JSON", "", "cannot be read"),
            (
                Some(1 << 8),
                "",
                "stepledger: libtorch_cpu.so: cannot open shared object file",
                "libtorch_cpu.so",
            ),
        ] {
            let why = answer(&said(raw, stdout, stderr)).unwrap_err();
            assert!(why.contains(words) && !why.contains("stepledger:"), "{words}: {why}");
        }
    }

    #[test]
    fn the_way_out_fits_the_failure() {
        for (why, words) in [
            ("libtorch_cpu.so: cannot open shared object file: No such file", "LD_LIBRARY_PATH"),
            ("/a/libstepledger.so: undefined symbol: _ZN2at3addE", "LIBTORCH set to the one in use"),
            ("/a/libstepledger.so was built without libtorch and cannot train", "feature `torch`"),
            ("it ended with signal: 11", "again, together"),
        ] {
            assert!(way_out(why).contains(words), "{why}");
        }
    }
}
