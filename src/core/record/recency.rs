//! Which of several runs is the newest.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

/// How recent a run is: of several runs the newest has the greatest. Of runs that began at one instant the one of the later
/// name is the newer, and of one name the one of the later path, so that a list and whoever asks for the newest agree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Recency {
    began: Option<DateTime<Utc>>,
    name: OsString,
    dir: PathBuf,
}

impl Recency {
    /// Of the run in this folder; one of which nobody knows when it began is older than all others.
    pub fn of(began: Option<DateTime<Utc>>, dir: &Path) -> Self {
        let name = dir.file_name().map(OsString::from).unwrap_or_default();
        Recency { began, name, dir: dir.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_instant_comes_first_and_then_the_name() {
        let run = |micros: Option<i64>, dir: &str| {
            Recency::of(micros.and_then(DateTime::from_timestamp_micros), Path::new(dir))
        };
        let rising = [
            run(None, "z"),
            run(Some(1), "z/c"),
            run(Some(2), "z/a"),
            run(Some(2), "a/b"),
            run(Some(2), "b/b"),
        ];
        assert!(rising.is_sorted_by(|one, next| one < next), "{rising:?}");
    }
}
