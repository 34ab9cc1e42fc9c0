//! What keeps a sweep from being made.

use std::io;
use std::path::PathBuf;

use super::grid::GridError;
use crate::store::StoreError;

/// Why there is no sweep. That one of its runs fails is none: that is a result.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    #[error(transparent)]
    Grid(#[from] GridError),
    #[error("this program's own path is not known: {0}")]
    NoProgram(io::Error),
    #[error("{program} cannot be run: {source}")]
    Start { program: PathBuf, source: io::Error },
    #[error("cannot write {}: {source}; name another folder with --out", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{} exists already; give the sweep another name, or name another folder with --out", dir.display())]
    Exists { dir: PathBuf },
    #[error(
        "the sweep was begun with {begun} repeats, and {asked} are fewer; with more of them --resume adds to it"
    )]
    FewerRepeats { begun: usize, asked: usize },
    #[error("{} is not the folder of a sweep ({source}); name one that `stepledger sweep` made", dir.display())]
    NotASweep { dir: PathBuf, source: io::Error },
    #[error("{} cannot be read: {problem}; begin a new sweep", path.display())]
    Malformed { path: PathBuf, problem: String },
    #[error(
        "{} has version {found}, and this build reads {supported}; go on with the stepledger that made it, or begin \
         a new sweep",
        path.display()
    )]
    Version { path: PathBuf, found: u64, supported: u32 },
    #[error(
        "the sweep in {} was begun by stepledger {found}, and this is {ours}: their runs would not be comparable; \
         go on with that one, or begin a new sweep",
        dir.display()
    )]
    OtherStepledger { dir: PathBuf, found: String, ours: &'static str },
    #[error(
        "the runs of the sweep in {} were made on {begun}, and this is {here}: more of them would not be comparable; go \
         on there, or begin a new sweep",
        dir.display()
    )]
    OtherMachine { dir: PathBuf, begun: String, here: String },
    #[error(
        "the run in {} does not belong to those of its sweep: {why}; go on with what they were made with, or begin a new \
         sweep",
        dir.display()
    )]
    OtherSetting { dir: PathBuf, why: String },
    #[error(
        "{} is working on the sweep in {}; wait for it, or end it first", process(.holders), dir.display()
    )]
    Busy { dir: PathBuf, holders: Vec<u32> },
    #[error(
        "the run in {} is still going on, though its sweep has ended ({}); wait for it, or end it first",
        dir.display(), process(.holders)
    )]
    StillRunning { dir: PathBuf, holders: Vec<u32> },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SweepError {
    /// Whether it is what was asked for that is wrong, and not the machine.
    pub fn is_input(&self) -> bool {
        !matches!(self, SweepError::NoProgram(_) | SweepError::Start { .. })
    }
}

/// By their ids, as far as they can be seen.
fn process(holders: &[u32]) -> String {
    let ids: Vec<String> = holders.iter().map(u32::to_string).collect();
    match ids.as_slice() {
        [] => "another process".to_owned(),
        [id] => format!("process {id}"),
        _ => format!("one of the processes {}", ids.join(", ")),
    }
}
