//! Which folder a run is in.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::folders::{is_run_folder, name, run_folders, sweeps_in};
use super::writer::RUN_FILE;
use super::{StoreError, decode};

/// How many runs an error lists.
const LISTED: usize = 8;

/// The folder of the run that started last, among those in `out` and in its sweeps.
pub fn newest(out: &Path) -> Result<PathBuf, StoreError> {
    let newest = runs_below(out)?.into_iter().max_by_key(|dir| (started_at(dir), name(dir)));
    newest.ok_or_else(|| StoreError::NoRuns(out.to_owned()))
}

/// The folder of `run` in `out` or one of its sweeps: its id, the beginning of its id if no other run begins so, or a
/// path to its folder. `None` is the newest.
pub fn resolve(out: &Path, run: Option<&str>) -> Result<PathBuf, StoreError> {
    let Some(run) = run else { return newest(out) };
    if let Some(dir) = exactly(out, run) {
        return Ok(dir);
    }
    match [out.join(run), PathBuf::from(run)].into_iter().find(|dir| is_run_folder(dir)) {
        Some(dir) => Err(StoreError::HalfWritten(dir)),
        None => by_prefix(out, run),
    }
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
    let shown =
        |folders: &[&PathBuf]| list(&folders.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>());
    match matches[..] {
        [dir] => Ok(dir.clone()),
        [] if folders.is_empty() => Err(StoreError::NoRuns(out.to_owned())),
        [] => {
            let known = shown(&folders.iter().collect::<Vec<_>>());
            Err(StoreError::NoSuchRun { run: run.to_owned(), out: out.to_owned(), known })
        }
        _ => {
            let matches = shown(&matches);
            Err(StoreError::Ambiguous { run: run.to_owned(), out: out.to_owned(), matches })
        }
    }
}

fn by_prefix(out: &Path, run: &str) -> Result<PathBuf, StoreError> {
    let known = runs_below(out)?;
    let names = |dirs: &[&PathBuf]| list(&dirs.iter().map(|dir| name(dir)).collect::<Vec<_>>());
    let matches: Vec<&PathBuf> = known.iter().filter(|dir| name(dir).starts_with(run)).collect();
    match matches[..] {
        [dir] => Ok(dir.clone()),
        [] if known.is_empty() => Err(StoreError::NoRuns(out.to_owned())),
        [] => {
            let known = names(&known.iter().collect::<Vec<_>>());
            Err(StoreError::NoSuchRun { run: run.to_owned(), out: out.to_owned(), known })
        }
        _ => {
            let matches = names(&matches);
            Err(StoreError::Ambiguous { run: run.to_owned(), out: out.to_owned(), matches })
        }
    }
}

/// The folders of the runs in `out` and in its sweeps, as far as there is something to read in them.
fn runs_below(out: &Path) -> Result<Vec<PathBuf>, StoreError> {
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

/// A run that cannot be read takes its file's age instead, so that it is neither passed over in silence
/// when it is the newest nor in the way when it is not.
fn started_at(dir: &Path) -> Option<DateTime<Utc>> {
    let path = dir.join(RUN_FILE);
    let written_at = || fs::metadata(&path).and_then(|file| file.modified()).ok().map(DateTime::from);
    decode::the_cell(&path, "started_at").ok().or_else(written_at)
}

fn list<S: AsRef<str>>(names: &[S]) -> String {
    let shown: Vec<&str> = names.iter().rev().take(LISTED).map(AsRef::as_ref).collect();
    let rest = names.len() - shown.len();
    shown.join(", ") + &if rest > 0 { format!(" and {rest} more") } else { String::new() }
}
