//! What the steps of one run say of its step time.

use std::fmt;

use super::outliers::without_spikes;
use super::{Drift, effective_sample_size, mser5, quantile, trimmed_mean};

/// The share of the steps left out at each end of a run's mean: a tenth.
pub const TRIM: f64 = 0.1;
/// The fewest steps, warm-up cut off, that a run must have.
pub const FEWEST_STEPS: usize = 30;
/// So many measured steps always leave [`FEWEST_STEPS`], since at most half of them are cut off.
pub const SURE_STEPS: usize = 2 * FEWEST_STEPS;
/// The least effective sample size of them.
pub const LEAST_EFFECTIVE: f64 = 10.0;
/// A step is slow from this many medians on.
pub const SLOW: f64 = 1.5;
/// The share of a run that may pass before its level counts as reached: what happens later is a drift.
const SETTLING: f64 = 0.2;

/// A run's times, one a whole cycle of steps, as logarithms, with the warm-up cut off.
#[derive(Debug, Clone, PartialEq)]
pub struct Settled {
    /// How many of the steps given were cut off at the beginning.
    pub warmup: usize,
    /// Steps to one of the times.
    cycle: usize,
    /// Natural logarithms of what was kept.
    pub log_times: Vec<f64>,
    /// Those of what was cut off.
    cut: Vec<f64>,
}

impl Settled {
    /// Cuts the warm-up off the times of a run's steps, by MSER-5 over their logarithms. With `cycle` steps to
    /// a cycle (of accumulation, or from one wait for the device to the next) the means of whole cycles are taken first,
    /// since the last step of a cycle does more than the others; what is left over at the end is no whole cycle. `None` where nothing is left, or a time is
    /// not positive and finite.
    ///
    /// The search, and nothing else, does not see single slow steps: a spike makes whatever is left without it look
    /// better, so that MSER would call all that comes before it warm-up.
    pub fn of(times: &[f64], cycle: usize) -> Option<Self> {
        let cycle = cycle.max(1);
        let means = times.chunks_exact(cycle).map(|cycle| cycle.iter().sum::<f64>() / cycle.len() as f64);
        let mut cut: Vec<f64> = means.map(f64::ln).collect();
        if cut.is_empty() || cut.iter().any(|time| !time.is_finite()) {
            return None;
        }
        let log_times = cut.split_off(mser5(&without_spikes(&cut)));
        Some(Settled { warmup: cut.len() * cycle, cycle, log_times, cut })
    }

    /// The run in a few numbers.
    pub fn estimate(&self) -> Option<RunEstimate> {
        let all = [self.cut.as_slice(), &self.log_times].concat();
        let settling = self.cut.len().min((SETTLING * all.len() as f64) as usize);
        Some(RunEstimate {
            cycle: self.cycle,
            cut: self.cut.len(),
            kept: self.log_times.len(),
            measured: all.len(),
            log_time: trimmed_mean(&self.log_times, TRIM)?,
            effective: effective_sample_size(&self.log_times),
            drift: Drift::of(&all[settling..]),
            tails: Tails::of(&all)?,
        })
    }
}

/// One run, as a unit of comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunEstimate {
    /// Steps to a cycle, which has one time; 1 where each has its own.
    pub cycle: usize,
    /// Cycles cut off as warm-up, those kept, and both together.
    pub cut: usize,
    pub kept: usize,
    pub measured: usize,
    /// The 10 %-trimmed mean of the logarithms of the times.
    pub log_time: f64,
    /// The effective sample size of what was kept.
    pub effective: f64,
    /// Of the whole run but for what the warm-up has of its first fifth: what was cut off beyond that may be a level
    /// that changed. `None` where a half is too short to have a mean.
    pub drift: Option<Drift>,
    pub tails: Tails,
}

impl RunEstimate {
    /// The share of what was measured that was cut off as warm-up.
    pub fn cut_share(&self) -> f64 {
        self.cut as f64 / self.measured as f64
    }

