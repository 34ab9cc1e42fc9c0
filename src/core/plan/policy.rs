//! One checkpointing policy in a plan.

use serde::Serialize;

use super::fit::FitQuality;

/// Where a predicted peak comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The closed form of the toy models.
    Theory,
    /// A line through measured runs.
    Fit,
}

/// Where a predicted step time comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeSource {
    /// A line through measured runs.
    Fit,
    /// One measured batch, its time scaled with the batch.
    Scaled,
}

/// How far a prediction lies from the batches that were measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Extrapolates {
    /// Among them.
    No,
    /// Outside.
    Beyond,
    /// More than twice the largest, or less than half the smallest.
    Strongly,
}

/// One policy. What is not known is null, and `notes` and `needs` say why and what would tell it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PolicyPlan {
    /// As `--checkpoint` has it; null for a program whose configuration says none.
    pub checkpoint: Option<String>,
    /// The largest batch whose predicted peak stays within the capacity; 0 where not even one sequence does. The
    /// predictions below are of it (of batch 1 where it is 0).
    pub max_batch: Option<i64>,
    pub predicted_peak_bytes: Option<i64>,
    pub peak_interval_bytes: Option<[i64; 2]>,
    /// Of the next larger batch, which is the first that does not fit.
    pub next_batch_peak_bytes: Option<i64>,
    pub predicted_step_ms: Option<f64>,
    pub step_interval_ms: Option<[f64; 2]>,
    pub predicted_tokens_per_s: Option<f64>,
    pub tokens_per_s_interval: Option<[f64; 2]>,
    /// Of the peak.
    pub source: Option<Source>,
    pub time_source: Option<TimeSource>,
    /// Of the batch, beside those measured; null where nothing was.
    pub extrapolates: Option<Extrapolates>,
    /// What theory says, whatever the source of the above: its peak at the same batch, and its own largest batch.
    pub theory_peak_bytes: Option<i64>,
    pub theory_max_batch: Option<i64>,
    /// What recomputation adds to a token's matrix products, as a share of them.
    pub recompute_share: Option<f64>,
    pub fit: Option<FitQuality>,
    pub notes: Vec<String>,
    /// A command whose run would tell what is null.
    pub needs: Option<String>,
}
