//! The steps of a run, as far as their time goes.

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use super::{PhaseRow, RunRow, SpanKind, StepRow};
use crate::stats::StepSpan;

/// What a row of the `steps` table says of the step's time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepTiming {
    pub step: i64,
    pub warmup: bool,
    pub started_at: DateTime<Utc>,
    pub wall_ns: i64,
    pub lead_ns: Option<i64>,
    pub optimizer_calls: Option<i64>,
    pub loss: Option<f64>,
}

impl From<&StepRow> for StepTiming {
    fn from(row: &StepRow) -> Self {
        let StepRow { step, warmup, started_at, wall_ns, lead_ns, optimizer_calls, loss, .. } = *row;
        StepTiming { step, warmup, started_at, wall_ns, lead_ns, optimizer_calls, loss }
    }
}

/// How long what ran between the steps took, by the step that came next.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BetweenSteps(HashMap<i64, i64>);

impl BetweenSteps {
    /// From rows of the `phases` table: of each its step, its kind and its time in nanoseconds.
    pub fn of(rows: impl Iterator<Item = (i64, SpanKind, i64)>) -> Self {
        let mut between = BetweenSteps::default();
        for (next_step, _, ns) in rows.filter(|(_, kind, _)| *kind == SpanKind::Between) {
            *between.0.entry(next_step).or_default() += ns;
        }
        between
    }

    fn after(&self, step: i64) -> i64 {
        step.checked_add(1).and_then(|next| self.0.get(&next).copied()).unwrap_or_default()
    }
}

impl<'a> FromIterator<&'a PhaseRow> for BetweenSteps {
    fn from_iter<T: IntoIterator<Item = &'a PhaseRow>>(rows: T) -> Self {
        BetweenSteps::of(rows.into_iter().map(|row| (row.step, row.kind, row.total_ns)))
    }
}

impl RunRow {
    /// The times of a run's steps, in order. What ran `between` them is asked for only where
    /// [`asks_between`](RunRow::asks_between) says so.
    pub fn step_spans(&self, steps: &[StepRow], between: &BetweenSteps) -> Vec<StepSpan> {
        steps.iter().map(|step| self.step_span(step.into(), between)).collect()
    }

    /// That of one, from what a row has of it.
    pub fn step_span(&self, step: StepTiming, between: &BetweenSteps) -> StepSpan {
        StepSpan {
            step: step.step,
            warmup: step.warmup,
            beside_host: self.computes_beside_host(),
            waited: self.waited(step.loss),
            begin_ns: self.since_start_ns(step.started_at),
            wall_ns: step.wall_ns,
            lead_ns: step.lead_ns,
            updated: step.optimizer_calls.map(|calls| calls > 0),
            between_ns: between.after(step.step),
        }
    }

    /// Whether the time of one of these steps depends on what ran between them: a device computed beside the host, and when
    /// it was through with the step is not known.
    pub fn asks_between(&self, mut steps: impl Iterator<Item = StepTiming>) -> bool {
        self.computes_beside_host() && steps.any(|step| step.lead_ns.is_none())
    }

    /// Whether a device computes beside the host, and may go on when a step has ended there.
    pub fn computes_beside_host(&self) -> bool {
        self.device != "cpu"
    }

    /// Whether the host has waited for the device in a step whose loss is this: a number has been read from it then. On a
    /// CPU every operator has been waited for.
    fn waited(&self, loss: Option<f64>) -> bool {
        !self.computes_beside_host() || loss.is_some()
    }

    /// Nanoseconds from the run's start to an instant, to the microsecond that is kept of both.
    fn since_start_ns(&self, at: DateTime<Utc>) -> i64 {
        1000 * (at - self.started_at).num_microseconds().unwrap_or_default()
    }
}
