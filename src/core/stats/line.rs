//! A straight line through measured points, and how far it can be trusted beyond them.

use super::student_t_quantile;

/// The least-squares line `y = intercept + slope · x`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    pub n: usize,
    pub intercept: f64,
    pub slope: f64,
    /// The residuals' standard deviation, `√(Σ r² / (n − 2))`. `None` for two points, through which a line always
    /// goes.
    pub residual_sd: Option<f64>,
    /// The largest residual beside the value it belongs to, `max |r| / |y|`.
    pub worst_relative_residual: f64,
    mean_x: f64,
    spread_x: f64,
}

/// A value of the line at one place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    pub value: f64,
    /// What holds the next measurement with the confidence asked for; `None` where two points leave nothing to
    /// tell it from.
    pub interval: Option<(f64, f64)>,
}

/// The line through `(x, y)` points that has the least sum of squared residuals. `None` unless there are two
/// different `x`, and everything is finite.
pub fn fit_line(points: &[(f64, f64)]) -> Option<Line> {
    let n = points.len();
    if n < 2 || points.iter().any(|(x, y)| !x.is_finite() || !y.is_finite()) {
        return None;
    }
    let mean_of = |value: fn(&(f64, f64)) -> f64| points.iter().map(value).sum::<f64>() / n as f64;
    let (mean_x, mean_y) = (mean_of(|point| point.0), mean_of(|point| point.1));
    let spread_x: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    if spread_x == 0.0 {
        return None;
    }
    let slope = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>() / spread_x;
    let intercept = mean_y - slope * mean_x;
    let residual = |(x, y): &(f64, f64)| y - (mean_y + slope * (x - mean_x));
    let squares: f64 = points.iter().map(|point| residual(point).powi(2)).sum();
    let relative = |point: &(f64, f64)| (residual(point) / point.1).abs();
    Some(Line {
        n,
        intercept,
        slope,
        residual_sd: (n > 2).then(|| (squares / (n - 2) as f64).sqrt()),
        worst_relative_residual: points.iter().map(relative).filter(|r| r.is_finite()).fold(0.0, f64::max),
        mean_x,
        spread_x,
    })
}

impl Line {
    /// The value at `x`, and Student's interval for one more measurement there:
    /// `y ± t · s · √(1 + 1/n + (x − x̄)² / Σ(xᵢ − x̄)²)`, with `t` the two-sided quantile for `n − 2` degrees of
    /// freedom (Draper & Smith, *Applied Regression Analysis*, 3rd edition, 1.4 and 3.1). Points on one line
    /// give an interval of no width.
    pub fn predict(&self, x: f64, confidence: f64) -> Prediction {
        let value = self.intercept + self.slope * x;
        let interval = self.residual_sd.and_then(|sd| {
            let t = student_t_quantile(0.5 + confidence / 2.0, (self.n - 2) as f64)?;
            let away = (x - self.mean_x).powi(2) / self.spread_x;
            let reach = t * sd * (1.0 + 1.0 / self.n as f64 + away).sqrt();
            Some((value - reach, value + reach))
        });
        Prediction { value, interval }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_agrees_with_the_formulas_by_hand() {
        // x̄ = 2.5, ȳ = 3.85, Σ(x − x̄)² = 5, Σ(x − x̄)(y − ȳ) = 5.5.
        let line = fit_line(&[(1.0, 2.0), (2.0, 4.0), (3.0, 3.6), (4.0, 5.8)]).unwrap();
        assert!((line.slope - 1.1).abs() < 1e-12 && (line.intercept - 1.1).abs() < 1e-12, "{line:?}");
        // Residuals −0.2, 0.7, −0.8, 0.3: Σ r² = 1.26, s² = 0.63.
        assert!((line.residual_sd.unwrap() - 0.63_f64.sqrt()).abs() < 1e-12);
        assert!((line.worst_relative_residual - 0.8 / 3.6).abs() < 1e-12);
        // At 5: 6.6 ± 4.302653 · √0.63 · √(1 + 1/4 + 6.25/5).
        let at_five = line.predict(5.0, 0.95);
        let reach = 4.302_653 * 0.63_f64.sqrt() * 2.5_f64.sqrt();
        let (low, high) = at_five.interval.unwrap();
        assert!((at_five.value - 6.6).abs() < 1e-12);
        assert!((low - (6.6 - reach)).abs() < 1e-5 && (high - (6.6 + reach)).abs() < 1e-5);
    }

    #[test]
    fn points_on_a_line_leave_no_doubt_and_two_points_leave_nothing_to_tell_it_from() {
        let exact = fit_line(&[(1.0, 10.0), (2.0, 20.0), (4.0, 40.0)]).unwrap().predict(64.0, 0.95);
        let (low, high) = exact.interval.unwrap();
        assert!((exact.value - 640.0).abs() < 1e-9 && high - low < 1e-9, "{exact:?}");
        let two = fit_line(&[(1.0, 10.0), (2.0, 20.0)]).unwrap();
        assert_eq!((two.residual_sd, two.predict(3.0, 0.95).interval), (None, None));
    }

    #[test]
    fn one_place_or_no_number_makes_no_line() {
        for points in [&[][..], &[(1.0, 2.0)], &[(1.0, 2.0), (1.0, 3.0)], &[(1.0, 2.0), (2.0, f64::NAN)]] {
            assert_eq!(fit_line(points), None, "{points:?}");
        }
    }
}