    /// How many steps were cut off as warm-up.
    pub fn cut_steps(&self) -> usize {
        self.cut * self.cycle
    }

    /// How many steps were measured, as far as they make whole cycles.
    pub fn measured_steps(&self) -> usize {
        self.measured * self.cycle
    }

    /// Why the run is no sound unit of a comparison with `margin` (of logarithms); `None` where it is one.
    pub fn weakness(&self, margin: f64) -> Option<Weakness> {
        self.weaknesses(margin).next()
    }

    /// All that keeps the run from being a sound unit, what has the plainest way out first.
    pub fn weaknesses(&self, margin: f64) -> impl Iterator<Item = Weakness> {
        let (kept, cycle) = (self.kept, self.cycle);
        let few = (kept < FEWEST_STEPS).then_some(Weakness::FewSteps { kept, cycle });
        let drift = self.drift.filter(|drift| drift.exceeds(margin));
        let drifts = drift.map(|drift| Weakness::Drifts { change: drift.change });
        let correlated = self.effective < LEAST_EFFECTIVE;
        let correlated = correlated.then_some(Weakness::Correlated { effective: self.effective });
        [few, drifts, correlated].into_iter().flatten()
    }
}

/// The slow steps, which the mean leaves out, in the unit of the times: those of all measured steps, whatever else was
/// cut off as warm-up. Of steps in cycles: the slow cycles, each by its mean step.
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
    FewSteps { kept: usize, cycle: usize },
    Drifts { change: f64 },
    Correlated { effective: f64 },
}

impl fmt::Display for Weakness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Weakness::FewSteps { kept, cycle } => write!(
                f,
                "{kept} {} left when the warm-up is cut off, and {FEWEST_STEPS} is the least; measure \
                 {} steps or more, which always leave them",
                match (cycle, kept) {
                    (1, 1) => "step is".to_owned(),
                    (1, _) => "steps are".to_owned(),
                    (cycle, 1) => format!("cycle of {cycle} steps is"),
                    (cycle, _) => format!("cycles of {cycle} steps are"),
                },
                cycle * SURE_STEPS
            ),
            Weakness::Drifts { change } => write!(
                f,
                "its second half took {} than its first; let the machine settle, or run more warm-up steps",
                longer(*change)
            ),
            Weakness::Correlated { effective } => write!(
                f,
                "its steps depend on each other so much that they are worth {effective:.1} independent ones, and \
                 {LEAST_EFFECTIVE} is the least; run more steps"
            ),
        }
    }
}

