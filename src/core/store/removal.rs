//! Removing a run.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::StoreError;
use super::folders::{Contents, contents, is_left_by_a_run};
use super::writer::RUN_FILE;

/// Why a run is not removed.
#[derive(Debug, thiserror::Error)]
pub enum RemovalError {
    #[error("{} is not a run, nor a sweep: it holds neither a run.parquet nor parts of one, nor a sweep.json", .0.display())]
    NotARun(PathBuf),

    #[error("{} is a link; name the folder it leads to", .0.display())]
    Link(PathBuf),

    #[error("{} holds what no run writes: {}; move that away first", dir.display(), foreign.join(", "))]
    Foreign { dir: PathBuf, foreign: Vec<String> },

    #[error("{} is still being written; end that run first", .0.display())]
    BeingWritten(PathBuf),

    #[error("{} cannot be removed: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },

    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What went wrong at `path`.
pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> RemovalError {
    let path = path.to_owned();
    |source| RemovalError::Io { path, source }
}

/// Refuses a folder that is a link, however it is spelt: with a slash behind it a link is what it leads to.
pub fn refuse_link(dir: &Path) -> Result<(), RemovalError> {
    let plain: PathBuf = dir.components().collect();
    match fs::symlink_metadata(&plain).map_err(at(dir))?.is_symlink() {
        true => Err(RemovalError::Link(plain)),
        false => Ok(()),
    }
}

/// Keeps writers out of `dir`, which has been opened as `folder`, for as long as that lives.
pub(super) fn hold(folder: &File, dir: &Path) -> Result<(), RemovalError> {
    folder.try_lock().map_err(|_| RemovalError::BeingWritten(dir.to_owned()))
}

/// What removing the run in `dir` would remove, if it may be removed.
///
/// # Errors
/// Where it is no run, holds anything that no run writes, or is still being written.
pub fn removable(dir: &Path) -> Result<Contents, RemovalError> {
    refuse_link(dir)?;
    let contents = contents(dir)?;
    if contents.ours.is_empty() && !is_left_by_a_run(dir, &contents) {
        return Err(RemovalError::NotARun(dir.to_owned()));
    }
    if !contents.foreign.is_empty() {
        return Err(RemovalError::Foreign { dir: dir.to_owned(), foreign: contents.foreign });
    }
    match super::is_being_written(dir) {
        true => Err(RemovalError::BeingWritten(dir.to_owned())),
        false => Ok(contents),
    }
}

/// Removes the run in `dir`, file by file: what came into the folder since it was looked at stays, and then the
/// folder too. Returns what was removed.
pub fn remove(dir: &Path) -> Result<Contents, RemovalError> {
    // Held until the end, so that no writer begins here.
    let folder = File::open(dir).map_err(at(dir))?;
    let contents = removable(dir)?;
    hold(&folder, dir)?;
    // The row that makes it a run goes last: what is interrupted can be removed later.
    let (last, first): (Vec<_>, Vec<_>) = contents.ours.iter().partition(|(name, _)| name == RUN_FILE);
    for (name, _) in first.into_iter().chain(last) {
        let path = dir.join(name);
        fs::remove_file(&path).map_err(at(&path))?;
    }
    fs::remove_dir(dir).map_err(at(dir))?;
    Ok(contents)
}
