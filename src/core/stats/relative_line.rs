//! A straight line through repeated measurements that scatter in proportion to their size, as times do.

use super::{Prediction, median, student_t_quantile};

/// The line `y = intercept + slope · x` that has the least sum of squared *relative* residuals from the medians of the
/// repeats at each `x`. A machine that is 5 % slower for a while is so at every `x`: unweighted squares would listen
/// to the largest values alone, and means to single disturbed repeats.
#[derive(Debug, Clone, PartialEq)]
pub struct RelativeLine {
    /// All repeats.
    pub n: usize,
    pub intercept: f64,
    pub slope: f64,
    /// The largest distance of a median from the line, beside the median.
    pub worst_relative_residual: f64,
    /// The standard deviation of the repeats about the line, each beside the median of its place. `None` for two
    /// repeats, through which a line always goes.
    pub relative_sd: Option<f64>,
    weights: f64,
    mean_x: f64,
    spread_x: f64,
}

/// The repeats at one `x`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Place {
    x: f64,
    median: f64,
    /// Of its median: as many as there are repeats, over the square of what they scatter in proportion to.
    weight: f64,
}

/// The line through `(x, y)` points. `None` unless there are two different `x`, everything is finite and every `y`
/// above 0.
///
/// Weighted least squares with weights `nₓ / mₓ²` for the median `mₓ` of `nₓ` repeats (Draper & Smith, *Applied
/// Regression Analysis*, 3rd edition, 9.2: weights in inverse proportion to the variance).
pub fn fit_relative_line(points: &[(f64, f64)]) -> Option<RelativeLine> {
    if points.iter().any(|(x, y)| !x.is_finite() || !y.is_finite() || *y <= 0.0) {
        return None;
    }
    let places = places(points);
    let weights: f64 = places.iter().map(|place| place.weight).sum();
    let mean = |value: fn(&Place) -> f64| {
        places.iter().map(|place| place.weight * value(place)).sum::<f64>() / weights
    };
    let (mean_x, mean_y) = (mean(|place| place.x), mean(|place| place.median));
    let spread_x: f64 = places.iter().map(|place| place.weight * (place.x - mean_x).powi(2)).sum();
    if places.len() < 2 || spread_x == 0.0 {
        return None;
    }
    let product = |place: &Place| place.weight * (place.x - mean_x) * (place.median - mean_y);
    let slope = places.iter().map(product).sum::<f64>() / spread_x;
    let at = |x: f64| mean_y + slope * (x - mean_x);
    let squares: f64 = points.iter().map(|(x, y)| ((y - at(*x)) / median_at(&places, *x)).powi(2)).sum();
    let n = points.len();
    Some(RelativeLine {
        n,
        intercept: mean_y - slope * mean_x,
        slope,
        worst_relative_residual: places
            .iter()
            .map(|place| ((place.median - at(place.x)) / place.median).abs())
            .fold(0.0, f64::max),
        relative_sd: (n > 2).then(|| (squares / (n - 2) as f64).sqrt()),
        weights,
        mean_x,
        spread_x,
    })
}

/// Each `x` once, in order.
fn places(points: &[(f64, f64)]) -> Vec<Place> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|one, other| one.0.total_cmp(&other.0));
    let place = |repeats: &[(f64, f64)]| {
        let median = median(&repeats.iter().map(|(_, y)| *y).collect::<Vec<_>>())?;
        Some(Place { x: repeats[0].0, median, weight: repeats.len() as f64 / median.powi(2) })
    };
    sorted.chunk_by(|one, other| one.0 == other.0).filter_map(place).collect()
}

/// Of the places, which are in order of `x`.
fn median_at(places: &[Place], x: f64) -> f64 {
    places.get(places.partition_point(|place| place.x < x)).map_or(f64::NAN, |place| place.median)
}

