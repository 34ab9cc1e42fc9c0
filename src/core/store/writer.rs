//! A run's folder while the run goes on.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::file;
use super::flat::{LedgerRow, RunColumns, spread};
use super::folders::is_plain;
use super::liveness::Hold;
use super::schema::{Stamp, Table};
use super::{StoreError, encode};
use crate::record::{AllocationRow, BetweenRecords, LedgerMoment, PhaseRow, RunRow, RunStatus, StepRow};

pub(super) const RUN_FILE: &str = "run.parquet";
pub(super) const OPEN_ALLOCATIONS_FILE: &str = "allocations-open.parquet";

/// Writes one run's dataset: buffers rows, and at each flush adds a part to every table that has some.
#[derive(Debug)]
pub struct DatasetWriter {
    dir: PathBuf,
    /// Tells others that this run is being written.
    _hold: Hold,
    stamp: Stamp,
    /// The number of the last flush. Parts of one flush share it; a flush that failed leaves a gap.
    part: u32,
    steps: Vec<StepRow>,
    phases: Vec<PhaseRow>,
    ledger: Vec<LedgerRow>,
    allocations: Vec<AllocationRow>,
}

impl DatasetWriter {
    /// Makes `<out>/<run_id>/`, which must be new, and its `run.parquet`.
    pub fn create(out: &Path, run: &RunRow) -> Result<Self, StoreError> {
        let (dir, hold) = claim(out, &run.run_id)?;
        let writer = DatasetWriter {
            _hold: hold,
            dir,
            stamp: Stamp::of(run),
            part: 0,
            steps: Vec::new(),
            phases: Vec::new(),
            ledger: Vec::new(),
            allocations: Vec::new(),
        };
        writer.write_run(run)?;
        file::sync_folder(out)?;
        Ok(writer)
    }

    /// The run's folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Steps that are not on disk yet.
    pub fn buffered_steps(&self) -> usize {
        self.steps.len()
    }

    /// Buffers one step's rows; `closed` are the lifetimes that ended since the last call. Touches no disk.
    pub fn push(
        &mut self,
        step: StepRow,
        phases: Vec<PhaseRow>,
        moments: Vec<LedgerMoment>,
        mut closed: Vec<AllocationRow>,
    ) {
        self.push_leaving_room(step, phases, moments, &mut closed);
    }

    /// [`push`](Self::push), which leaves the room of `closed`.
    pub(super) fn push_leaving_room(
        &mut self,
        step: StepRow,
        phases: Vec<PhaseRow>,
        moments: Vec<LedgerMoment>,
        closed: &mut Vec<AllocationRow>,
    ) {
        self.steps.push(step);
        self.phases.extend(phases);
        self.ledger.extend(moments.into_iter().flat_map(spread));
        self.allocations.append(closed);
    }

    /// Buffers what belongs to no finished step.
    pub fn push_between(&mut self, records: BetweenRecords) {
        let BetweenRecords { phases, moments, ended } = records;
        self.phases.extend(phases);
        self.ledger.extend(moments.into_iter().flat_map(spread));
        self.allocations.extend(ended);
    }

    /// Writes what is buffered as the next part of each table that has rows. `open` are the lifetimes that
    /// have not ended.
    ///
    /// After an error the rows that are not on disk stay buffered, so a later flush may still succeed.
    pub fn flush(&mut self, open: &[AllocationRow]) -> Result<(), StoreError> {
        self.part += 1;
        // The open lifetimes come first: those that ended since the last flush leave that file before they
        // enter a part, so a kill in between can lose them but never count them twice.
        self.write_open(open)?;
        // By birth: neighbouring ids and instants differ little, which packs best. With cached keys each row,
        // which is long, moves but once.
        self.allocations.sort_by_cached_key(|allocation| allocation.id);
        write_part(&self.dir, &self.stamp, self.part, &mut self.allocations)?;
        write_part(&self.dir, &self.stamp, self.part, &mut self.ledger)?;
        write_part(&self.dir, &self.stamp, self.part, &mut self.phases)?;
        // The steps come last: a step that can be seen has all its rows in the other tables.
        write_part(&self.dir, &self.stamp, self.part, &mut self.steps)?;
        // Once for all the parts: a kill needs no sync at all, and a power cut keeps the order of the names.
        file::sync_folder(&self.dir)
    }

