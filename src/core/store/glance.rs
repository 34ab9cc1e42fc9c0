//! A run at a glance: what a list of many runs needs of each, and no more.

use std::path::Path;

use chrono::{DateTime, Utc};

use super::{Dataset, StoreError};
use crate::record::RunRow;

/// A step, as far as a list of runs goes.
#[derive(Debug, Clone, PartialEq)]
pub struct StepGlance {
    pub step: i64,
    pub warmup: bool,
    pub started_at: DateTime<Utc>,
    pub wall_ns: i64,
    pub loss: Option<f64>,
    pub tokens: Option<i64>,
    pub peak_bytes: Option<i64>,
}

/// Reads a run's row, and seven columns of its steps.
pub fn glance(dir: &Path) -> Result<(RunRow, Vec<StepGlance>), StoreError> {
    let dataset = Dataset::open(dir)?;
    let steps = dataset.rows(None)?;
    Ok((dataset.run().clone(), steps))
}
