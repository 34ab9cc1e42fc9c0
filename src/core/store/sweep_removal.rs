//! Removing a sweep: its runs, its table, and what was asked of it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::folders::{folders_in, is_run_folder};
use super::removal::{RemovalError, at, hold, refuse_link, removable, remove};

/// What makes a folder that of a sweep.
const SPEC: &str = "sweep.json";
/// What a sweep itself writes; the first is what makes it one, and goes last.
const FILES: [&str; 4] = [SPEC, "sweep.json.tmp", "sweep-0001.parquet", "sweep-0001.parquet.tmp"];

/// What lies in a sweep's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweepContents {
    /// The folders of its runs.
    pub runs: Vec<PathBuf>,
    /// The files of all of it.
    pub files: usize,
    pub bytes: u64,
}

/// Whether a folder is that of a sweep.
pub fn is_sweep_folder(dir: &Path) -> bool {
    dir.join(SPEC).is_file()
}

/// What removing the sweep in `dir` would remove, if it may be removed.
///
/// # Errors
/// Where it holds anything that no sweep writes, or it or one of its runs is still being written.
pub fn removable_sweep(dir: &Path) -> Result<SweepContents, RemovalError> {
    refuse_link(dir)?;
    let mut runs: Vec<PathBuf> =
        folders_in(dir)?.into_iter().filter(|folder| is_run_folder(folder)).collect();
    runs.sort_unstable();
    let mut found = SweepContents { runs, files: 0, bytes: 0 };
    let mut foreign = Vec::new();
    for entry in
        fs::read_dir(dir).map_err(at(dir))?.flatten().filter(|entry| !found.runs.contains(&entry.path()))
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        match entry.metadata() {
            Ok(file) if file.is_file() && FILES.contains(&name.as_str()) => {
                found.files += 1;
                found.bytes += file.len();
            }
            _ => foreign.push(name),
        }
    }
    if !foreign.is_empty() {
        foreign.sort_unstable();
        return Err(RemovalError::Foreign { dir: dir.to_owned(), foreign });
    }
    if super::is_being_written(dir) {
        return Err(RemovalError::BeingWritten(dir.to_owned()));
    }
    for run in &found.runs {
        let contents = removable(run)?;
        found.files += contents.ours.len();
        found.bytes += contents.bytes();
    }
    Ok(found)
}

/// Removes the sweep in `dir`, run by run and file by file; returns what was removed.
pub fn remove_sweep(dir: &Path) -> Result<SweepContents, RemovalError> {
    // Held until the end, so that nobody goes on with it.
    let folder = File::open(dir).map_err(at(dir))?;
    let contents = removable_sweep(dir)?;
    hold(&folder, dir)?;
    for run in &contents.runs {
        remove(run)?;
    }
    for path in FILES.iter().rev().map(|file| dir.join(file)).filter(|path| path.exists()) {
        fs::remove_file(&path).map_err(at(&path))?;
    }
    fs::remove_dir(dir).map_err(at(dir))?;
    Ok(contents)
}
