//! Which folder a run is in.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::folders::{name, run_folders};
use super::writer::RUN_FILE;
use super::{StoreError, decode};

/// How many runs an error lists.
const LISTED: usize = 8;

/// The folder of the run in `out` that started last.
pub fn newest(out: &Path) -> Result<PathBuf, StoreError> {
    let newest = runs(out)?.into_iter().max_by_key(|name| (started_at(&out.join(name)), name.clone()));
    newest.map(|name| out.join(name)).ok_or_else(|| StoreError::NoRuns(out.to_owned()))
}

/// The folder of `run`: its id, the beginning of its id if no other run in `out` begins so, or a path to
/// its folder. `None` is the newest.
pub fn resolve(out: &Path, run: Option<&str>) -> Result<PathBuf, StoreError> {
    let Some(run) = run else { return newest(out) };
    exactly(out, run).map_or_else(|| by_prefix(out, run), Ok)
}

/// The folder of the run whose whole id, or path, `run` is.
pub fn exactly(out: &Path, run: &str) -> Option<PathBuf> {
    [out.join(run), PathBuf::from(run)].into_iter().find(|dir| is_run(dir))
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
    let known = runs(out)?;
    let matches: Vec<&String> = known.iter().filter(|name| name.starts_with(run)).collect();
    match matches[..] {
        [name] => Ok(out.join(name)),
        [] if known.is_empty() => Err(StoreError::NoRuns(out.to_owned())),
        [] => Err(StoreError::NoSuchRun { run: run.to_owned(), out: out.to_owned(), known: list(&known) }),
        _ => Err(StoreError::Ambiguous { run: run.to_owned(), out: out.to_owned(), matches: list(&matches) }),
    }
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
