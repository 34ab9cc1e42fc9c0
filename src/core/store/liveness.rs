//! Whether a run is still being written: its writer holds a lock on its folder, which ends with the process,
//! however that ends.

use std::fs::{File, TryLockError};
use std::path::Path;

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
