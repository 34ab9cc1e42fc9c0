//! What the steps of one run say of its step time.

use std::fmt;

use super::{effective_sample_size, mser5, quantile, trimmed, trimmed_mean};

/// The share of the steps left out at each end of a run's mean: a tenth.
pub const TRIM: f64 = 0.1;
/// The fewest steps, warm-up cut off, that a run must have.
pub const FEWEST_STEPS: usize = 30;
/// The least effective sample size of them.
pub const LEAST_EFFECTIVE: f64 = 10.0;
/// A step is slow from this many medians on.
pub const SLOW: f64 = 1.5;
/// The normal quantile that a drift must be clear of, two-sided 99.9 %: a comparison looks at ten runs or more,
/// and one that seems to drift is enough to end it.
const DRIFT_ERRORS: f64 = 3.291;

/// A run's times, one a whole accumulation cycle, as logarithms and with the warm-up cut off.
#[derive(Debug, Clone, PartialEq)]
pub struct Settled {
    /// How many of the times given were cut off at the beginning.
    pub warmup: usize,
    /// Natural logarithms of what was kept.
    pub log_times: Vec<f64>,
}

impl Settled {
    /// Cuts the warm-up off the times of a run's steps, by MSER-5 over their logarithms. With `cycle` steps to
    /// an accumulation cycle the means of whole cycles are taken first, since the last step of a cycle does more than
    /// the others; what is left over at the end is no whole cycle. `None` where nothing is left, or a time is
    /// not positive and finite.
    pub fn of(times: &[f64], cycle: usize) -> Option<Self> {
        let cycle = cycle.max(1);
        let means = times.chunks_exact(cycle).map(|cycle| cycle.iter().sum::<f64>() / cycle.len() as f64);
        let mut log_times: Vec<f64> = means.map(f64::ln).collect();
        if log_times.is_empty() || log_times.iter().any(|time| !time.is_finite()) {
            return None;
        }
        let cut = mser5(&log_times);
        log_times.drain(..cut);
        Some(Settled { warmup: cut * cycle, log_times })
    }

    /// The run in a few numbers.
    pub fn estimate(&self) -> Option<RunEstimate> {
        Some(RunEstimate {
            warmup: self.warmup,
            kept: self.log_times.len(),
            log_time: trimmed_mean(&self.log_times, TRIM)?,
            effective: effective_sample_size(&self.log_times),
            drift: Drift::of(&self.log_times),
            tails: Tails::of(&self.log_times)?,
        })
    }
}

/// One run, as a unit of comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunEstimate {
    /// Steps cut off as warm-up, and steps (or cycles) kept.
    pub warmup: usize,
    pub kept: usize,
    /// The 10 %-trimmed mean of the logarithms of the times.
    pub log_time: f64,
    /// The effective sample size of what was kept.
    pub effective: f64,
    /// `None` where a half is too short to have a mean.
    pub drift: Option<Drift>,
    pub tails: Tails,
}

impl RunEstimate {
    /// Why the run is no sound unit of a comparison with `margin` (of logarithms); `None` where it is one.
    pub fn weakness(&self, margin: f64) -> Option<Weakness> {
        if self.kept < FEWEST_STEPS {
            return Some(Weakness::FewSteps { kept: self.kept });
        }
        if self.effective < LEAST_EFFECTIVE {
            return Some(Weakness::Correlated { effective: self.effective });
        }
        let drift = self.drift.filter(|drift| drift.exceeds(margin))?;
        Some(Weakness::Drifts { change: drift.change })
    }
}

/// What the second half of a run differs from its first half by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// Of the logarithms' trimmed means.
    pub change: f64,
    /// Its standard error, each half worth its effective sample size.
    pub error: f64,
}

impl Drift {
    fn of(log_times: &[f64]) -> Option<Self> {
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

/// Mean and standard error of half a run.
fn half(log_times: &[f64]) -> Option<(f64, f64)> {
    let found = trimmed(log_times, TRIM)?;
    let inflation = log_times.len() as f64 / effective_sample_size(log_times);
    Some((found.mean, found.error * inflation.sqrt()))
}

/// The slow steps, which the mean leaves out, in the unit of the times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tails {
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    pub max: f64,
    /// How many took more than [`SLOW`] times the median.
    pub slow: usize,
}

impl Tails {
    fn of(log_times: &[f64]) -> Option<Self> {
        let mut sorted: Vec<f64> = log_times.iter().map(|time| time.exp()).collect();
        sorted.sort_by(f64::total_cmp);
        let p50 = quantile(&sorted, 0.5)?;
        Some(Tails {
            p50,
            p95: quantile(&sorted, 0.95)?,
            p99: quantile(&sorted, 0.99)?,
            max: quantile(&sorted, 1.0)?,
            slow: sorted.iter().filter(|time| **time > SLOW * p50).count(),
        })
    }
}

/// What keeps a run from being a sound unit of comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Weakness {
    FewSteps { kept: usize },
    Correlated { effective: f64 },
    Drifts { change: f64 },
}

