//! Where a run's records go while it is made.

use std::error::Error;

use super::{AllocationRow, LedgerMoment, PhaseRow, RunRow, StepRow};

/// Why a sink could not keep what it was given.
pub type SinkError = Box<dyn Error + Send + Sync>;

/// Everything that is recorded of one step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepRecords {
    pub step: StepRow,
    pub phases: Vec<PhaseRow>,
    pub moments: Vec<LedgerMoment>,
    /// The lifetimes that ended in this step or in the time before it.
    pub ended: Vec<AllocationRow>,
}

/// Everything that is recorded of the time between two steps, or after the last.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BetweenRecords {
    pub phases: Vec<PhaseRow>,
    pub moments: Vec<LedgerMoment>,
    pub ended: Vec<AllocationRow>,
}

/// From so many lifetimes on (1 MiB) their room is worth giving back: an allocator has such pages from the system afresh
/// each time, which costs more than filling them.
pub const MANY_LIFETIMES: usize = 1 << 13;

/// Takes a run's records, in order: `begin`, any number of `push`, `push_between` and `flush`, `end`.
pub trait Sink {
    /// Opens the run. Nothing else is called before it has succeeded.
    fn begin(&mut self, run: &RunRow) -> Result<(), SinkError>;

    /// Takes one step's records; cheap, as it is called between steps.
    fn push(&mut self, records: StepRecords);

    /// Takes what belongs to no finished step: a validation pass, a step that was left unfinished, lifetimes
    /// that ended after the last step.
    fn push_between(&mut self, records: BetweenRecords);

    /// Lifetimes that it was given and needs no more, [`MANY_LIFETIMES`] or more, for their room.
    fn spent(&mut self) -> Option<Vec<AllocationRow>> {
        None
    }

    /// Makes everything pushed so far safe against a crash, or begins to: a sink may write in the background
    /// and bring an error with the next call. `open` are the lifetimes that go on.
    fn flush(&mut self, open: &[AllocationRow]) -> Result<(), SinkError>;

    /// Flushes and closes the run, whose row now says how it ended.
    fn end(&mut self, run: &RunRow, open: &[AllocationRow]) -> Result<(), SinkError>;
}
