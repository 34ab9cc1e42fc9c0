//! A run that ran out of memory: what was asked for, what was alive, and what would fit.

use serde::Serialize;

use super::ledger::{MomentSummary, PeakPart, by_detail};
use super::peak::{PeakBlock, largest_blocks};
use super::step_memory::StepSpan;
use super::summary::Account;
use crate::record::{FailedAllocation, Moment, RunStatus, Trace};
use crate::theory::{Alternative, Shape};

/// How many of the largest blocks are told.
const LARGEST: usize = 20;

/// What is known of the allocation that ended a run, and of that instant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OutOfMemory {
    /// Null where the allocator was not traced, and where it was not libtorch's that had no more.
    pub failed: Option<FailedAllocation>,
    /// The limit that was put on the allocator; null where the memory itself was at its end. The alternatives are
    /// then measured by what was in use.
    pub limit_bytes: Option<i64>,
    /// The ledger at that instant.
    pub ledger: Option<MomentSummary>,
    /// By category and detail, the largest first.
    pub parts: Vec<PeakPart>,
    /// The largest first.
    pub largest: Vec<PeakBlock>,
    /// In theory; empty for what is no toy model, and where it is not known how much memory there was.
    pub alternatives: Vec<Alternative>,
    /// Whether the allocator was traced.
    #[serde(skip)]
    pub traced: bool,
    /// Whether theory knows the program.
    #[serde(skip)]
    pub in_theory: bool,
}

impl OutOfMemory {
    /// Into how much something would have to fit: the limit, or else, since nothing more is known, what could be had.
    pub fn room_bytes(&self) -> Option<i64> {
        self.limit_bytes.or(self.ledger.as_ref().map(|ledger| ledger.0.allocator_bytes))
    }
}

/// What is to be told of a run that ran out of memory; `None` for another.
pub fn out_of_memory(account: &Account) -> Option<OutOfMemory> {
    let run = &account.run;
    if run.status != RunStatus::OutOfMemory {
        return None;
    }
    let failed = run.out_of_memory.clone();
    let at_ns = failed.as_ref().map(|failed| failed.at_ns);
    let moment =
        account.ledger.iter().rfind(|row| row.moment == Moment::OutOfMemory && Some(row.at_ns) == at_ns);
    let alive: Vec<_> = account.alive_at_failure.iter().collect();
    let ledger = moment.map(|moment| MomentSummary(*moment));
    let shape = Shape::of(&run.config);
    let mut ended = OutOfMemory {
        limit_bytes: run.capacity_bytes,
        parts: by_detail(alive.iter().copied()),
        largest: at_ns
            .map(|at_ns| largest_blocks(&alive, at_ns, &begins(account), LARGEST))
            .unwrap_or_default(),
        alternatives: Vec::new(),
        ledger,
        failed,
        traced: run.trace != Trace::Phases,
        in_theory: shape.is_some(),
    };
    if let Some((shape, room)) = shape.zip(ended.room_bytes()) {
        ended.alternatives = shape.alternatives(room);
    }
    Some(ended)
}

/// The steps that were begun, the unfinished one too, each with when it began.
fn begins(account: &Account) -> Vec<(i64, i64)> {
    let finished = account.steps.iter().map(|step| (step.step, StepSpan::of(&account.run, step).begin_ns));
    // Of the last it is known only that it failed then; what was made between the steps came before.
    let failed = account.run.out_of_memory.iter().filter_map(|failed| Some((failed.step?, failed.at_ns)));
    finished.chain(failed).collect()
}
