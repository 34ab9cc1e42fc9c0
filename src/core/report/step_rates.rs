//! A run's steps in four numbers.

use crate::stats::median;

/// Over the measured steps, as `show` has them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StepRates {
    pub n: usize,
    pub median_ms: Option<f64>,
    /// The median of each step's own rate.
    pub tokens_per_s: Option<f64>,
    pub peak_bytes: Option<i64>,
}

impl StepRates {
    /// From the measured steps' nanoseconds, tokens and peaks.
    pub fn of(steps: impl Iterator<Item = (i64, Option<i64>, Option<i64>)>) -> Self {
        let (mut times, mut rates, mut peak_bytes) = (Vec::new(), Vec::new(), None);
        for (wall_ns, tokens, peak) in steps {
            times.push(wall_ns as f64 / 1e6);
            rates.extend(tokens.map(|tokens| tokens as f64 / (wall_ns as f64 / 1e9)));
            peak_bytes = peak_bytes.max(peak);
        }
        StepRates { n: times.len(), median_ms: median(&times), tokens_per_s: median(&rates), peak_bytes }
    }
}
