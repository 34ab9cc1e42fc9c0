//! What one run alone can say: an interval from resampling it.

use super::random::SplitMix64;
use super::trimmed::trimmed_mean_of;
use super::{effective_sample_size, quantile, trimmed_mean};

/// How often each series is resampled.
const RESAMPLES: usize = 1000;

/// A difference, and the interval that resampling gives for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WithinRuns {
    pub difference: f64,
    pub low: f64,
    pub high: f64,
}

/// `candidate`'s trimmed mean less `base`'s, with the percentile interval of a moving-block bootstrap (Künsch
/// 1989, "The jackknife and the bootstrap for general stationary observations", Annals of Statistics 17:3):
/// series are drawn again in blocks of neighbours, so that their autocorrelation stays.
///
/// It holds what varies *within* these two runs, and nothing of what varies between runs: two runs of the same
/// program lie outside each other's interval far more often than the confidence says. The seed makes it
/// repeatable. `None` where a series has fewer than two values or no trimmed mean.
pub fn within_runs(
    base: &[f64],
    candidate: &[f64],
    share: f64,
    confidence: f64,
    seed: u64,
) -> Option<WithinRuns> {
    if base.len().min(candidate.len()) < 2 {
        return None;
    }
    let difference = trimmed_mean(candidate, share)? - trimmed_mean(base, share)?;
    let mut random = SplitMix64::new(seed);
    let (mut base, mut candidate) = (Blocks::of(base), Blocks::of(candidate));
    let draws: Option<Vec<f64>> = (0..RESAMPLES)
        .map(|_| Some(candidate.draw(&mut random, share)? - base.draw(&mut random, share)?))
        .collect();
    let (draws, tail) = (draws?, (1.0 - confidence) / 2.0);
    Some(WithinRuns { difference, low: quantile(&draws, tail)?, high: quantile(&draws, 1.0 - tail)? })
}

/// A series, ready to be drawn again.
struct Blocks<'a> {
    values: &'a [f64],
    /// Values to a block.
    length: usize,
    drawn: Vec<f64>,
}

impl<'a> Blocks<'a> {
    fn of(values: &'a [f64]) -> Self {
        Blocks { values, length: block_length(values), drawn: Vec::with_capacity(values.len()) }
    }

    fn draw(&mut self, random: &mut SplitMix64, share: f64) -> Option<f64> {
        self.drawn.clear();
        while self.drawn.len() < self.values.len() {
            let begin = random.below(self.values.len() - self.length + 1);
            let missing = self.values.len() - self.drawn.len();
            self.drawn.extend(&self.values[begin..][..self.length.min(missing)]);
        }
        trimmed_mean_of(&mut self.drawn, share)
    }
}

/// The cube root of n, but not less than the autocorrelation time, and not more than a quarter of the series. It is the
/// order that is best for the variance of a mean (Hall, Horowitz & Jing 1995, "On blocking rules for the bootstrap
/// with dependent data", Biometrika 82:3), which is what this interval's width comes from. The order that is best for
/// the ends of a two-sided interval, n^(1/5), gives shorter blocks, of two or three in a run of 60 steps: those would
/// leave most of the dependence out.
fn block_length(values: &[f64]) -> usize {
    let n = values.len() as f64;
    let time = n / effective_sample_size(values);
    let length = n.cbrt().max(time).ceil() as usize;
    length.clamp(1, (values.len() / 4).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::made_up::Random;

    fn width(found: WithinRuns) -> f64 {
        found.high - found.low
    }

    /// The mean of an AR(1) series has the standard error `σ_e / ((1 − φ) √n)`; a difference √2 of that.
    #[test]
    fn the_interval_is_as_wide_as_the_closed_form_says() {
        for phi in [0.0, 0.5] {
            let n = 4_000;
            let [base, candidate] = [1, 2].map(|seed: u64| Random::new(seed).autoregression(n, phi, 1.0));
            let found = within_runs(&base, &candidate, 0.0, 0.95, 3).unwrap();
            let expected = 2.0 * 1.96 * 2_f64.sqrt() / ((1.0 - phi) * (n as f64).sqrt());
            assert!((width(found) / expected - 1.0).abs() < 0.15, "φ {phi}: {} {expected}", width(found));
            assert!(found.low < found.difference && found.difference < found.high);
        }
    }

    #[test]
    fn a_seed_gives_one_interval() {
        let series = Random::new(5).autoregression(60, 0.3, 1.0);
        let draw = |seed| within_runs(&series, &series[5..], 0.1, 0.95, seed);
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn constant_series_leave_no_doubt_and_too_short_ones_leave_nothing() {
        let found = within_runs(&[1.0; 9], &[3.0; 7], 0.1, 0.95, 1).unwrap();
        assert_eq!((found.difference, found.low, found.high), (2.0, 2.0, 2.0));
        assert_eq!(within_runs(&[1.0], &[3.0; 7], 0.1, 0.95, 1), None);
        assert_eq!(within_runs(&[f64::NAN; 9], &[3.0; 7], 0.1, 0.95, 1), None);
    }
}
