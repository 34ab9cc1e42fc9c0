//! What keeps a sweep from being made.

use std::io;
use std::path::PathBuf;

use super::grid::GridError;
use super::spec::MOST_REPEATS;
use crate::record::shell_word;
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
    #[error("{asked} repeats: allowed: 1 to {MOST_REPEATS}")]
    Repeats { asked: usize },
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
        "the run in {} does not belong to those of its sweep: {why}; go on with what they were made with, and remove it: \
         {}{}",
        dir.display(), removal(std::slice::from_ref(dir)), or_the_others(.counted)
    )]
    OtherSetting {
        dir: PathBuf,
        why: String,
        /// The runs that are counted.
        counted: Vec<PathBuf>,
    },
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

/// So many runs that do not belong to a new one may be strange themselves.
const FEW: usize = 3;

fn or_the_others(counted: &[PathBuf]) -> String {
    match counted.len() {
        1..=FEW => format!("; or if they are the odd ones, remove them: {}", removal(counted)),
        _ => "; or begin a new sweep".to_owned(),
    }
}

/// The command that removes these runs.
fn removal(dirs: &[PathBuf]) -> String {
    let dirs: Vec<String> = dirs.iter().map(|dir| shell_word(&dir.to_string_lossy())).collect();
    format!("stepledger rm {}", dirs.join(" "))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_odd_runs_are_named_with_the_command_that_removes_them() {
        let told = |counted: usize| {
            let counted = (0..counted).map(|run| PathBuf::from(format!("my runs/r{run}"))).collect();
            let dir = PathBuf::from("my runs/new");
            SweepError::OtherSetting { dir, why: "it differs".to_owned(), counted }.to_string()
        };
        let one = told(1);
        assert!(one.contains("remove it: stepledger rm 'my runs/new'"), "{one}");
        assert!(one.ends_with("if they are the odd ones, remove them: stepledger rm 'my runs/r0'"), "{one}");
        assert!(told(3).ends_with("stepledger rm 'my runs/r0' 'my runs/r1' 'my runs/r2'"), "{}", told(3));
        assert!(told(11).ends_with("rm 'my runs/new'; or begin a new sweep"), "{}", told(11));
    }
}