impl fmt::Display for Weakness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Weakness::FewSteps { kept } => write!(
                f,
                "{kept} steps are left when the warm-up is cut off, and {FEWEST_STEPS} is the least; run more steps"
            ),
            Weakness::Correlated { effective } => write!(
                f,
                "its steps depend on each other so much that they are worth {effective:.1} independent ones, and \
                 {LEAST_EFFECTIVE} is the least; run more steps"
            ),
            Weakness::Drifts { change } => write!(
                f,
                "its second half took {:+.1} % of the time of its first; let the machine settle, or run more \
                 warm-up steps",
                100.0 * change.exp_m1()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::made_up::Random;

    fn times(n: usize, transient: f64, slope: f64) -> Vec<f64> {
        let noise = Random::new(11).autoregression(n, 0.4, 0.01);
        let at = |(place, noise): (usize, f64)| {
            let place = place as f64;
            (transient * (-place / 6.0).exp() + slope * place / n as f64 + noise).exp()
        };
        noise.into_iter().enumerate().map(at).collect()
    }

    fn estimate(times: &[f64], cycle: usize) -> RunEstimate {
        Settled::of(times, cycle).unwrap().estimate().unwrap()
    }

    #[test]
    fn the_warm_up_is_cut_off_and_the_level_is_found() {
        let found = estimate(&times(200, 0.5, 0.0), 1);
        assert!((10..=60).contains(&found.warmup) && found.warmup + found.kept == 200, "{found:?}");
        assert!(found.log_time.abs() < 0.005, "{found:?}");
        assert_eq!(found.weakness(0.01), None);
    }

    #[test]
    fn spikes_move_the_tails_and_not_the_mean() {
        let calm = times(200, 0.0, 0.0);
        let mut spiked = calm.clone();
        (0..10).for_each(|spike| spiked[105 + 9 * spike] *= 4.0);
        let (calm, spiked) = (estimate(&calm, 1), estimate(&spiked, 1));
        assert!((calm.log_time - spiked.log_time).abs() < 0.002, "{calm:?} {spiked:?}");
        assert_eq!((calm.tails.slow, spiked.tails.slow), (0, 10));
        assert!(spiked.tails.p50 < 1.1 && spiked.tails.p99 > 3.5 && spiked.tails.max > 3.5, "{spiked:?}");
        assert!(spiked.tails.p95 <= spiked.tails.p99 && spiked.tails.p99 <= spiked.tails.max);
    }

    #[test]
    fn a_cycle_of_unequal_steps_is_one_value() {
        // Three cheap micro-steps and one with the optimizer in it.
        let steps: Vec<f64> = (0..162).map(|step| if step % 4 == 3 { 5.0 } else { 1.0 }).collect();
        let found = estimate(&steps, 4);
        assert_eq!((found.kept, found.warmup), (40, 0));
        assert!((found.log_time - 2.0_f64.ln()).abs() < 1e-12 && found.tails.slow == 0, "{found:?}");
    }

    #[test]
    fn weak_runs_say_why() {
        let short = estimate(&times(29, 0.0, 0.0), 1).weakness(0.01).unwrap();
        assert!(short.to_string().contains("30 is the least"), "{short}");
        assert!(estimate(&times(400, 0.0, 0.2), 1).weakness(0.01).is_some());
        let slow = Random::new(3).autoregression(120, 0.98, 0.01);
        let slow: Vec<f64> = slow.into_iter().map(f64::exp).collect();
        let weakness = estimate(&slow, 1).weakness(0.5).unwrap();
        assert!(matches!(weakness, Weakness::Correlated { .. }), "{weakness}");
    }

    #[test]
    fn a_drift_is_beyond_the_margin_and_beyond_chance() {
        let mut log_times: Vec<f64> = times(400, 0.0, 0.0).iter().map(|time| time.ln()).collect();
        assert!(!Drift::of(&log_times).unwrap().exceeds(0.01));
        log_times[200..].iter_mut().for_each(|time| *time += 0.03);
        let drift = Drift::of(&log_times).unwrap();
        assert!(
            (drift.change - 0.03).abs() < 0.006 && drift.exceeds(0.01) && !drift.exceeds(0.03),
            "{drift:?}"
        );
        let noisy = Drift { change: 0.03, error: 0.02 };
        assert!(!noisy.exceeds(0.01));
    }

    #[test]
    fn what_is_no_time_gives_no_estimate() {
        for times in [vec![], vec![1.0, 0.0], vec![1.0, -1.0], vec![1.0, f64::NAN], vec![f64::INFINITY]] {
            assert_eq!(Settled::of(&times, 1), None, "{times:?}");
        }
        assert_eq!(Settled::of(&[1.0; 3], 4), None);
    }
}
