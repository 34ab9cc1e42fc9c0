//! Which folders are runs, and which files in them are ours.

use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use super::StoreError;
use super::flat::LedgerRow;
use super::schema::Table;
use super::writer::{OPEN_ALLOCATIONS_FILE, RUN_FILE};
use crate::record::{AllocationRow, ExperimentRow, PhaseRow, StepRow};

/// What the folder of a sweep is called, up to its own name.
const SWEEP: &str = "sweep-";

/// The folders of the runs in `out` and in its sweeps (`<out>/sweep-*/`), in the order of their names. One that
/// was killed before its `run.parquet` was written counts too; other folders are passed over, links are not followed.
///
/// # Errors
/// When `out` itself cannot be read.
pub fn run_folders(out: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut found = Vec::new();
    for folder in folders_in(out)? {
        if is_run_folder(&folder) {
            found.push(folder);
        } else if name(&folder).starts_with(SWEEP) {
            // A sweep that may not be read is passed over like any other folder.
            let runs = folders_in(&folder).unwrap_or_default();
            found.extend(runs.into_iter().filter(|run| is_run_folder(run)));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Whether a folder holds a run: a `run.parquet`, or nothing but files that a run leaves behind. Where that is nothing
/// at all, the folder's name must be one that runs are given.
pub fn is_run_folder(dir: &Path) -> bool {
    dir.join(RUN_FILE).is_file() || contents(dir).is_ok_and(|contents| is_left_by_a_run(dir, &contents))
}

/// Whether this is what a process leaves that ends before it writes `run.parquet`.
pub(super) fn is_left_by_a_run(dir: &Path, contents: &Contents) -> bool {
    contents.foreign.is_empty() && (!contents.ours.is_empty() || has_a_time(&name(dir)))
}

/// Whether there is a date and a time in a name, as in those that runs and sweeps are given: `20260131-120000`.
fn has_a_time(name: &str) -> bool {
    let digits = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    name.as_bytes().windows(15).any(|part| digits(&part[..8]) && part[8] == b'-' && digits(&part[9..]))
}

/// The folders of the sweeps in `out`.
pub(super) fn sweeps_in(out: &Path) -> Vec<PathBuf> {
    let folders = folders_in(out).unwrap_or_default();
    folders.into_iter().filter(|folder| name(folder).starts_with(SWEEP)).collect()
}

/// What lies in a run's folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Contents {
    /// The names of the files that a run writes, with their bytes.
    pub ours: Vec<(String, u64)>,
    /// The names of everything else: other files, folders, links.
    pub foreign: Vec<String>,
}

impl Contents {
    /// Of our files.
    pub fn bytes(&self) -> u64 {
        self.ours.iter().map(|(_, bytes)| bytes).sum()
    }
}

/// Looks into a run's folder.
pub fn contents(dir: &Path) -> Result<Contents, StoreError> {
    let unreadable = |source| StoreError::Read { path: dir.to_owned(), source };
    let mut contents = Contents::default();
    for entry in fs::read_dir(dir).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Of the entry itself: a link to a file is not ours.
        match entry.metadata() {
            Ok(file) if file.is_file() && is_ours(&name) => contents.ours.push((name, file.len())),
            // It was renamed or removed in between.
            Err(error) if error.kind() == ErrorKind::NotFound => (),
            _ => contents.foreign.push(name),
        }
    }
    contents.ours.sort_unstable();
    contents.foreign.sort_unstable();
    Ok(contents)
}

/// Whether a run writes a file of this name; those of a write in progress end in `.tmp`.
fn is_ours(name: &str) -> bool {
    let name = name.strip_suffix(".tmp").unwrap_or(name);
    name == RUN_FILE || name == OPEN_ALLOCATIONS_FILE || TABLES.iter().any(|table| is_part(table, name))
}

const TABLES: [&str; 5] =
    [StepRow::NAME, PhaseRow::NAME, LedgerRow::NAME, AllocationRow::NAME, ExperimentRow::NAME];

fn is_part(table: &str, name: &str) -> bool {
    let number = name.strip_prefix(table).and_then(|rest| rest.strip_prefix('-')?.strip_suffix(".parquet"));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

pub(super) fn folders_in(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let entries = fs::read_dir(dir).map_err(|source| StoreError::Read { path: dir.to_owned(), source })?;
    let folders = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    Ok(folders.map(|entry| entry.path()).collect())
}

/// Whether this is one plain component of a path, as the names of runs and baselines are.
pub(super) fn is_plain(name: &str) -> bool {
    let mut components = Path::new(name).components();
    matches!((components.next(), components.next()), (Some(Component::Normal(only)), None) if only == name)
}

/// The last part of a path.
pub(super) fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_runs_are_given_have_a_time() {
        for given in ["20260131-120000-gpt-1a2b3", "sweep-20260131-120000-c01-r1", "plan-20260131-120000-b8"]
        {
            assert!(has_a_time(given), "{given}");
        }
        for other in ["", "notes", "2026-01-31", "20260131", "20260131-12000", "20260131_120000"] {
            assert!(!has_a_time(other), "{other}");
        }
    }

    #[test]
    fn only_what_a_run_writes_is_ours() {
        for ours in [
            "run.parquet",
            "run.parquet.tmp",
            "steps-0001.parquet",
            "ledger-10000.parquet",
            "allocations-open.parquet",
            "experiments-0001.parquet.tmp",
        ] {
            assert!(is_ours(ours), "{ours}");
        }
        for foreign in [
            "notes.txt",
            "steps-.parquet",
            "steps-1a.parquet",
            "model-0001.parquet",
            ".tmp",
            "run.parquet.bak",
        ] {
            assert!(!is_ours(foreign), "{foreign}");
        }
    }
}
