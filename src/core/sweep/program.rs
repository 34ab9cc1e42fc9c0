//! The `stepledger` program as a thing that makes runs, each in a process of its own.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::error::SweepError;
use super::parent;
use crate::record::RunStatus;
use crate::store::Dataset;

/// What is kept of a process's complaints: their end.
const COMPLAINT_BYTES: usize = 4096;

/// The exit code that says that the flags were wrong.
const REFUSED: i32 = 2;

/// A `stepledger` that can train.
#[derive(Debug, Clone)]
pub struct Program {
    path: PathBuf,
}

/// A run that has been tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    /// The run's folder; it may be missing where the run never began.
    pub dir: PathBuf,
    pub status: RunStatus,
    /// Why it ended as it did, where it is not complete.
    pub reason: Option<String>,
    /// What it was told was wrong: it would be refused again.
    pub refused: bool,
    pub took: Duration,
}

impl Program {
    /// The program that is running, which must be `stepledger` itself: each run is this very file, started with `run`
    /// before its flags. A program of your own that sweeps names the `stepledger` to use with [`at`](Self::at), or it
    /// would start itself over and over.
    pub fn this() -> Result<Self, SweepError> {
        std::env::current_exe().map(Program::at).map_err(SweepError::NoProgram)
    }

    /// The program at this path; a bare name is looked for where commands are.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Program { path: path.into() }
    }

    /// Trains with these flags of `stepledger run`, into `<out>/<run_id>/`, and waits for it. The run ends with the
    /// thread that waits for it.
    ///
    /// A run that fails is a result. An error is that there could be no run at all: the program cannot be
    /// started, or not waited for.
    pub fn run(&self, out: &Path, run_id: &str, args: &[String]) -> Result<Ran, SweepError> {
        self.run_with(Stdio::null(), out, run_id, args)
    }

    /// As [`run`](Self::run); `stdin` stays open as long as the run goes on.
    pub(super) fn run_with(
        &self,
        stdin: Stdio,
        out: &Path,
        run_id: &str,
        args: &[String],
    ) -> Result<Ran, SweepError> {
        let begin = Instant::now();
        let failed = |source| SweepError::Start { program: self.path.clone(), source };
        let mut command = Command::new(&self.path);
        command.arg("run").args(args).args(["--quiet", "--json", "--run-id", run_id]);
        command.args([OsString::from("--out"), out.into()]);
        command.stdin(stdin).stdout(Stdio::null());
        parent::lead(&mut command);
        let output = command.output().map_err(failed)?;
        let dir = out.join(run_id);
        let told = complaint(&output.stderr);
        let (status, reason) = match Dataset::open(&dir).map(|dataset| dataset.run().clone()) {
            // It began, and was ended by something that left it no time to say so.
            Ok(run) if run.status == RunStatus::Running => {
                (RunStatus::Interrupted, Some(ended(output.status, told)))
            }
            Ok(run) => (run.status, run.reason.or_else(|| Some(ended(output.status, told)))),
            Err(_) => (RunStatus::Failed, Some(ended(output.status, told))),
        };
        let reason = reason.filter(|_| status != RunStatus::Complete);
        // A refusal leaves no folder. Where there is one it was in the way, which says nothing of the flags.
        let refused = output.status.code() == Some(REFUSED) && !dir.exists();
        Ok(Ran { dir, status, reason, refused, took: begin.elapsed() })
    }
}

fn ended(status: ExitStatus, told: String) -> String {
    if told.is_empty() { format!("the process ended with {status} and said nothing") } else { told }
}

/// The end of what a process has said on stderr, without the program's name before it.
fn complaint(stderr: &[u8]) -> String {
    let end = &stderr[stderr.len().saturating_sub(COMPLAINT_BYTES)..];
    let text = String::from_utf8_lossy(end);
    let text = text.trim();
    text.strip_prefix("stepledger: ").unwrap_or(text).to_owned()
}