impl RelativeLine {
    /// The value at `x`, and Student's interval for one more measurement there, whose deviation is in proportion to
    /// the value: `y ± t · s · √(y² + 1/W + (x − x̄)² / S)`, with `W` the sum of the weights, `x̄` and `S` the weighted
    /// mean and sum of squares of the `x`, and `t` the two-sided quantile for `n − 2` degrees of freedom. It may reach
    /// below 0.
    pub fn predict(&self, x: f64, confidence: f64) -> Prediction {
        let value = self.intercept + self.slope * x;
        let interval = self.relative_sd.and_then(|sd| {
            let t = student_t_quantile(0.5 + confidence / 2.0, (self.n - 2) as f64)?;
            let of_the_line = 1.0 / self.weights + (x - self.mean_x).powi(2) / self.spread_x;
            let reach = t * sd * (value.powi(2) + of_the_line).sqrt();
            Some((value - reach, value + reach))
        });
        Prediction { value, interval }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fit_line;
    use super::super::made_up::Random;
    use super::*;

    #[test]
    fn a_line_agrees_with_the_formulas_by_hand() {
        // Weights 1, 1/4, 1/16 of 1, 2, 4 at 1, 3, 4: W = 1.3125, x̄ = 2/1.3125, ȳ = 1.75/1.3125.
        let line = fit_relative_line(&[(1.0, 1.0), (3.0, 2.0), (4.0, 4.0)]).unwrap();
        let (w, x, y) = (1.3125, 2.0 / 1.3125, 1.75 / 1.3125);
        let spread: f64 =
            [(1.0, 1.0), (3.0, 0.25), (4.0, 0.0625)].iter().map(|(at, w)| w * (at - x) * (at - x)).sum();
        let product = (1.0 - x) * (1.0 - y) + 0.25 * (3.0 - x) * (2.0 - y) + 0.0625 * (4.0 - x) * (4.0 - y);
        let slope = product / spread;
        assert!((line.slope - slope).abs() < 1e-12 && (line.intercept - (y - slope * x)).abs() < 1e-12);
        let value = |at: f64| line.intercept + line.slope * at;
        let relative = [1.0 - value(1.0), (2.0 - value(3.0)) / 2.0, (4.0 - value(4.0)) / 4.0];
        let sd = relative.iter().map(|r| r * r).sum::<f64>().sqrt();
        assert!((line.relative_sd.unwrap() - sd).abs() < 1e-12);
        // One degree of freedom: t = 12.7062.
        let at_two = line.predict(2.0, 0.95);
        let reach = 12.706_205 * sd * (value(2.0).powi(2) + 1.0 / w + (2.0 - x).powi(2) / spread).sqrt();
        assert!((at_two.interval.unwrap().1 - at_two.value - reach).abs() < 1e-5, "{at_two:?}");
    }

    #[test]
    fn one_disturbed_repeat_moves_the_interval_and_not_the_line() {
        let calm = [(1.0, 3.0), (1.0, 3.0), (1.0, 3.0), (4.0, 9.0), (4.0, 9.0), (4.0, 9.0)];
        let mut disturbed = calm;
        disturbed[5].1 = 20.0;
        let [calm, disturbed] = [calm, disturbed].map(|points| fit_relative_line(&points).unwrap());
        assert_eq!((calm.slope, calm.relative_sd), (2.0, Some(0.0)));
        assert_eq!((disturbed.slope, disturbed.worst_relative_residual), (2.0, 0.0));
        assert!(disturbed.relative_sd.unwrap() > 0.5);
    }

    #[test]
    fn one_place_or_no_positive_value_makes_no_line() {
        for points in [&[][..], &[(1.0, 2.0)], &[(1.0, 2.0), (1.0, 3.0)], &[(1.0, 2.0), (2.0, 0.0)]] {
            assert_eq!(fit_relative_line(points), None, "{points:?}");
        }
        let two = fit_relative_line(&[(1.0, 10.0), (2.0, 20.0)]).unwrap();
        assert_eq!(
            (two.relative_sd, two.predict(3.0, 0.95)),
            (None, Prediction { value: 30.0, interval: None })
        );
    }

    /// Runs of 6 + 4.7·batch ms at batches 4, 8 and 16, three of each, that scatter by 6 % and of which one in ten
    /// takes a third longer; predicted at batches 6, 12, 24 and 32.
    #[test]
    fn predictions_are_nearer_than_those_of_unweighted_squares() {
        let mut random = Random::new(20_261_130);
        let truth = |batch: f64| 6.0 + 4.7 * batch;
        let (mut near, mut near_unweighted, mut held) = (0, 0, 0);
        const ROUNDS: usize = 500;
        for _ in 0..ROUNDS {
            let mut run = |batch: f64| {
                let disturbed = if random.uniform() < 0.1 { 1.33 } else { 1.0 };
                truth(batch) * disturbed * (0.06 * random.normal()).exp()
            };
            let points: Vec<(f64, f64)> =
                [4.0, 8.0, 16.0].into_iter().flat_map(|b| [b; 3]).map(|b| (b, run(b))).collect();
            let (line, plain) = (fit_relative_line(&points).unwrap(), fit_line(&points).unwrap());
            for batch in [6.0, 12.0, 24.0, 32.0] {
                let off = |value: f64| (value / truth(batch) - 1.0).abs();
                let predicted = line.predict(batch, 0.95);
                near += usize::from(off(predicted.value) <= 0.1);
                near_unweighted += usize::from(off(plain.predict(batch, 0.95).value) <= 0.1);
                let (low, high) = predicted.interval.unwrap();
                let one_more = run(batch);
                held += usize::from(low <= one_more && one_more <= high);
            }
        }
        let share = |count: usize| count as f64 / (4 * ROUNDS) as f64;
        let shares = [near, near_unweighted, held].map(share);
        assert!(shares[0] > shares[1] + 0.05 && shares[2] > 0.9, "{shares:?}");
    }
}
