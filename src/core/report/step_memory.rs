//! One step's memory, as the views of it start from.

use super::summary::{NoSuchStep, find_step, ledger_step};
use crate::record::{AllocationRow, LedgerMoment, Moment, PhaseRow, RunRow, RunStatus, StepRow, Trace};

/// What the views of a step's memory are made of.
#[derive(Debug, Clone)]
pub struct StepMemory {
    pub run: RunRow,
    /// All steps of the run.
    pub steps: Vec<StepRow>,
    /// The number of the step looked at, which is one of `steps`.
    pub step: i64,
    /// Of that step, or of all.
    pub phases: Vec<PhaseRow>,
    /// Of that step.
    pub moments: Vec<LedgerMoment>,
    /// Those that share an instant with that step ([`StepSpan::margin`]).
    pub lifetimes: Vec<AllocationRow>,
}

/// Why there is no view of a run's memory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoView {
    #[error(
        "run {run_id} has no memory account: it was traced at depth `{trace}`, which keeps times only; run it \
         again with `--trace allocations`, the default, or `--trace ops`"
    )]
    NotTraced { run_id: String, trace: Trace },
    #[error(
        "run {run_id} ({status}) has no finished step; plain `show` tells what there is, and a run that is still going \
         on has one after its first flush"
    )]
    NoStep { run_id: String, status: RunStatus },
    #[error(transparent)]
    NoSuchStep(#[from] NoSuchStep),
    #[error("run {run_id} keeps no {moment} of step {step}; name another step with --step")]
    NoMoment { run_id: String, step: i64, moment: Moment },
}

/// The step whose memory is to be looked at: `only`, or the last measured one, or the last at all.
pub fn memory_step<'a>(run: &RunRow, steps: &'a [StepRow], only: Option<i64>) -> Result<&'a StepRow, NoView> {
    let run_id = || run.run_id.clone();
    if run.trace == Trace::Phases {
        return Err(NoView::NotTraced { run_id: run_id(), trace: run.trace });
    }
    let step =
        ledger_step(steps, only).ok_or_else(|| NoView::NoStep { run_id: run_id(), status: run.status })?;
    Ok(find_step(run, steps, step)?)
}

/// A step's place in the time of its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepSpan {
    pub step: i64,
    pub begin_ns: i64,
    pub wall_ns: i64,
}

impl StepSpan {
    /// How far `begin_ns` may be off: it is the difference of two instants that are kept to the microsecond.
    const BLUR_NS: i64 = 1_000;

    pub fn of(run: &RunRow, step: &StepRow) -> Self {
        let since_start = (step.started_at - run.started_at).num_nanoseconds();
        StepSpan { step: step.step, begin_ns: since_start.unwrap_or_default(), wall_ns: step.wall_ns }
    }

    pub fn end_ns(&self) -> i64 {
        self.begin_ns + self.wall_ns
    }

    /// A time that the step certainly lies within.
    pub fn margin(&self) -> (i64, i64) {
        (self.begin_ns - Self::BLUR_NS, self.end_ns() + Self::BLUR_NS)
    }

    /// Whether something happened before the step, given the step it is recorded to have happened in (null
    /// between the steps). What happened in this step is known by that alone, and everything else is either
    /// well before the step's middle or well after it: so the blur of `begin_ns` does not matter.
    pub fn preceded_by(&self, recorded_step: Option<i64>, at_ns: i64) -> bool {
        recorded_step != Some(self.step) && at_ns < self.begin_ns + self.wall_ns / 2
    }
}

impl StepMemory {
    pub fn span(&self) -> Result<StepSpan, NoView> {
        Ok(StepSpan::of(&self.run, find_step(&self.run, &self.steps, self.step)?))
    }

    /// The ledger at one moment of the step.
    pub fn moment(&self, moment: Moment) -> Option<&LedgerMoment> {
        self.moments.iter().find(|row| row.step == self.step && row.moment == moment)
    }

    pub fn peak(&self) -> Result<&LedgerMoment, NoView> {
        self.moment(Moment::Peak).ok_or_else(|| NoView::NoMoment {
            run_id: self.run.run_id.clone(),
            step: self.step,
            moment: Moment::Peak,
        })
    }

    /// The lifetimes that an instant falls into.
    pub fn alive_at(&self, at_ns: i64) -> Vec<&AllocationRow> {
        let alive =
            |row: &&AllocationRow| row.at_ns <= at_ns && row.freed_ns.is_none_or(|freed_ns| freed_ns > at_ns);
        self.lifetimes.iter().filter(alive).collect()
    }
}

/// The proof that a view leaves nothing out: what it adds up to, against the ledger's own total.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Reconciliation {
    pub parts_bytes: i64,
    pub ledger_bytes: i64,
    pub difference_bytes: i64,
    /// Events of the whole run that were lost: the first thing that a difference can come from.
    pub dropped_events: i64,
}

impl Reconciliation {
    /// Of a view of `run` that adds up to `parts_bytes`.
    pub fn new(run: &RunRow, parts_bytes: i64, ledger_bytes: i64) -> Self {
        Reconciliation {
            parts_bytes,
            ledger_bytes,
            difference_bytes: ledger_bytes - parts_bytes,
            dropped_events: run.dropped_events,
        }
    }
}
