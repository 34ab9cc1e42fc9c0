//! A sink for tests, which keeps the steps and the run's last row in memory; clones share it.

use std::cell::RefCell;
use std::rc::Rc;

use crate::record::{
    AllocationRow, BetweenRecords, Phase, PhaseRow, RunRow, Sink, SinkError, SpanKind, StepRecords,
};

#[derive(Default)]
struct Records {
    steps: Vec<StepRecords>,
    open: Vec<AllocationRow>,
    run: Option<RunRow>,
}

#[derive(Clone, Default)]
pub struct Kept(Rc<RefCell<Records>>);

impl Sink for Kept {
    fn begin(&mut self, _: &RunRow) -> Result<(), SinkError> {
        Ok(())
    }

    fn push(&mut self, records: StepRecords) {
        self.0.borrow_mut().steps.push(records);
    }

    fn push_between(&mut self, _: BetweenRecords) {}

    fn flush(&mut self, _: &[AllocationRow]) -> Result<(), SinkError> {
        Ok(())
    }

    fn end(&mut self, run: &RunRow, open: &[AllocationRow]) -> Result<(), SinkError> {
        let mut records = self.0.borrow_mut();
        (records.run, records.open) = (Some(run.clone()), open.to_vec());
        Ok(())
    }
}

impl Kept {
    /// The numbers of the steps.
    pub fn steps(&self) -> Vec<i64> {
        self.0.borrow().steps.iter().map(|records| records.step.step).collect()
    }

    pub fn step(&self, place: usize) -> StepRecords {
        self.0.borrow().steps[place].clone()
    }

    pub fn row(&self, step: usize, kind: SpanKind, phase: Phase) -> PhaseRow {
        let phases = self.step(step).phases;
        phases.into_iter().find(|row| (row.kind, row.phase) == (kind, phase)).unwrap()
    }

    /// The run as it ended, and what was alive then.
    pub fn end(&self) -> (RunRow, Vec<AllocationRow>) {
        let records = self.0.borrow();
        (records.run.clone().unwrap(), records.open.clone())
    }
}
