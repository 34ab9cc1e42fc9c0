//! The dataset as the place where a probe's records go.

use std::path::{Path, PathBuf};

use super::DatasetWriter;
use crate::record::{AllocationRow, RunRow, Sink, SinkError, StepRecords};

/// Keeps a run in a folder of its own, `<out>/<run_id>/`.
#[derive(Debug)]
pub struct RunFolder {
    out: PathBuf,
    writer: Option<DatasetWriter>,
}

impl RunFolder {
    /// Runs go into `out`, which is made if it does not exist.
    pub fn new(out: impl AsRef<Path>) -> Self {
        RunFolder { out: out.as_ref().to_owned(), writer: None }
    }
}

impl Sink for RunFolder {
    fn begin(&mut self, run: &RunRow) -> Result<(), SinkError> {
        self.writer = Some(DatasetWriter::create(&self.out, run)?);
        Ok(())
    }

    fn push(&mut self, records: StepRecords) {
        if let Some(writer) = &mut self.writer {
            let StepRecords { step, phases, moments, ended } = records;
            writer.push(step, phases, moments, ended);
        }
    }

    fn push_ended(&mut self, ended: Vec<AllocationRow>) {
        if let Some(writer) = &mut self.writer {
            writer.push_ended(ended);
        }
    }

    fn flush(&mut self, open: &[AllocationRow]) -> Result<(), SinkError> {
        Ok(self.writer.as_mut().map_or(Ok(()), |writer| writer.flush(open))?)
    }

    fn end(&mut self, run: &RunRow, open: &[AllocationRow]) -> Result<(), SinkError> {
        if let Some(writer) = self.writer.take() {
            writer.finish(run, open)?;
        }
        Ok(())
    }
}
