//! Files that are either whole or not there.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::StoreError;

/// Puts `bytes` at `path`, replacing what was there in one instant. On failure `path` is as it was, and
/// nothing is left beside it.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let temporary = temporary(path);
    let written = write_synced(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
    written.map_err(|source| {
        // Best effort: the first error is the one to report.
        let _ = fs::remove_file(&temporary);
        StoreError::Write { path: path.to_owned(), source }
    })
}

/// Makes the empty file that [`replace`] goes on with.
pub(super) fn begin(path: &Path) -> Result<(), StoreError> {
    let made = File::create(temporary(path)).map(drop);
    made.map_err(|source| StoreError::Write { path: path.to_owned(), source })
}

/// Makes the names given in `folder` survive a power cut.
pub(super) fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|source| StoreError::Write { path: folder.to_owned(), source })
}

/// Ends in `.tmp`, so that no `*.parquet` pattern finds it.
fn temporary(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    name.into()
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
