//! Room on the disk.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access, statvfs};

use super::StoreError;

/// Bytes that may still be written where `folder` is, or would be made.
///
/// # Errors
/// Where it could not be made or written to.
pub fn free_bytes(folder: &Path) -> Result<u64, StoreError> {
    let there = nearest(folder);
    let unwritten = |source: io::Error| StoreError::Write { path: there.clone(), source };
    if !there.is_dir() {
        return Err(unwritten(io::ErrorKind::NotADirectory.into()));
    }
    access(&there, Access::WRITE_OK).map_err(|error| unwritten(error.into()))?;
    let found = statvfs(&there).map_err(|error| unwritten(error.into()))?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// The folder itself, or the nearest one above it that exists.
fn nearest(folder: &Path) -> PathBuf {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    absolute.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_to_be_has_the_room_of_the_one_above() {
        assert_eq!(nearest(Path::new("/proc/not/there")), Path::new("/proc"));
        assert!(free_bytes(&std::env::temp_dir().join("not/there")).unwrap() > 0);
    }

    #[test]
    fn where_nothing_can_be_written_is_an_error() {
        let error = free_bytes(Path::new("/proc/version/runs")).unwrap_err().to_string();
        assert!(error.contains("/proc/version"), "{error}");
    }
}
