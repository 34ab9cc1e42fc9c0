//! The steps of a run, as far as their time goes.

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use super::{Phase, PhaseRow, RunRow, SpanKind, StepRow};
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

/// What the `phases` table says of the steps' times.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StepPhases {
    /// How long what ran between the steps took, by the step that came next.
    between_ns: HashMap<i64, i64>,
    /// Whether the optimizer ran, of each step that has a phase.
    updated: HashMap<i64, bool>,
}

impl StepPhases {
    /// From rows of the table: of each its step, its kind, its phase and its time in nanoseconds.
    pub fn of(rows: impl Iterator<Item = (i64, SpanKind, Phase, i64)>) -> Self {
        let mut told = StepPhases::default();
        for (step, kind, phase, ns) in rows {
            match kind {
                SpanKind::Between => *told.between_ns.entry(step).or_default() += ns,
                SpanKind::Phase if phase != Phase::Validation => {
                    *told.updated.entry(step).or_default() |= phase == Phase::Optimizer;
                }
                _ => {}
            }
        }
        told
    }

    fn between_after(&self, step: i64) -> i64 {
        step.checked_add(1).and_then(|next| self.between_ns.get(&next).copied()).unwrap_or_default()
    }
}

impl<'a> FromIterator<&'a PhaseRow> for StepPhases {
    fn from_iter<T: IntoIterator<Item = &'a PhaseRow>>(rows: T) -> Self {
        StepPhases::of(rows.into_iter().map(|row| (row.step, row.kind, row.phase, row.total_ns)))
    }
}

impl RunRow {
    /// The times of a run's steps, in order. The `phases` are asked only where [`asks_phases`](RunRow::asks_phases) says so.
    pub fn step_spans(&self, steps: &[StepRow], phases: &StepPhases) -> Vec<StepSpan> {
        steps.iter().map(|step| self.step_span(step.into(), phases)).collect()
    }

    /// That of one, from what a row has of it.
    pub fn step_span(&self, step: StepTiming, phases: &StepPhases) -> StepSpan {
        let told = step.optimizer_calls.map(|calls| calls > 0);
        StepSpan {
            step: step.step,
            warmup: step.warmup,
            beside_host: self.computes_beside_host(),
            waited: self.waited(step.loss),
            begin_ns: self.since_start_ns(step.started_at),
            wall_ns: step.wall_ns,
            lead_ns: step.lead_ns,
            updated: told.or_else(|| phases.updated.get(&step.step).copied()),
            between_ns: phases.between_after(step.step),
        }
    }

    /// Whether the time of one of these steps depends on its phases, or on what ran between: its row does not say whether
    /// the optimizer ran (those of earlier versions do not), or when a device beside the host was through with it.
    pub fn asks_phases(&self, mut steps: impl Iterator<Item = StepTiming>) -> bool {
        let beside_host = self.computes_beside_host();
        steps.any(|step| step.optimizer_calls.is_none() || beside_host && step.lead_ns.is_none())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::made_up::Made;

    #[test]
    fn whether_the_optimizer_ran_is_told_by_the_phases_where_the_row_does_not() {
        let run = Made::default().tables("a", 0).run;
        let rows = [
            (0, SpanKind::Phase, Phase::Forward, 5),
            (1, SpanKind::Phase, Phase::Forward, 5),
            (1, SpanKind::Phase, Phase::Optimizer, 5),
            (2, SpanKind::Scope, Phase::Optimizer, 5),
            (3, SpanKind::Phase, Phase::Validation, 5),
        ];
        let phases = StepPhases::of(rows.into_iter());
        let step = |step, optimizer_calls| StepRow { step, optimizer_calls, ..StepRow::default() };
        let updated = |row: StepRow| run.step_span((&row).into(), &phases).updated;
        let told = (0..4).map(|number| updated(step(number, None))).collect::<Vec<_>>();
        assert_eq!(told, [Some(false), Some(true), None, None]);
        assert_eq!(updated(step(1, Some(0))), Some(false), "its own word counts");
        let asks = |calls| run.asks_phases([(&step(0, calls)).into()].into_iter());
        assert_eq!((asks(None), asks(Some(0))), (true, false));
    }
}
