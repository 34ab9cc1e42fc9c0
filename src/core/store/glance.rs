//! A run at a glance: what a list of many runs needs of each, and no more.

use std::path::Path;

use chrono::{DateTime, Utc};

use super::{Dataset, StoreError};
use crate::record::{RunRow, StepPhases, StepTiming};

/// A run's row, and a few columns of its steps.
#[derive(Debug, Clone, PartialEq)]
pub struct Glance {
    pub run: RunRow,
    pub steps: Vec<StepGlance>,
    /// Empty where no step's time depends on them.
    pub phases: StepPhases,
}

/// A step, as far as a list of runs goes.
#[derive(Debug, Clone, PartialEq)]
pub struct StepGlance {
    pub step: i64,
    pub warmup: bool,
    pub started_at: DateTime<Utc>,
    pub wall_ns: i64,
    pub lead_ns: Option<i64>,
    pub optimizer_calls: Option<i64>,
    pub loss: Option<f64>,
    pub tokens: Option<i64>,
    pub peak_bytes: Option<i64>,
}

impl From<&StepGlance> for StepTiming {
    fn from(row: &StepGlance) -> Self {
        let StepGlance { step, warmup, started_at, wall_ns, lead_ns, optimizer_calls, loss, .. } = *row;
        StepTiming { step, warmup, started_at, wall_ns, lead_ns, optimizer_calls, loss }
    }
}

/// Reads a run's row, and nine columns of its steps.
pub fn glance(dir: &Path) -> Result<Glance, StoreError> {
    let dataset = Dataset::open(dir)?;
    let steps: Vec<StepGlance> = dataset.rows(None)?;
    let phases = dataset.step_phases(steps.iter().map(StepTiming::from))?;
    Ok(Glance { run: dataset.run().clone(), steps, phases })
}