/// A change of logarithms of times, in words that `than` follows.
pub fn longer(change: f64) -> String {
    let pct = 100.0 * change.exp_m1();
    format!("{:.1} % {} time", pct.abs(), if pct < 0.0 { "less" } else { "more" })
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
        assert!((10..=60).contains(&found.cut) && found.cut + found.kept == 200, "{found:?}");
        assert!(found.log_time.abs() < 0.005, "{found:?}");
        assert_eq!(found.weakness(0.01), None);
    }

    #[test]
    fn spikes_move_the_tails_and_not_the_mean() {
        // One of them early, which must not end a warm-up.
        for first in [30, 105] {
            let calm = times(200, 0.0, 0.0);
            let mut spiked = calm.clone();
            (0..10).for_each(|spike| spiked[first + 9 * spike] *= 4.0);
            let (calm, spiked) = (estimate(&calm, 1), estimate(&spiked, 1));
            assert!((calm.log_time - spiked.log_time).abs() < 0.002, "{calm:?} {spiked:?}");
            assert_eq!((calm.tails.slow, spiked.tails.slow, spiked.measured), (0, 10, 200), "{first}");
            assert!(spiked.tails.p50 < 1.1 && spiked.tails.p99 > 3.5 && spiked.tails.max > 3.5, "{spiked:?}");
            assert!(spiked.tails.p95 <= spiked.tails.p99 && spiked.tails.p99 <= spiked.tails.max);
        }
    }

    #[test]
    fn tails_are_those_of_all_steps_and_the_mean_is_not() {
        let mut steps = vec![1.0; 100];
        steps[..10].fill(3.0);
        let found = estimate(&steps, 1);
        assert_eq!((found.cut, found.kept, found.measured), (10, 90, 100));
        assert_eq!((found.log_time, found.tails.slow), (0.0, 10));
        assert!((found.tails.max - 3.0).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn a_cycle_of_unequal_steps_is_one_value() {
        // Three cheap micro-steps and one with the optimizer in it.
        let steps: Vec<f64> = (0..162).map(|step| if step % 4 == 3 { 5.0 } else { 1.0 }).collect();
        let found = estimate(&steps, 4);
        assert_eq!((found.kept, found.cut), (40, 0));
        assert!((found.log_time - 2.0_f64.ln()).abs() < 1e-12 && found.tails.slow == 0, "{found:?}");
    }

    #[test]
    fn steps_are_counted_as_steps_whatever_makes_a_cycle() {
        let mut steps = vec![1.0; 240];
        steps[..120].fill(3.0);
        for cycle in [1, 4] {
            let found = estimate(&steps, cycle);
            assert_eq!(
                (found.cut_steps(), found.measured_steps(), found.cut_share()),
                (120, 240, 0.5),
                "{cycle}"
            );
        }
    }

    #[test]
    fn weak_runs_say_why() {
        let short = estimate(&times(29, 0.0, 0.0), 1).weakness(0.01).unwrap();
        assert!(short.to_string().contains("30 is the least"), "{short}");
        assert!(short.to_string().contains("60 steps or more"), "{short}");
        for (slope, told) in [(0.2, "8.3 % more time than its first"), (-0.2, "% less time than its first")] {
            let sloping = estimate(&times(400, 0.0, slope), 1).weakness(0.01).unwrap().to_string();
            assert!(sloping.contains("its second half took") && sloping.contains("let the machine settle"));
            assert!(sloping.contains(told), "{slope}: {sloping}");
        }
        let slow = Random::new(3).autoregression(120, 0.98, 0.01);
        let slow: Vec<f64> = slow.into_iter().map(f64::exp).collect();
        let weakness = estimate(&slow, 1).weakness(0.5).unwrap();
        assert!(matches!(weakness, Weakness::Correlated { .. }), "{weakness}");
    }

    /// MSER cuts it in half as a warm-up, and what is left is level.
    #[test]
    fn a_level_that_changes_is_a_drift_wherever_it_does() {
        for at in [0.5, 0.6, 0.7] {
            let mut steps = times(200, 0.0, 0.0);
            steps[(200.0 * at) as usize..].iter_mut().for_each(|time| *time *= 1.08);
            let weakness = estimate(&steps, 1).weakness(0.01);
            assert!(matches!(weakness, Some(Weakness::Drifts { .. })), "{at}: {weakness:?}");
        }
    }

    #[test]
    fn a_run_has_all_its_weaknesses() {
        let mut steps = times(40, 0.0, 0.0);
        steps[20..].iter_mut().for_each(|time| *time *= 2.0);
        let found: Vec<Weakness> = estimate(&steps, 1).weaknesses(0.01).collect();
        assert!(matches!(found[..], [Weakness::FewSteps { .. }, Weakness::Drifts { .. }, ..]), "{found:?}");
    }

    #[test]
    fn what_is_no_time_gives_no_estimate() {
        for times in [vec![], vec![1.0, 0.0], vec![1.0, -1.0], vec![1.0, f64::NAN], vec![f64::INFINITY]] {
            assert_eq!(Settled::of(&times, 1), None, "{times:?}");
        }
        assert_eq!(Settled::of(&[1.0; 3], 4), None);
    }
}
