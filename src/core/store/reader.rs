//! A run's folder, read back.

use std::fs;
use std::path::{Path, PathBuf};

use super::flat::{LedgerRow, PhaseTime, gather};
use super::schema::Table;
use super::writer::{OPEN_ALLOCATIONS_FILE, RUN_FILE};
use super::{StoreError, decode};
use crate::record::{
    AllocationRow, LedgerMoment, PhaseRow, RunRow, SCHEMA_VERSION, StepPhases, StepRow, StepTiming,
};

/// One run's dataset. Of a run that still goes on it shows what was flushed when it was opened.
#[derive(Debug)]
pub struct Dataset {
    dir: PathBuf,
    run: RunRow,
    /// The names of the folder's files when it was opened.
    files: Vec<String>,
}

impl Dataset {
    /// Opens the folder of a run.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join(RUN_FILE);
        if !path.is_file() {
            return Err(StoreError::NotARun(dir.to_owned()));
        }
        // Newer versions added columns that may be null, and older ones read as if they were. A version that
        // does more gets a reader of its own beside this one, which stays.
        let run = decode::run(&path, SCHEMA_VERSION)?.map_err(|found| StoreError::SchemaVersion {
            path,
            found,
            supported: SCHEMA_VERSION,
        })?;
        Ok(Dataset { dir: dir.to_owned(), run, files: file_names(dir)? })
    }

    /// The folder it was opened from.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn run(&self) -> &RunRow {
        &self.run
    }

    /// In the order in which they ran.
    pub fn steps(&self) -> Result<Vec<StepRow>, StoreError> {
        self.rows(None)
    }

    pub fn phases(&self) -> Result<Vec<PhaseRow>, StoreError> {
        self.rows(None)
    }

    /// The times in [`phases`](Self::phases), without their names: reads half of the columns.
    pub fn phase_times(&self) -> Result<Vec<PhaseTime>, StoreError> {
        self.rows(None)
    }

    /// What the phases say of these steps' times; reads nothing where none depends on it.
    pub fn step_phases(&self, steps: impl Iterator<Item = StepTiming>) -> Result<StepPhases, StoreError> {
        match self.run.asks_phases(steps) {
            true => Ok(self.phase_times()?.iter().collect()),
            false => Ok(StepPhases::default()),
        }
    }

    pub fn phases_of(&self, step: i64) -> Result<Vec<PhaseRow>, StoreError> {
        self.rows(Some(step))
    }

    pub fn ledger(&self) -> Result<Vec<LedgerMoment>, StoreError> {
        Ok(gather(self.rows(None)?))
    }

    pub fn ledger_of(&self, step: i64) -> Result<Vec<LedgerMoment>, StoreError> {
        Ok(gather(self.rows::<LedgerRow>(Some(step))?))
    }

    /// Every lifetime, ended or not, in order of birth.
    pub fn allocations(&self) -> Result<Vec<AllocationRow>, StoreError> {
        self.lifetimes(None)
    }

    /// The lifetimes that began in `step`, in order of birth.
    pub fn allocations_of(&self, step: i64) -> Result<Vec<AllocationRow>, StoreError> {
        self.lifetimes(Some(step))
    }

    /// The lifetimes that `at_ns` falls into, in order of birth.
    pub fn alive_at(&self, at_ns: i64) -> Result<Vec<AllocationRow>, StoreError> {
        self.alive_during(at_ns, at_ns)
    }

    /// The lifetimes that share an instant with the time from `from_ns` to `until_ns`, in order of birth. Holds
    /// one part at a time, so that a long run takes no more memory than a short one.
    pub fn alive_during(&self, from_ns: i64, until_ns: i64) -> Result<Vec<AllocationRow>, StoreError> {
        self.lifetimes_where(None, |row| {
            row.at_ns <= until_ns && row.freed_ns.is_none_or(|freed_ns| freed_ns > from_ns)
        })
    }

    fn lifetimes(&self, step: Option<i64>) -> Result<Vec<AllocationRow>, StoreError> {
        self.lifetimes_where(step, |_| true)
    }

    fn lifetimes_where(
        &self,
        step: Option<i64>,
        wanted: impl Fn(&AllocationRow) -> bool,
    ) -> Result<Vec<AllocationRow>, StoreError> {
        let open = self.files.iter().map(String::as_str).filter(|&file| file == OPEN_ALLOCATIONS_FILE);
        let parts = self.parts::<AllocationRow>().into_iter().map(|(_, file)| file);
        let mut lifetimes = Vec::new();
        for file in parts.chain(open) {
            let rows: Vec<AllocationRow> = decode::rows(&self.dir.join(file), step)?;
            lifetimes.extend(rows.into_iter().filter(&wanted));
        }
        lifetimes.sort_by_key(|lifetime| lifetime.id);
        Ok(lifetimes)
    }

    /// The rows of all numbered parts of a table.
    pub(super) fn rows<T: Table>(&self, step: Option<i64>) -> Result<Vec<T>, StoreError> {
        let mut rows = Vec::new();
        for (_, file) in self.parts::<T>() {
            rows.append(&mut decode::rows(&self.dir.join(file), step)?);
        }
        Ok(rows)
    }

    /// The number of a table's last part.
    pub(super) fn last_part<T: Table>(&self) -> Option<u32> {
        self.parts::<T>().last().map(|(number, _)| *number)
    }

    /// A table's parts by number, since part 10000 comes before 9999 by name.
    fn parts<T: Table>(&self) -> Vec<(u32, &str)> {
        let mut parts: Vec<(u32, &str)> =
            self.files.iter().filter_map(|file| Some((part_of(T::NAME, file)?, file.as_str()))).collect();
        parts.sort_unstable();
        parts
    }
}

/// The part's number, if `file` is a part of `table`. Temporary files are not.
fn part_of(table: &str, file: &str) -> Option<u32> {
    file.strip_prefix(table)?.strip_prefix('-')?.strip_suffix(".parquet")?.parse().ok()
}

fn file_names(dir: &Path) -> Result<Vec<String>, StoreError> {
    let unreadable = |source| StoreError::Read { path: dir.to_owned(), source };
    let entries =
        fs::read_dir(dir).map_err(unreadable)?.collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    Ok(entries.iter().filter_map(|entry| entry.file_name().into_string().ok()).collect())
}
