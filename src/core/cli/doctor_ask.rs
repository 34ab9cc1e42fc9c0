//! A process of the engine that is asked what it finds, and how that process ended.

use std::cell::Cell;
use std::env;
use std::process::Command;
use std::time::{Duration, Instant};

use super::doctor_answers::{Heard, Listener};
use super::patience::{Said, at_most, run};
use crate::sweep::lead;

/// Loading libtorch from a cold disk and starting the driver of many GPUs may each take this long.
const PATIENCE_EACH: Duration = Duration::from_secs(60);
const PATIENCE_IN_ALL: Duration = Duration::from_secs(180);

/// How tools say where the library is that listens to NVTX ranges.
pub const NVTX_VARIABLE: &str = "NVTX_INJECTION64_PATH";
/// The check of that library, which is loaded into each run.
pub const NVTX_TOOL: &str = "NVTX tool";
/// The way out of all that it can do.
pub const UNSET_NVTX_TOOL: &str = "unset NVTX_INJECTION64_PATH";

/// What a process of the engine has told, and how it ended.
#[derive(Debug)]
pub struct Asked {
    pub heard: Heard,
    pub how: Ended,
    pub end: String,
    /// The tool that was attached to it.
    pub tool: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// With exit status 0, which is no good end of one that was not done.
    Well,
    Ill,
    /// Nobody waits for this or a further process any longer, whatever it was looking at.
    OutOfTime,
}

/// Why a process is waited for no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    Interrupted,
    InAll,
    BetweenLines,
}

/// Asks one process after the other, as long as `patient` holds and there is time for all of them.
pub fn asking(patient: impl Fn() -> bool) -> impl Fn(&[String]) -> Result<Asked, String> {
    let in_all = at_most(PATIENCE_IN_ALL);
    move |fatal| {
        ask(fatal, || match () {
            () if !patient() => Some(Over::Interrupted),
            () if !in_all() => Some(Over::InAll),
            () => None,
        })
    }
}

/// Has the engine look at what comes behind those things, in a process of its own, which ends with this one.
fn ask(fatal: &[String], over: impl Fn() -> Option<Over>) -> Result<Asked, String> {
    let program =
        env::current_exe().map_err(|error| format!("this program's own path is not known: {error}"))?;
    let unasked = |error| format!("it cannot be asked: {error}");
    let listener = Listener::new().map_err(unasked)?;
    let mut command = Command::new(program);
    command.args(["doctor", "--engine", &listener.number().to_string()]);
    command.args(fatal.iter().flat_map(|name| ["--fatal", name]));
    lead(&mut command);
    let mut tool = env::var(NVTX_VARIABLE).ok().filter(|path| !path.is_empty());
    if fatal.iter().any(|name| name == NVTX_TOOL) {
        // It is loaded with the first range, whatever is looked at then.
        command.env_remove(NVTX_VARIABLE);
        tool = None;
    }
    let (between_lines, why) = (between_lines(&listener), Cell::new(None));
    let patient = || {
        why.set(over().or_else(|| (!between_lines()).then_some(Over::BetweenLines)));
        why.get().is_none()
    };
    let said = run(&mut command, patient).map_err(unasked)?;
    let (how, end) = end(&said, why.get());
    Ok(Asked { heard: Heard::of(listener.lines().map_err(unasked)?), how, end, tool })
}

/// Patience that begins anew with each line.
fn between_lines(listener: &Listener) -> impl Fn() -> bool {
    let last = Cell::new((0, Instant::now()));
    move || {
        let bytes = listener.bytes();
        if bytes > last.get().0 {
            last.set((bytes, Instant::now()));
        }
        last.get().1.elapsed() < PATIENCE_EACH
    }
}

/// How a process ended, in a line: by itself, or by an end of the patience with it.
fn end(said: &Said, why: Option<Over>) -> (Ended, String) {
    let complaint = said.stderr.trim().lines().last().unwrap_or_default();
    let complaint = complaint.strip_prefix("stepledger: ").unwrap_or(complaint);
    match (said.status, why) {
        (None, Some(Over::Interrupted)) => (Ended::OutOfTime, "it was interrupted".to_owned()),
        (None, Some(Over::InAll)) => {
            let why =
                format!("the {} s that all checks of the engine have are over", PATIENCE_IN_ALL.as_secs());
            (Ended::OutOfTime, why)
        }
        (None, _) => (Ended::Ill, format!("nothing came of it within {} s", PATIENCE_EACH.as_secs())),
        (Some(status), _) => {
            let how = if status.success() { Ended::Well } else { Ended::Ill };
            (
                how,
                match status.code() {
                    _ if complaint.is_empty() => format!("the process ended with {status} and said nothing"),
                    Some(1..) => complaint.to_owned(),
                    _ => format!("the process ended with {status}: {complaint}"),
                },
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    fn said(raw: Option<i32>, stderr: &str) -> Said {
        Said {
            status: raw.map(ExitStatus::from_raw),
            stdout: "a tool that talks".to_owned(),
            stderr: stderr.to_owned(),
        }
    }

    #[test]
    fn how_a_process_ended_is_told_in_a_line() {
        // A raw status below 256 is the number of the signal that ended it.
        for (raw, stderr, how, words) in [
            (11, "", Ended::Ill, "signal: 11"),
            (6, "a tool that talks\nterminate called", Ended::Ill, "(SIGABRT): terminate called"),
            (0, "", Ended::Well, "exit status: 0 and said nothing"),
            (
                1 << 8,
                "a tool that talks\nstepledger: libtorch_cpu.so: cannot open",
                Ended::Ill,
                "libtorch_cpu.so: cannot open",
            ),
        ] {
            let (was, end) = end(&said(Some(raw), stderr), None);
            assert_eq!(was, how, "{end}");
            assert!(end.contains(words) && !end.contains("stepledger:") && !end.contains("talks"), "{end}");
        }
    }

    #[test]
    fn the_patience_that_ended_is_the_one_that_is_told() {
        for (why, how, words) in [
            (Over::BetweenLines, Ended::Ill, "within 60 s"),
            (Over::InAll, Ended::OutOfTime, "the 180 s that all checks"),
            (Over::Interrupted, Ended::OutOfTime, "interrupted"),
        ] {
            let (was, end) = end(&said(None, ""), Some(why));
            assert!(was == how && end.contains(words), "{why:?}: {was:?}, {end}");
        }
    }
}
