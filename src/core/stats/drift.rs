//! Whether a run stays at its level.

use super::{
    CONFIDENCE, FEWEST_PAIRS, effective_sample_size, fit_line, mean_interval, trimmed, trimmed_mean,
};

/// The normal quantile that one run's drift must be clear of, two-sided 99.9 %: a comparison looks at ten runs or more,
/// and one that seems to drift is enough to end it.
const DRIFT_ERRORS: f64 = 3.291;
/// The share left out at each end of a half's mean: more than of a whole run, since a few spikes are a larger part of
/// a half.
const HALF_TRIM: f64 = 0.25;

/// What the second half of a run differs from its first half by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// Of the logarithms' midmeans.
    pub change: f64,
    /// Its standard error, each half worth its effective sample size.
    pub error: f64,
}

impl Drift {
    /// `None` where a half is too short to have an error.
    pub fn of(log_times: &[f64]) -> Option<Self> {
        let (first, second) = log_times.split_at(log_times.len() / 2);
        let ((first, its), (second, other)) = (half(first)?, half(second)?);
        Some(Drift { change: second - first, error: its.hypot(other) })
    }

    /// Whether it is larger than `margin`, and that not by chance: 99.9 % of normal halves that differ by no
    /// more than the margin would not look like this.
    pub fn exceeds(&self, margin: f64) -> bool {
        self.change.abs() - DRIFT_ERRORS * self.error > margin
    }
}

/// Mean and standard error of half a run. The error is that of what scatters about the half's own line: a slope, which
/// looks like correlation, would hide itself.
fn half(log_times: &[f64]) -> Option<(f64, f64)> {
    let level = about_its_line(log_times);
    let inflation = level.len() as f64 / effective_sample_size(&level);
    Some((trimmed_mean(log_times, HALF_TRIM)?, trimmed(&level, HALF_TRIM)?.error * inflation.sqrt()))
}

fn about_its_line(values: &[f64]) -> Vec<f64> {
    let points: Vec<(f64, f64)> = values.iter().enumerate().map(|(at, value)| (at as f64, *value)).collect();
    let slope = fit_line(&points).map_or(0.0, |line| line.slope);
    points.iter().map(|(at, value)| value - slope * at).collect()
}

/// The mean of the drifts of repeated runs (of logarithms), where it is larger than `margin` and that not by chance:
/// where the whole of Student's 95 % interval lies beyond it. What all runs do alike is seen here long before any
/// of them gives it away by itself. `None` where they stay level, and for fewer runs than can be judged.
pub fn common_drift(changes: &[f64], margin: f64) -> Option<f64> {
    let interval = mean_interval(changes, CONFIDENCE).filter(|interval| interval.n >= FEWEST_PAIRS)?;
    (interval.low > margin || interval.high < -margin).then_some(interval.mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::made_up::Random;

    fn level(n: usize, seed: u64) -> Vec<f64> {
        Random::new(seed).autoregression(n, 0.3, 0.02)
    }

    #[test]
    fn a_drift_is_beyond_the_margin_and_beyond_chance() {
        let mut log_times = level(400, 11);
        assert!(!Drift::of(&log_times).unwrap().exceeds(0.01));
        log_times[200..].iter_mut().for_each(|time| *time += 0.03);
        let drift = Drift::of(&log_times).unwrap();
        assert!((drift.change - 0.03).abs() < 0.006, "{drift:?}");
        assert!(drift.exceeds(0.01) && !drift.exceeds(0.03), "{drift:?}");
        assert!(!Drift { change: 0.03, error: 0.02 }.exceeds(0.01));
        assert_eq!(Drift::of(&[1.0, 2.0, 3.0]), None);
    }

    #[test]
    fn a_slope_does_not_hide_itself() {
        let sloping = |by: f64| -> Vec<f64> {
            level(200, 5).iter().enumerate().map(|(at, value)| value + by * at as f64 / 200.0).collect()
        };
        let [still, drifting] = [0.0, 0.1].map(|by| Drift::of(&sloping(by)).unwrap());
        assert!((drifting.error / still.error - 1.0).abs() < 0.1, "{still:?} {drifting:?}");
        assert!(
            drifting.exceeds(0.01) && (drifting.change - still.change - 0.05).abs() < 0.01,
            "{drifting:?}"
        );
    }

    #[test]
    fn what_all_runs_do_is_seen_before_any_of_them_shows_it() {
        // 0.03 ± 2.776 · 0.005 / √5 = 0.03 ± 0.0062
        let changes = [0.025, 0.03, 0.035, 0.025, 0.035];
        assert!((common_drift(&changes, 0.023).unwrap() - 0.03).abs() < 1e-12);
        assert_eq!(common_drift(&changes, 0.025), None);
        assert!(common_drift(&changes.map(|change| -change), 0.023).unwrap() < 0.0);
        assert_eq!(common_drift(&changes[..2], 0.001), None);
        assert_eq!(common_drift(&[-0.1, 0.1, 0.05, -0.05], 0.01), None);
    }
}
