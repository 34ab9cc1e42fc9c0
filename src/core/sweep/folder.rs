//! A sweep's folder: `<out>/<sweep_id>/`, with its `sweep.json`, its runs, and its table of cells.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::attempts::Attempts;
use super::error::SweepError;
use super::order::Turn;
use super::spec::{SWEEP_VERSION, Spec};
use crate::record::RunStatus;
use crate::store::{Dataset, StoreError, holders, is_being_written, write_whole};

const SPEC_FILE: &str = "sweep.json";

/// How long a lock is waited for: a run whose sweep was killed needs a moment to be gone.
const PATIENCE: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(20);

/// The folder of one sweep. While it is open no other process can work on it.
#[derive(Debug)]
pub struct Folder {
    dir: PathBuf,
    spec: Spec,
    lock: File,
}

impl Folder {
    /// Makes the folder of a new sweep in `out`; [`SweepError::Exists`] where its name is taken.
    pub fn create(out: &Path, spec: Spec) -> Result<Self, SweepError> {
        check_repeats(spec.repeats)?;
        let dir = out.join(&spec.sweep_id);
        let failed = |source| SweepError::Write { path: dir.clone(), source };
        fs::create_dir_all(out).map_err(failed)?;
        fs::create_dir(&dir).map_err(|source| match source.kind() {
            ErrorKind::AlreadyExists => SweepError::Exists { dir: dir.clone() },
            _ => failed(source),
        })?;
        let folder = Folder { lock: lock(&dir)?, dir, spec };
        folder.keep_spec()?;
        Ok(folder)
    }

    /// Makes it a sweep of so many repeats; those that are there stay.
    pub fn extend(&mut self, repeats: usize) -> Result<(), SweepError> {
        check_repeats(repeats)?;
        let begun = self.spec.repeats;
        if repeats < begun {
            return Err(SweepError::FewerRepeats { begun, asked: repeats });
        }
        self.spec.repeats = repeats;
        if repeats == begun { Ok(()) } else { self.keep_spec() }
    }

    fn keep_spec(&self) -> Result<(), SweepError> {
        let path = self.dir.join(SPEC_FILE);
        let failed =
            |error: serde_json::Error| SweepError::Write { path: path.clone(), source: error.into() };
        let text = serde_json::to_string_pretty(&self.spec).map_err(failed)?;
        Ok(write_whole(&path, format!("{text}\n").as_bytes())?)
    }

    /// Opens the folder of a sweep that was begun before.
    pub fn open(dir: &Path) -> Result<Self, SweepError> {
        let path = dir.join(SPEC_FILE);
        let text = fs::read_to_string(&path)
            .map_err(|source| SweepError::NotASweep { dir: dir.to_owned(), source })?;
        let malformed = |problem: String| SweepError::Malformed { path: path.clone(), problem };
        let value: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| malformed(error.to_string()))?;
        // Before anything else is read: another version may mean something else by it.
        match value.get("version").and_then(serde_json::Value::as_u64) {
            Some(version) if version == u64::from(SWEEP_VERSION) => {}
            Some(found) => return Err(SweepError::Version { path, found, supported: SWEEP_VERSION }),
            None => return Err(malformed("it has no `version`".to_owned())),
        }
        let spec: Spec = serde_json::from_value(value).map_err(|error| malformed(error.to_string()))?;
        check_repeats(spec.repeats).map_err(|error| malformed(error.to_string()))?;
        let ours = env!("CARGO_PKG_VERSION");
        if spec.stepledger_version != ours {
            let found = spec.stepledger_version;
            return Err(SweepError::OtherStepledger { dir: dir.to_owned(), found, ours });
        }
        Ok(Folder { lock: lock(dir)?, dir: dir.to_owned(), spec })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The sweep's lock for a run to keep: so no other process works on the sweep until the run is gone too, even where
    /// this process ends before it.
    pub(super) fn lock_for_a_run(&self) -> Result<Stdio, SweepError> {
        let shared = self.lock.try_clone();
        shared.map(Stdio::from).map_err(|source| SweepError::Write { path: self.dir.clone(), source })
    }

    /// The attempts at each turn that are there, by their names. Some of those before the last may have been removed.
    pub(super) fn attempts(&self) -> Result<Attempts, SweepError> {
        let failed = |source| StoreError::Read { path: self.dir.clone(), source };
        let entries =
            fs::read_dir(&self.dir).map_err(failed)?.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        let names = entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned());
        Ok(Attempts::of(&self.spec, names))
    }

    /// The folder of an attempt that came to an end; `None` of one that was interrupted, which stays where it is.
    pub(super) fn ended(&self, turn: Turn, attempt: usize) -> Result<Option<PathBuf>, SweepError> {
        let dir = self.dir.join(self.spec.run_id(turn, attempt));
        if is_being_written(&dir) {
            return Err(SweepError::StillRunning { holders: holders(&dir), dir });
        }
        let interrupted = match Dataset::open(&dir).map(|dataset| dataset.run().status) {
            Ok(status) => matches!(status, RunStatus::Running | RunStatus::Interrupted),
            // What cannot be read is for the reader to tell.
            Err(error) => matches!(error, StoreError::NotARun(_)),
        };
        Ok((!interrupted).then_some(dir))
    }
}

/// Before anything is made of them: the turns of very many would take for ever, and without any there is none.
fn check_repeats(repeats: usize) -> Result<(), SweepError> {
    if Spec::allows(repeats) { Ok(()) } else { Err(SweepError::Repeats { asked: repeats }) }
}

fn lock(dir: &Path) -> Result<File, SweepError> {
    let failed = |source| SweepError::Write { path: dir.to_owned(), source };
    let file = File::open(dir).map_err(failed)?;
    let begin = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if begin.elapsed() < PATIENCE => sleep(POLL),
            Err(TryLockError::WouldBlock) => {
                return Err(SweepError::Busy { dir: dir.to_owned(), holders: holders(dir) });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::grid::{Axis, Grid};
    use super::*;

    fn spec(repeats: usize) -> Spec {
        let grid = Grid::new(vec![Axis::parse("batch", "1,2").unwrap()]).unwrap();
        Spec::new("by-hand", grid, Vec::new(), repeats)
    }

    #[test]
    fn repeats_that_nobody_could_make_are_refused_with_their_range() {
        let out = tempfile::tempdir().unwrap();
        let told = |error: SweepError| error.to_string();
        for repeats in [0, 1001, 99_999_999_999] {
            let expected = format!("{repeats} repeats: allowed: 1 to 1000");
            assert_eq!(told(Folder::create(out.path(), spec(repeats)).unwrap_err()), expected);
            assert!(out.path().read_dir().unwrap().next().is_none(), "nothing was made");
        }
        let mut folder = Folder::create(out.path(), spec(2)).unwrap();
        assert_eq!(told(folder.extend(1001).unwrap_err()), "1001 repeats: allowed: 1 to 1000");
        folder.extend(1000).unwrap();
        let dir = folder.dir().to_owned();
        drop(folder);
        let file = dir.join(SPEC_FILE);
        let text = fs::read_to_string(&file).unwrap();
        for repeats in ["0", "99999999999"] {
            fs::write(&file, text.replace("\"repeats\": 1000", &format!("\"repeats\": {repeats}"))).unwrap();
            let told = told(Folder::open(&dir).unwrap_err());
            assert!(
                told.contains(&format!("{repeats} repeats: allowed: 1 to 1000; begin a new sweep")),
                "{told}"
            );
        }
    }
}
