//! One run of a sweep, in the few numbers that its cell is made of.

use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::duel::noise;
use super::workload::Workload;
use crate::compare::{MOST_OVERHEAD, Repeat, read_tables, setting};
use crate::record::{Category, Machine, Moment, Phase, PhaseRow, RECOMPUTE, RunStatus, SpanKind, StepRow};
use crate::stats::{LEAST_MARGIN, RunEstimate};
use crate::store::{Calibrations, Dataset, StoreError};

/// What was measured of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Measure {
    pub run_id: String,
    pub status: RunStatus,
    pub reason: Option<String>,
    pub started_at: DateTime<Utc>,
    pub workload: Workload,
    pub machine: Machine,
    /// All that its results may depend on, as `compare` sees it.
    pub setting: Map<String, Value>,
    /// From its first instant to its last.
    pub took: Option<Duration>,
    /// Of the measured steps' times; `None` where there are none.
    pub estimate: Option<RunEstimate>,
    /// What is missing of it, though it may say that it is complete.
    pub lacks: Option<String>,
    /// Why it is less than a sound unit of comparison.
    pub weakness: Option<String>,
    pub tokens_per_step: Option<f64>,
    pub peak_bytes: Option<i64>,
    /// Activations at the end of forward.
    pub activation_bytes: Option<i64>,
    /// The share of the steps' time that was spent computing activations again.
    pub recompute_share: Option<f64>,
}

impl Measure {
    /// Reads a run's folder, but for its allocations; how noisy machines are is `known`.
    pub fn read(dir: &Path, known: &Calibrations) -> Result<Self, StoreError> {
        let dataset = Dataset::open(dir)?;
        let run = dataset.run();
        let tables = read_tables(&dataset)?;
        let (repeat, unusable) = match Repeat::of(&tables) {
            Ok(repeat) => (Some(repeat), None),
            Err(why) => (None, Some(why.to_string())),
        };
        let margin = noise(known, run).map_or(LEAST_MARGIN, |noise| noise.half_width_pct / 100.0);
        let setting = setting(run, &tables.steps);
        let weakness = || weakness(repeat.as_ref()?, margin.max(LEAST_MARGIN));
        let lacks = run.lacks(tables.steps.len()).map(|lacks| lacks.to_string());
        let steps: Vec<StepRow> = tables.steps.into_iter().filter(|step| !step.warmup).collect();
        Ok(Measure {
            run_id: run.run_id.clone(),
            status: run.status,
            reason: run.reason.clone(),
            started_at: run.started_at,
            workload: Workload::of(run),
            machine: run.machine.clone(),
            setting,
            took: run.finished_at.and_then(|end| (end - run.started_at).to_std().ok()),
            lacks: lacks.or_else(|| unusable.clone()),
            weakness: unusable.or_else(weakness),
            estimate: repeat.as_ref().map(|repeat| repeat.time),
            tokens_per_step: repeat.and_then(|repeat| repeat.tokens_per_step),
            peak_bytes: steps.iter().filter_map(|step| step.peak_bytes).max(),
            activation_bytes: activations(&dataset, &steps)?,
            recompute_share: recompute_share(&dataset.phases()?, &steps),
        })
    }
}

/// As `compare` sees it.
fn weakness(repeat: &Repeat, margin: f64) -> Option<String> {
    if let Some(weakness) = repeat.time.weakness(margin.ln_1p()) {
        return Some(weakness.to_string());
    }
    let overhead = repeat.overhead.filter(|overhead| *overhead > MOST_OVERHEAD)?;
    Some(format!(
        "its instruments cost {:.1} % of its steps' time, and {:.0} % is the most",
        100.0 * overhead,
        100.0 * MOST_OVERHEAD
    ))
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

#[cfg(test)]
pub mod made_up {
    //! Runs without files behind them.

    use serde_json::json;

    use super::*;
    use crate::stats::Settled;

    /// A complete run of so many ms a step.
    pub fn measure(run_id: &str, ms: f64) -> Measure {
        let config = json!({"batch": 8}).as_object().unwrap().clone();
        Measure {
            run_id: run_id.to_owned(),
            status: RunStatus::Complete,
            reason: None,
            started_at: DateTime::UNIX_EPOCH,
            workload: Workload {
                program: "gpt".to_owned(),
                device: "cpu".to_owned(),
                device_name: None,
                config,
            },
            machine: Machine::default(),
            setting: Map::new(),
            took: None,
            estimate: Settled::of(&[1e6 * ms; 60], 1).and_then(|settled| settled.estimate()),
            lacks: None,
            weakness: None,
            tokens_per_step: Some(100.0),
            peak_bytes: Some(1 << 20),
            activation_bytes: None,
            recompute_share: None,
        }
    }
}
