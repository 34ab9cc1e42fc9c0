//! Whether a run is still being written: its writer holds a lock on its folder, which ends with the process,
//! however that ends.

use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::process;

/// The writer's hold on its run's folder. Where the file system knows no locks there is none, and the run looks
/// abandoned while its status is `running`.
#[derive(Debug)]
pub(super) struct Hold(#[expect(dead_code, reason = "it is there to be dropped")] Option<File>);

impl Hold {
    pub(super) fn on(dir: &Path) -> Self {
        let folder = File::open(dir).ok();
        Hold(folder.filter(|folder| folder.try_lock().is_ok()))
    }
}

/// Whether some process is writing the run in `dir` now. It is asked of this machine alone: locks are not seen from
/// another one.
pub fn is_being_written(dir: &Path) -> bool {
    // A shared lock, so that two that ask at once do not take each other for a writer.
    File::open(dir).is_ok_and(|folder| matches!(folder.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// The other processes that have the folder open, whoever holds its lock among them, by their ids. Those of other users
/// cannot be seen.
pub fn holders(dir: &Path) -> Vec<u32> {
    let (Ok(dir), Ok(processes)) = (fs::canonicalize(dir), fs::read_dir("/proc")) else { return Vec::new() };
    let id = |entry: &fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let opens = |id: &u32| {
        let files = fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten().flatten();
        files.into_iter().any(|file| fs::read_link(file.path()).is_ok_and(|target| target == dir))
    };
    let others = processes.flatten().filter_map(|entry| id(&entry)).filter(|id| *id != process::id());
    others.filter(opens).collect()
}
