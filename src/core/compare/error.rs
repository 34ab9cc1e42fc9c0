//! What cannot be compared: each error names the run and the way out.

use std::path::PathBuf;

use crate::record::{LackingSteps, RunStatus};
use crate::stats::SURE_STEPS;
use crate::store::StoreError;

/// How many runs an error tells about.
const LISTED: usize = 5;

/// Why two sides cannot be compared at all.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    #[error(transparent)]
    Store(#[from] StoreError),

    #[error(
        "no run, folder of runs or baseline in {} is called {name:?}; {}",
        out.display(),
        if known.is_empty() { "name one, or another folder with --out".to_owned() } else { format!("there are: {known}") }
    )]
    NothingCalled { name: String, out: PathBuf, known: String },

    #[error("run {run} cannot be compared: {why}")]
    Unusable { run: String, why: Unusable },

    #[error("no run in {name} can be compared: {}", some_of(reasons))]
    NothingUsable { name: String, reasons: Vec<String> },

    #[error(
        "the runs in {name} have several configurations: {} vary; keep the repeats of one configuration in a folder \
         of their own, or name a single run",
        fields.join(", ")
    )]
    SeveralConfigurations { name: String, fields: Vec<String> },

    #[error("run {run} is on both sides; a run says nothing about itself: name another one")]
    SameRun { run: String },
}

/// Why a run is no repeat.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Unusable {
    #[error(
        "it is still going on, or was killed (its status is `running`); wait for its end, or run it again"
    )]
    Unfinished,

    #[error("it did not complete: {status}{}; run it again", reason.as_ref().map(|why| format!(", {why}")).unwrap_or_default())]
    Ended { status: RunStatus, reason: Option<String> },

    #[error("{0}; bring the files of the others back to it, or run it again")]
    Lacking(#[from] LackingSteps),

    #[error("it has no measured step ({steps} of warm-up); run it with --steps {SURE_STEPS} or more")]
    NoMeasuredStep { steps: usize },

    #[error(
        "its steps did not wait for the device often enough for one step's time to be known (which is from one wait to \
         the next); run it with a lower --sync-every, or more --steps"
    )]
    NoWholeCycle,

    #[error(
        "no whole cycle of accumulation, from one wait for the device to another, lies within its measured steps; run it \
         with more --steps"
    )]
    NoWholeUpdate,

    #[error(
        "its steps lie in cycles of many lengths, {}, and those of no one length hold most of them: a few picked ones speak \
         for no run; let it keep one rhythm",
        if *accumulates { "of accumulation" } else { "from one wait for the device to the next" }
    )]
    Uneven { accumulates: bool },

    #[error("step {step} took {wall_ns} ns, which is no time; run it again")]
    NoTime { step: i64, wall_ns: i64 },

    #[error("it is a copy of run {of}, which is counted already; run it again to have another repeat")]
    Copy { of: String },

    #[error("{0}")]
    Unreadable(String),
}

fn some_of(reasons: &[String]) -> String {
    let rest = reasons.len().saturating_sub(LISTED);
    let rest = if rest > 0 { format!("; and {rest} more") } else { String::new() };
    reasons.iter().take(LISTED).map(String::as_str).collect::<Vec<_>>().join("; ") + &rest
}
