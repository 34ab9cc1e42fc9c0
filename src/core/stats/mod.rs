//! Numbers about numbers. Pure.
//!
//! How runs are compared: the unit is a run of a process, not a step. A run is cut to where it is level
//! ([`Settled`]), and becomes one number, the trimmed mean of its log step times ([`RunEstimate`]), unless it does not
//! stay at its level ([`Drift`], [`common_drift`]). Runs of both sides are paired, and Student's interval of the pairs'
//! differences is held against a margin ([`judge_pairs`]). Steps of one run depend on each other and share what their
//! process drew by lot (placement in memory, the machine's mood), so that a test over pooled steps takes chance for a
//! change.
#![forbid(unsafe_code)]

mod bootstrap;
mod cycle_ends;
mod cycles;
#[cfg(test)]
mod cycles_tests;
mod drift;
mod effective;
mod interval;
mod line;
#[cfg(test)]
pub(crate) mod made_up;
mod outliers;
mod paired;
mod random;
mod relative_line;
mod run;
#[cfg(test)]
mod simulation;
mod step_span;
mod trimmed;
mod warmup;

pub use bootstrap::{WithinRuns, within_runs};
pub use cycles::Cycles;
pub use drift::{Drift, common_drift};
pub use effective::effective_sample_size;
pub use interval::{MeanInterval, mean_interval, student_t_quantile};
pub use line::{Line, Prediction, fit_line};
pub use paired::{CONFIDENCE, ENOUGH_PAIRS, FEWEST_PAIRS, LEAST_MARGIN, Paired, Place, judge_pairs};
pub use random::SplitMix64;
pub use relative_line::{RelativeLine, fit_relative_line};
pub use run::{
    FEWEST_STEPS, LEAST_EFFECTIVE, RunEstimate, SLOW, SURE_STEPS, Settled, TRIM, Tails, Weakness, longer,
};
pub use step_span::StepSpan;
pub use trimmed::{Trimmed, trimmed, trimmed_mean};
pub use warmup::mser5;

/// The value below which the share `q` (0 to 1) of the values lies, between neighbours by their distance
/// (Hyndman & Fan 1996, type 7, as NumPy and R do by default). `None` for no values.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let place = q.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    Some(sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64))
}

/// The middle value. `None` for no values.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_numpy() {
        // numpy.quantile([3, 1, 2, 4], [0, .25, .5, .75, 1])
        let values = [3.0, 1.0, 2.0, 4.0];
        for (q, expected) in [(0.0, 1.0), (0.25, 1.75), (0.5, 2.5), (0.75, 3.25), (1.0, 4.0)] {
            assert_eq!(quantile(&values, q), Some(expected));
        }
    }

    #[test]
    fn nothing_has_no_median_and_one_value_is_its_own() {
        assert_eq!((median(&[]), median(&[7.0])), (None, Some(7.0)));
    }
}
