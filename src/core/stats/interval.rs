//! How far a mean of few values can be trusted.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// A mean, and the interval that holds the true one with the confidence asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanInterval {
    pub n: usize,
    pub mean: f64,
    pub low: f64,
    pub high: f64,
}

impl MeanInterval {
    /// Whether the whole interval lies on one side of zero.
    pub fn is_clear_of_zero(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

/// Student's interval of a mean: `mean ± t · s / √n`, with `s` the sample's standard deviation and `t` the
/// two-sided quantile for `n − 1` degrees of freedom. For pairs, give it the differences of the pairs.
/// `None` for fewer than two values, or where one is not finite; equal values give an interval of no width.
pub fn mean_interval(values: &[f64], confidence: f64) -> Option<MeanInterval> {
    let n = values.len();
    if n < 2 || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error = (squares / (n - 1) as f64 / n as f64).sqrt();
    let reach = student_t_quantile(0.5 + confidence / 2.0, (n - 1) as f64)? * error;
    Some(MeanInterval { n, mean, low: mean - reach, high: mean + reach })
}

/// The value below which Student's t with `freedom` degrees of freedom lies with probability `p`. `None`
/// where `p` is not between 0 and 1 or `freedom` is not above 0; infinite freedom is the normal
/// distribution.
pub fn student_t_quantile(p: f64, freedom: f64) -> Option<f64> {
    if !(p > 0.0 && p < 1.0) {
        return None;
    }
    let t = StudentsT::new(0.0, 1.0, freedom).ok()?;
    // It is symmetric about 0.
    let size = upper_quantile(&t, p.max(1.0 - p));
    Some(if p < 0.5 { -size } else { size })
}

/// By bisection: `inverse_cdf` of statrs 0.19 goes by Newton steps that, for infinite freedom, never end.
fn upper_quantile(t: &StudentsT, p: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while t.cdf(high) < p && high < f64::MAX / 2.0 {
        (low, high) = (high, 2.0 * high);
    }
    loop {
        let middle = low + (high - low) / 2.0;
        // No number is left between the two.
        if middle <= low || middle >= high {
            return middle;
        }
        if t.cdf(middle) < p { low = middle } else { high = middle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_the_published_table() {
        let table = [
            (0.975, 1.0, 12.706),
            (0.975, 2.0, 4.303),
            (0.975, 4.0, 2.776),
            (0.975, 9.0, 2.262),
            (0.975, 30.0, 2.042),
            (0.975, 120.0, 1.980),
            (0.975, f64::INFINITY, 1.960),
            (0.995, 9.0, 3.250),
            (0.95, 4.0, 2.132),
        ];
        for (p, freedom, expected) in table {
            let t = student_t_quantile(p, freedom).unwrap();
            assert!((t - expected).abs() < 5e-4, "t({p}; {freedom}) = {t}, not {expected}");
            let mirrored = student_t_quantile(1.0 - p, freedom).unwrap();
            assert!((t + mirrored).abs() < 1e-6, "t({p}; {freedom}) = {t} is not −{mirrored}");
        }
    }

    #[test]
    fn there_is_no_quantile_outside_the_distribution() {
        for (p, freedom) in [(0.0, 4.0), (1.0, 4.0), (f64::NAN, 4.0), (0.5, 0.0), (0.5, -1.0)] {
            assert_eq!(student_t_quantile(p, freedom), None, "{p} {freedom}");
        }
    }

    #[test]
    fn the_interval_of_a_mean_is_students() {
        // Mean 3, s = √2.5, √5 values: 3 ± 2.776445 · 0.707107.
        let interval = mean_interval(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.95).unwrap();
        assert!((interval.low - 1.036_757).abs() < 1e-5 && (interval.high - 4.963_243).abs() < 1e-5);
        assert!(interval.is_clear_of_zero());
        assert!(!mean_interval(&[-1.0, 1.0, 0.5], 0.95).unwrap().is_clear_of_zero());
    }

    #[test]
    fn equal_values_leave_no_doubt_and_too_few_leave_nothing() {
        let certain = mean_interval(&[4.0; 9], 0.95).unwrap();
        assert_eq!((certain.low, certain.mean, certain.high), (4.0, 4.0, 4.0));
        assert_eq!(mean_interval(&[4.0], 0.95), None);
        assert_eq!(mean_interval(&[4.0, f64::NAN], 0.95), None);
    }
}
