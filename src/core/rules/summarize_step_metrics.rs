//! Rule 1: which zone a step is in.

use serde::Serialize;

use super::RuleError;
use super::error::finite;
use super::field::{Field, Kind, Range};
use super::object::Object;
use super::registry::Spec;
use super::round::{plain, round};
use super::thresholds::{self, StepThresholds, Threshold, Thresholds};
use crate::record::words;

const STEP_MS: Field = Field::new("step_ms", "ms", Kind::Number(Range::Above(0.0)));
const TOKENS: Field = Field::new("tokens", "tokens", Kind::Number(Range::AtLeast(0.0)));
const GPU_BUSY_PCT: Field = Field::new("gpu_busy_pct", "%", Kind::Number(Range::Between(0.0, 100.0)));
const CPU_WAIT_MS: Field = Field::new("cpu_wait_ms", "ms", Kind::Number(Range::AtLeast(0.0)));

pub(super) const SPEC: Spec = Spec {
    summary: "One step's time, throughput, and the zone they put it in",
    inputs: &[STEP_MS, TOKENS, GPU_BUSY_PCT, CPU_WAIT_MS],
    thresholds: &[
        Threshold::new("cpu_wait_ms", thresholds::CPU_WAIT_MS, "ms"),
        Threshold::new("waiting_busy_pct", thresholds::WAITING_BUSY_PCT, "%"),
        Threshold::new("low_busy_pct", thresholds::LOW_BUSY_PCT, "%"),
        Threshold::new("slow_step_ms", thresholds::SLOW_STEP_MS, "ms"),
    ],
    source: "teaching heuristics; no device or paper defines these lines",
};

/// What was measured of one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepMetrics {
    pub step_ms: f64,
    pub tokens: f64,
    /// The share of the step in which the device computed.
    pub gpu_busy_pct: f64,
    /// What the training thread waited for data or synchronization.
    pub cpu_wait_ms: f64,
}

words! {
    /// Where a step's numbers put it.
    Zone, "zone" {
        LikelyInputOrSyncBound = "likely_input_or_sync_bound",
        LowGpuUtilization = "low_gpu_utilization",
        SlowComputePath = "slow_compute_path",
        NoSingleSignal = "no_single_signal",
    }
}

words! {
    /// What to look at next.
    NextCheck, "next check" {
        InspectInputPipelineOrSync = "inspect_input_pipeline_or_sync",
        InspectForwardOrKernel = "inspect_forward_or_kernel",
        CollectMoreEvidence = "collect_more_evidence",
    }
}

/// The summary of one step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StepSummary {
    #[serde(serialize_with = "plain")]
    pub latency_ms: f64,
    /// Rounded to one decimal.
    pub throughput_tok_s: f64,
    #[serde(serialize_with = "plain")]
    pub gpu_busy_pct: f64,
    #[serde(serialize_with = "plain")]
    pub cpu_wait_ms: f64,
    pub zone: Zone,
    pub next_check: NextCheck,
    /// The lines that were used.
    pub thresholds: StepThresholds,
}

/// Sums up one step and names its zone.
///
/// - **Formula:** `throughput_tok_s = tokens / (step_ms / 1000)`, to one decimal. The zone is the first that
///   holds: `cpu_wait_ms` > 40 and `gpu_busy_pct` < 60 → likely bound by input or synchronization;
///   `gpu_busy_pct` < 50 → low utilization; `step_ms` > 200 → slow compute; else no single signal.
/// - **Units:** milliseconds, tokens, percent of the step.
/// - **Assumption:** the step is typical (a median, not the first); a long wait with an idle device is
///   waiting *for* something, not work that happens to overlap.
/// - **Source:** the four lines are teaching heuristics, see [`Thresholds`].
/// - **Errors:** `step_ms` ≤ 0, `tokens` < 0, busy outside 0–100, wait < 0, anything not finite, and a
///   throughput too large for a number. It never abstains: without a signal it says so.
pub fn summarize_step_metrics(step: &StepMetrics, thresholds: &Thresholds) -> Result<StepSummary, RuleError> {
    let latency_ms = STEP_MS.check(step.step_ms)?;
    let tokens = TOKENS.check(step.tokens)?;
    let gpu_busy_pct = GPU_BUSY_PCT.check(step.gpu_busy_pct)?;
    let cpu_wait_ms = CPU_WAIT_MS.check(step.cpu_wait_ms)?;
    let throughput_tok_s = finite("throughput_tok_s", tokens / (latency_ms / 1000.0))?;
    let (zone, next_check) = zone(step, thresholds);
    Ok(StepSummary {
        latency_ms,
        throughput_tok_s: round(throughput_tok_s, 1),
        gpu_busy_pct,
        cpu_wait_ms,
        zone,
        next_check,
        thresholds: thresholds.step(),
    })
}

fn zone(step: &StepMetrics, lines: &Thresholds) -> (Zone, NextCheck) {
    if step.cpu_wait_ms > lines.cpu_wait_ms && step.gpu_busy_pct < lines.waiting_busy_pct {
        (Zone::LikelyInputOrSyncBound, NextCheck::InspectInputPipelineOrSync)
    } else if step.gpu_busy_pct < lines.low_busy_pct {
        (Zone::LowGpuUtilization, NextCheck::InspectInputPipelineOrSync)
    } else if step.step_ms > lines.slow_step_ms {
        (Zone::SlowComputePath, NextCheck::InspectForwardOrKernel)
    } else {
        (Zone::NoSingleSignal, NextCheck::CollectMoreEvidence)
    }
}

pub(super) fn apply(mut input: Object, thresholds: &Thresholds) -> Result<StepSummary, RuleError> {
    let step = StepMetrics {
        step_ms: input.take("step_ms")?,
        tokens: input.take("tokens")?,
        gpu_busy_pct: input.take("gpu_busy_pct")?,
        cpu_wait_ms: input.take("cpu_wait_ms")?,
    };
    summarize_step_metrics(&step, thresholds)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: StepMetrics =
        StepMetrics { step_ms: 160.0, tokens: 360.0, gpu_busy_pct: 72.0, cpu_wait_ms: 8.0 };

    fn zone_of(step: StepMetrics) -> Zone {
        summarize_step_metrics(&step, &Thresholds::default()).unwrap().zone
    }

    #[test]
    fn the_first_zone_that_holds_wins() {
        assert_eq!(zone_of(STEP), Zone::NoSingleSignal);
        assert_eq!(zone_of(StepMetrics { step_ms: 200.1, ..STEP }), Zone::SlowComputePath);
        assert_eq!(zone_of(StepMetrics { gpu_busy_pct: 49.9, ..STEP }), Zone::LowGpuUtilization);
        let waiting = StepMetrics { cpu_wait_ms: 40.1, gpu_busy_pct: 10.0, step_ms: 900.0, ..STEP };
        assert_eq!(zone_of(waiting), Zone::LikelyInputOrSyncBound);
    }

    #[test]
    fn other_lines_give_other_zones_and_are_shown() {
        let lines = Thresholds { slow_step_ms: 100.0, ..Thresholds::default() };
        let summary = summarize_step_metrics(&STEP, &lines).unwrap();
        assert_eq!(summary.zone, Zone::SlowComputePath);
        assert_eq!(summary.thresholds.slow_step_ms, 100.0);
    }

    #[test]
    fn a_throughput_beyond_all_numbers_is_an_error() {
        let step = StepMetrics { tokens: 1e300, step_ms: 1e-300, ..STEP };
        let error = summarize_step_metrics(&step, &Thresholds::default()).unwrap_err();
        assert_eq!(error.field, "throughput_tok_s");
    }
}
