//! Pairs of runs, judged.

use super::{MeanInterval, mean_interval, student_t_quantile};

/// The confidence of every interval.
pub const CONFIDENCE: f64 = 0.95;
/// The fewest pairs that can be judged, and the fewest whose judgement is more than provisional.
pub const FEWEST_PAIRS: usize = 3;
pub const ENOUGH_PAIRS: usize = 5;
/// The smallest difference that matters, as a share: 1 %.
pub const LEAST_MARGIN: f64 = 0.01;
/// More repeats than this are not worth proposing.
const MOST_PAIRS: usize = 10_000;

/// Where an interval lies, seen from the band of differences that do not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Wholly below `−margin`.
    Below,
    /// Wholly within `±margin`.
    Within,
    /// Wholly above `+margin`.
    Above,
    /// Across an end of the band.
    Across,
}

/// What the differences of pairs say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Paired {
    pub place: Place,
    pub interval: MeanInterval,
    /// How many pairs it would take for the interval to leave the band's end, if mean and scatter of the differences
    /// stayed as they are: a rough number, since both are estimates, and so many pairs settle it more often than
    /// not, but not for sure. `None` where that is known, or would take more than 10,000.
    pub pairs_needed: Option<usize>,
}

/// Judges pairs by their differences: Student's 95 % interval of the mean difference, with one degree of freedom
/// less than there are pairs, against `±margin`. For step times give it differences of logarithms, so that a
/// margin δ is `ln(1 + δ)`. `None` for fewer than two pairs, or differences that are not finite.
pub fn judge_pairs(differences: &[f64], margin: f64) -> Option<Paired> {
    let interval = mean_interval(differences, CONFIDENCE)?;
    let place = place(&interval, margin);
    let pairs_needed = if place == Place::Across { pairs_needed(&interval, margin) } else { None };
    Some(Paired { place, interval, pairs_needed })
}

fn place(interval: &MeanInterval, margin: f64) -> Place {
    match interval {
        MeanInterval { high, .. } if *high < -margin => Place::Below,
        MeanInterval { low, .. } if *low > margin => Place::Above,
        MeanInterval { low, high, .. } if *low > -margin && *high < margin => Place::Within,
        _ => Place::Across,
    }
}

/// The least R with `t(R − 1) · s / √R` below what lies between the mean and the nearer end of the band.
fn pairs_needed(interval: &MeanInterval, margin: f64) -> Option<usize> {
    let reach = |pairs: usize| student_t_quantile(0.5 + CONFIDENCE / 2.0, (pairs - 1) as f64);
    let root = (interval.n as f64).sqrt();
    let deviation = (interval.high - interval.mean) * root / reach(interval.n)?;
    let room = (interval.mean.abs() - margin).abs();
    let enough = |pairs| Some(reach(pairs)? * deviation / (pairs as f64).sqrt() < room);
    // The reach shrinks with every pair, so halving finds the least.
    let (mut few, mut many) = (interval.n, MOST_PAIRS);
    if !enough(many)? {
        return None;
    }
    while many - few > 1 {
        let middle = few.midpoint(many);
        if enough(middle)? { many = middle } else { few = middle }
    }
    Some(many.max(ENOUGH_PAIRS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_students_own_pairs() {
        // Student 1908, hours of sleep gained by ten patients with each of two drugs, as in R's `sleep`:
        // t.test(paired = TRUE) gives a mean of 1.58 and the interval 0.7001142 to 2.4598858.
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let differences: Vec<f64> = second.iter().zip(first).map(|(second, first)| second - first).collect();
        let found = judge_pairs(&differences, 0.5).unwrap();
        assert!((found.interval.mean - 1.58).abs() < 1e-12);
        assert!((found.interval.low - 0.700_114_2).abs() < 1e-6, "{found:?}");
        assert!((found.interval.high - 2.459_885_8).abs() < 1e-6, "{found:?}");
        assert_eq!((found.place, found.pairs_needed), (Place::Above, None));
    }

    #[test]
    fn the_place_is_that_of_the_whole_interval() {
        let around = |mean: f64| [mean - 0.01, mean, mean + 0.01];
        // ± 4.303 · 0.01 / √3 = ± 0.0248
        for (mean, margin, expected) in [
            (0.05, 0.02, Place::Above),
            (-0.05, 0.02, Place::Below),
            (0.0, 0.03, Place::Within),
            (0.0, 0.02, Place::Across),
            (0.05, 0.03, Place::Across),
            (-0.05, 0.03, Place::Across),
        ] {
            assert_eq!(judge_pairs(&around(mean), margin).unwrap().place, expected, "{mean} {margin}");
        }
    }

    #[test]
    fn so_many_pairs_are_needed_and_one_less_is_not_enough() {
        let differences = [0.01, 0.05, 0.02, 0.04, 0.03];
        let (margin, deviation, mean) = (0.02, 0.025_f64.sqrt() / 10.0, 0.03);
        let needed = judge_pairs(&differences, margin).unwrap().pairs_needed.unwrap();
        let reach = |pairs: usize| {
            student_t_quantile(0.975, (pairs - 1) as f64).unwrap() * deviation / (pairs as f64).sqrt()
        };
        assert!(reach(needed) < mean - margin && reach(needed - 1) >= mean - margin, "{needed}");
        // A mean just at the end of the band never leaves it.
        assert_eq!(judge_pairs(&differences, mean).unwrap().pairs_needed, None);
    }

    #[test]
    fn one_pair_or_nonsense_is_not_judged() {
        assert_eq!(judge_pairs(&[0.1], 0.01), None);
        assert_eq!(judge_pairs(&[0.1, f64::NAN], 0.01), None);
    }
}