    /// The last flush, and the final `run.parquet`; returns the run's folder.
    ///
    /// When the rows cannot be written, `run.parquet` says so if it still can be: the run is then not
    /// `complete` but `failed`, and the reason tells why.
    pub fn finish(mut self, run: &RunRow, open: &[AllocationRow]) -> Result<PathBuf, StoreError> {
        if let Err(error) = self.flush(open) {
            // Best effort: the first error is the one to report.
            let _ = self.write_run(&without_its_last_rows(run, &error));
            return Err(error);
        }
        self.write_run(run)?;
        Ok(self.dir)
    }

    /// Replaces `run.parquet` alone.
    pub fn write_run(&self, run: &RunRow) -> Result<(), StoreError> {
        write(&self.dir.join(RUN_FILE), &self.stamp, &[RunColumns::from(run.clone())])?;
        file::sync_folder(&self.dir)
    }

    fn write_open(&self, open: &[AllocationRow]) -> Result<(), StoreError> {
        let path = self.dir.join(OPEN_ALLOCATIONS_FILE);
        // A run that traces no memory has no such file, rather than one that claims there was nothing.
        if open.is_empty() && !path.exists() {
            return Ok(());
        }
        write(&path, &self.stamp, open)
    }
}

/// Makes `<out>/<run_id>/`, which must be new, and tells others that it is a run's and being written.
fn claim(out: &Path, run_id: &str) -> Result<(PathBuf, Hold), StoreError> {
    let dir = out.join(folder_name(run_id)?);
    fs::create_dir_all(out).map_err(|source| StoreError::Write { path: out.to_owned(), source })?;
    fs::create_dir(&dir).map_err(|source| match source.kind() {
        ErrorKind::AlreadyExists => StoreError::Exists(dir.clone()),
        _ => StoreError::Write { path: dir.clone(), source },
    })?;
    let hold = Hold::on(&dir);
    // Should this process end before the row is there, the folder is known for a run's, whatever its name is.
    file::begin(&dir.join(RUN_FILE))?;
    Ok((dir, hold))
}

/// The run id itself, if it is one plain component of a path.
fn folder_name(run_id: &str) -> Result<&str, StoreError> {
    if is_plain(run_id) { Ok(run_id) } else { Err(StoreError::RunId(run_id.to_owned())) }
}

fn without_its_last_rows(run: &RunRow, error: &StoreError) -> RunRow {
    let status = if run.status == RunStatus::Complete { RunStatus::Failed } else { run.status };
    let reasons = run.reason.iter().cloned().chain([error.to_string()]);
    RunRow { status, reason: Some(reasons.collect::<Vec<_>>().join("; ")), ..run.clone() }
}

/// Writes `rows` as part number `part` of their table and clears them; writes nothing if there are none.
pub(super) fn write_part<T: Table>(
    dir: &Path,
    stamp: &Stamp,
    part: u32,
    rows: &mut Vec<T>,
) -> Result<(), StoreError> {
    if !rows.is_empty() {
        write(&dir.join(format!("{}-{part:04}.parquet", T::NAME)), stamp, rows)?;
        rows.clear();
    }
    Ok(())
}

fn write<T: Table>(path: &Path, stamp: &Stamp, rows: &[T]) -> Result<(), StoreError> {
    let bytes = encode::parquet(stamp, rows)
        .map_err(|source| StoreError::Encode { path: path.to_owned(), source })?;
    file::replace(path, &bytes)
}

#[cfg(test)]
mod tests {
    use super::super::{is_being_written, is_run_folder, removable};
    use super::*;

    #[test]
    fn what_a_kill_leaves_before_the_row_is_known_for_a_runs() {
        let out = tempfile::tempdir().unwrap();
        let (dir, hold) = claim(out.path(), "mine").unwrap();
        assert!(is_run_folder(&dir) && is_being_written(&dir));
        drop(hold);
        assert!(is_run_folder(&dir) && removable(&dir).is_ok());
        assert!(matches!(claim(out.path(), "mine"), Err(StoreError::Exists(_))));
    }
}
