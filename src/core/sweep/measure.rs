//! One run of a sweep, in the few numbers that its cell is made of.

use std::path::Path;

use serde_json::{Map, Value};

use crate::record::{Category, Moment, Phase, PhaseRow, RECOMPUTE, RunStatus, SpanKind, StepRow};
use crate::stats::{LEAST_MARGIN, RunEstimate, Settled};
use crate::store::{Dataset, StoreError};

/// What was measured of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Measure {
    pub run_id: String,
    pub status: RunStatus,
    pub reason: Option<String>,
    pub config: Map<String, Value>,
    /// Of the measured steps' times; `None` where there are none.
    pub estimate: Option<RunEstimate>,
    pub tokens_per_step: Option<f64>,
    pub peak_bytes: Option<i64>,
    /// Activations at the end of forward.
    pub activation_bytes: Option<i64>,
    /// The share of the steps' time that was spent computing activations again.
    pub recompute_share: Option<f64>,
}

impl Measure {
    /// Reads a run's folder, but for its allocations.
    pub fn read(dir: &Path) -> Result<Self, StoreError> {
        let dataset = Dataset::open(dir)?;
        let steps: Vec<StepRow> = dataset.steps()?.into_iter().filter(|step| !step.warmup).collect();
        let times: Vec<f64> = steps.iter().map(|step| step.wall_ns as f64).collect();
        let run = dataset.run();
        Ok(Measure {
            run_id: run.run_id.clone(),
            status: run.status,
            reason: run.reason.clone(),
            config: run.config.clone(),
            estimate: Settled::of(&times, 1).and_then(|settled| settled.estimate()),
            tokens_per_step: tokens_per_step(&steps),
            peak_bytes: steps.iter().filter_map(|step| step.peak_bytes).max(),
            activation_bytes: activations(&dataset, &steps)?,
            recompute_share: recompute_share(&dataset.phases()?, &steps),
        })
    }

    /// Why it is less than a sound unit of comparison.
    pub fn weakness(&self) -> Option<String> {
        match &self.estimate {
            None => Some("no measured step".to_owned()),
            Some(estimate) => estimate.weakness(LEAST_MARGIN.ln_1p()).map(|weakness| weakness.to_string()),
        }
    }
}

fn tokens_per_step(steps: &[StepRow]) -> Option<f64> {
    let tokens: Option<i64> = steps.iter().map(|step| step.tokens).sum();
    tokens.filter(|_| !steps.is_empty()).map(|tokens| tokens as f64 / steps.len() as f64)
}

fn activations(dataset: &Dataset, steps: &[StepRow]) -> Result<Option<i64>, StoreError> {
    let Some(last) = steps.last() else { return Ok(None) };
    let moments = dataset.ledger_of(last.step)?;
    let end = moments.iter().find(|moment| moment.moment == Moment::ForwardEnd);
    Ok(end.map(|end| end.bytes[Category::Activation]))
}

fn recompute_share(phases: &[PhaseRow], steps: &[StepRow]) -> Option<f64> {
    let first = steps.first()?.step;
    let again = |row: &&PhaseRow| {
        row.step >= first
            && row.kind == SpanKind::Scope
            && row.phase == Phase::Backward
            && row.parent.is_none()
            && &*row.name == RECOMPUTE
    };
    let recomputed_ns: i64 = phases.iter().filter(again).map(|row| row.total_ns).sum();
    let wall_ns: i64 = steps.iter().map(|step| step.wall_ns).sum();
    (wall_ns > 0).then(|| recomputed_ns as f64 / wall_ns as f64)
}
