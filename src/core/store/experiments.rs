//! Experiments, kept in the folder of the run with the change.

use std::path::PathBuf;

use super::file;
use super::schema::Stamp;
use super::writer::write_part;
use super::{Dataset, StoreError};
use crate::record::ExperimentRow;

impl Dataset {
    /// The experiments in which this run is the one with the change, in the order they were recorded.
    pub fn experiments(&self) -> Result<Vec<ExperimentRow>, StoreError> {
        self.rows(None)
    }

    /// Adds the rows of one experiment to this run; returns the run's folder.
    pub fn keep_experiment(&self, mut rows: Vec<ExperimentRow>) -> Result<PathBuf, StoreError> {
        let next = self.last_part::<ExperimentRow>().map_or(1, |last| last + 1);
        write_part(self.dir(), &Stamp::of(self.run()), next, &mut rows)
            .and_then(|()| file::sync_folder(self.dir()))
            .map_err(beside)?;
        Ok(self.dir().to_owned())
    }
}

/// The run is where it is: no flag takes the record elsewhere.
fn beside(error: StoreError) -> StoreError {
    match error {
        StoreError::Write { path, source } => StoreError::WriteBeside { path, source },
        error => error,
    }
}
