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
    /// The runs of this very batch, where there is no line or they are far off it.
    Measured,
    /// Those of the nearest measured batch, their time scaled with the batch.
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

/// What is predicted of one batch.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct AtBatch {
    pub batch: i64,
    pub predicted_peak_bytes: Option<i64>,
    pub predicted_step_ms: Option<f64>,
    pub step_interval_ms: Option<[f64; 2]>,
    pub predicted_tokens_per_s: Option<f64>,
    /// From the step's interval; no upper end where that begins at 0.
    pub tokens_per_s_interval: Option<(f64, Option<f64>)>,
    pub time_source: Option<TimeSource>,
    /// How often this batch was measured, by runs of 30 steps or more. A batch that was not measured is as well known as
    /// the less known of its neighbours among those that were; one that lies far off was measured 0 times.
    pub repeats: usize,
    /// As in [`PolicyPlan`].
    pub theory_tokens_per_s: Option<f64>,
}

/// One policy. What is not known is null, and `notes` and `needs` say why and what would tell it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PolicyPlan {
    /// As `--checkpoint` has it; null for a program whose configuration says none.
    pub checkpoint: Option<String>,
    /// The largest batch whose predicted peak stays within the capacity; 0 where not even one sequence does. The
    /// predictions below are of it (of batch 1 where it is 0). Of a toy model none is larger than `stepledger run` takes.
    pub max_batch: Option<i64>,
    pub predicted_peak_bytes: Option<i64>,
    pub peak_interval_bytes: Option<[i64; 2]>,
    /// Whether the peak is known to be on its line at this batch: it lies among three or more on that line, or theory
    /// says the same. Else the interval holds only if there is no kink on the way. Null where there is no line.
    pub kink_excluded: Option<bool>,
    /// Of the next larger batch, which is the first that does not fit; null where there is none that could be run.
    pub next_batch_peak_bytes: Option<i64>,
    pub predicted_step_ms: Option<f64>,
    pub step_interval_ms: Option<[f64; 2]>,
    pub predicted_tokens_per_s: Option<f64>,
    /// From the step's interval; no upper end where that begins at 0.
    pub tokens_per_s_interval: Option<(f64, Option<f64>)>,
    /// Of the peak.
    pub source: Option<Source>,
    pub time_source: Option<TimeSource>,
    /// As in [`AtBatch`].
    pub repeats: usize,
    /// A smaller batch that was measured and is faster for its size; where the largest, or its time, is not known the
    /// fastest that was measured and fits. Null where the largest is fastest.
    pub faster: Option<AtBatch>,
    /// Of the batch, beside those measured; null where nothing was.
    pub extrapolates: Option<Extrapolates>,
    /// What theory says, whatever the source of the above: its peak at the same batch, and its own largest batch.
    pub theory_peak_bytes: Option<i64>,
    pub theory_max_batch: Option<i64>,
    /// No step is faster than its matrix products (recomputation's too) at the rate that the device does such at
    /// most: theory's lower bound of the step's time, and upper bound of its tokens a second. Null where that rate is
    /// not known.
    pub theory_step_ms: Option<f64>,
    pub theory_tokens_per_s: Option<f64>,
    /// What recomputation adds to a token's matrix products, as a share of them.
    pub recompute_share: Option<f64>,
    pub fit: Option<FitQuality>,
    pub notes: Vec<String>,
    /// A command whose run would tell what is null.
    pub needs: Option<String>,
}

impl PolicyPlan {
    /// The batch to train with under this policy: the largest that fits, or a smaller one that is faster. `None` where
    /// nothing is known to fit.
    pub fn fastest(&self) -> Option<AtBatch> {
        self.faster.clone().or_else(|| self.largest())
    }

    fn largest(&self) -> Option<AtBatch> {
        Some(AtBatch {
            batch: self.max_batch.filter(|&batch| batch > 0)?,
            predicted_peak_bytes: self.predicted_peak_bytes,
            predicted_step_ms: self.predicted_step_ms,
            step_interval_ms: self.step_interval_ms,
            predicted_tokens_per_s: self.predicted_tokens_per_s,
            tokens_per_s_interval: self.tokens_per_s_interval,
            time_source: self.time_source,
            repeats: self.repeats,
            theory_tokens_per_s: self.theory_tokens_per_s,
        })
    }
}
