//! Which folder a run is in.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::folders::{is_run_folder, name, run_folders, sweeps_in};
use super::known::{Known, listed};
use super::writer::RUN_FILE;
use super::{StoreError, decode};
use crate::record::Recency;

/// The folder of the run that started last, among those in `out` and in its sweeps.
pub fn newest(out: &Path) -> Result<PathBuf, StoreError> {
    let newest = runs_below(out)?.into_iter().max_by_key(|dir| Recency::of(began(dir), dir));
    newest.ok_or_else(|| StoreError::NoRuns(out.to_owned()))
}

/// The folder of `run` in `out` or one of its sweeps: its id, the beginning of its id if no other run begins so, or a
/// path to its folder. `None` is the newest.
pub fn resolve(out: &Path, run: Option<&str>) -> Result<PathBuf, StoreError> {
    let Some(run) = run else { return newest(out) };
    if let Some(dir) = exactly(out, run) {
        return Ok(dir);
    }
    let places = [out.join(run), PathBuf::from(run)];
    if let Some(dir) = places.iter().find(|dir| is_run_folder(dir)) {
        return Err(StoreError::HalfWritten(dir.clone()));
    }
    by_prefix(out, run).map_err(|error| match places.into_iter().find(|dir| holds_runs(dir)) {
        Some(folder) if !matches!(error, StoreError::Ambiguous { .. }) => StoreError::FolderOfRuns(folder),
        _ => error,
    })
}

/// Whether runs are kept in a folder, or in sweeps in it.
fn holds_runs(folder: &Path) -> bool {
    run_folders(folder).is_ok_and(|runs| runs.iter().any(|run| is_run(run)))
}

/// The folder of the run whose whole id, or path, `run` is.
pub fn exactly(out: &Path, run: &str) -> Option<PathBuf> {
    let places = [out.join(run), PathBuf::from(run)];
    let in_sweeps = || sweeps_in(out).into_iter().map(|sweep| sweep.join(run)).find(|dir| is_run(dir));
    places.into_iter().find(|dir| is_run(dir)).or_else(in_sweeps)
}

/// The folders of the runs right in `out`, in the order of their names; none where there is no such folder.
pub fn runs_in(out: &Path) -> Result<Vec<PathBuf>, StoreError> {
    Ok(runs(out)?.iter().map(|name| out.join(name)).collect())
}

/// The folder of `run` among all in `out`, those of sweeps and unreadable ones included: a path to it, its place
/// below `out`, its id, or the beginning of its id if no other run begins so.
pub fn find_run(out: &Path, run: &str) -> Result<PathBuf, StoreError> {
    let exact = [out.join(run), PathBuf::from(run)].into_iter().find(|dir| fs::symlink_metadata(dir).is_ok());
    if let Some(dir) = exact {
        return Ok(dir);
    }
    let folders = if out.exists() { run_folders(out)? } else { Vec::new() };
    let named = |fits: &dyn Fn(&str) -> bool| -> Vec<&PathBuf> {
        folders.iter().filter(|dir| fits(&name(dir))).collect()
    };
    let exact = named(&|name| name == run);
    let matches = if exact.is_empty() { named(&|name| name.starts_with(run)) } else { exact };
    the_only(out, run, &folders, &matches, |dir| dir.display().to_string())
}

fn by_prefix(out: &Path, run: &str) -> Result<PathBuf, StoreError> {
    let known = runs_below(out)?;
    let matches: Vec<&PathBuf> = known.iter().filter(|dir| name(dir).starts_with(run)).collect();
    the_only(out, run, &known, &matches, name)
}

/// The one match of `run` among those `known`; else what there is, told as `told` has it.
fn the_only(
    out: &Path,
    run: &str,
    known: &[PathBuf],
    matches: &[&PathBuf],
    told: impl Fn(&Path) -> String,
) -> Result<PathBuf, StoreError> {
    let known_as = |dir: &Path| Known::run(out, dir, &told);
    let (run, out) = (run.to_owned(), out.to_owned());
    match matches {
        [dir] => Ok(PathBuf::clone(dir)),
        [] if known.is_empty() => Err(StoreError::NoRuns(out)),
        [] => {
            let known = listed(&run, known.iter().map(|dir| known_as(dir)).collect());
            Err(StoreError::NoSuchRun { run, out, known })
        }
        _ => {
            // All of them are as like.
            let matches = listed("", matches.iter().map(|dir| known_as(dir)).collect());
            Err(StoreError::Ambiguous { run, out, matches })
        }
    }
}

/// The folders of the runs in `out` and in its sweeps, as far as there is something to read in them.
pub(super) fn runs_below(out: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let folders = if out.exists() { run_folders(out)? } else { Vec::new() };
    Ok(folders.into_iter().filter(|dir| is_run(dir)).collect())
}

/// The names of the runs in `out`, in order. A folder that is not there has none.
fn runs(out: &Path) -> Result<Vec<String>, StoreError> {
    let entries = match fs::read_dir(out) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|source| StoreError::Read { path: out.to_owned(), source })?,
    };
    let folders = entries.flatten().filter(|entry| is_run(&entry.path()));
    let mut names: Vec<String> = folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    Ok(names)
}

/// Whether a folder is that of a run.
pub fn is_run(dir: &Path) -> bool {
    dir.join(RUN_FILE).is_file()
}

/// When the run in a folder began. One that cannot be read takes its file's age instead, so that it is neither passed over
/// in silence when it is the newest nor in the way when it is not.
pub fn began(dir: &Path) -> Option<DateTime<Utc>> {
    let path = dir.join(RUN_FILE);
    let written_at = || fs::metadata(&path).and_then(|file| file.modified()).ok().map(DateTime::from);
    decode::the_cell(&path, "started_at").ok().or_else(written_at)
}
