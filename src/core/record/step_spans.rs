//! The steps of a run, as far as their time goes.

use chrono::{DateTime, Utc};

use super::{RunRow, StepRow};
use crate::stats::StepSpan;

impl RunRow {
    /// The times of a run's steps.
    pub fn step_spans(&self, steps: &[StepRow]) -> Vec<StepSpan> {
        let span = |step: &StepRow| self.step_span(step.warmup, step.started_at, step.wall_ns, step.loss);
        steps.iter().map(span).collect()
    }

    /// That of one, from what a row has of it.
    pub fn step_span(
        &self,
        warmup: bool,
        started_at: DateTime<Utc>,
        wall_ns: i64,
        loss: Option<f64>,
    ) -> StepSpan {
        StepSpan {
            warmup,
            beside_host: self.computes_beside_host(),
            waited: self.waited(loss),
            begin_ns: self.since_start_ns(started_at),
            wall_ns,
        }
    }

    /// Whether a device computes beside the host, and goes on when a step has ended there.
    fn computes_beside_host(&self) -> bool {
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
