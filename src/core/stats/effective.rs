//! How many independent values a series of dependent ones is worth.

/// Lags looked at, at most: so few that a million steps take a second or two and not a week.
const LAGS: usize = 1000;

/// The effective sample size of the mean of a series: `n / τ`, with the integrated autocorrelation time
/// `τ = 1 + 2 Σ ρ_k`, summed by Geyer's initial positive sequence (Geyer 1992, "Practical Markov chain Monte
/// Carlo", Statistical Science 7:4): pairs `ρ_{2k} + ρ_{2k+1}` as long as they are positive.
///
/// At most n: correlation that makes a mean better than independent values would is not counted on. A series
/// without any variance leaves no doubt, and is worth n. One that is still correlated after 1000 lags is looked at in
/// means of two neighbours each, whose mean is the same and whose correlation ends at half as many lags.
pub fn effective_sample_size(values: &[f64]) -> f64 {
    match autocorrelation_time(values) {
        Some(time) => values.len() as f64 / time.max(1.0),
        None => effective_sample_size(&means_of_two(values)),
    }
}

/// The integrated autocorrelation time; `None` where it cannot be told from so few lags.
fn autocorrelation_time(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let centred: Vec<f64> = values.iter().map(|value| value - mean).collect();
    let covariance = |lag: usize| -> f64 {
        centred.iter().zip(&centred[lag.min(centred.len())..]).map(|(a, b)| a * b).sum()
    };
    let variance = covariance(0);
    // What rounding of their sum leaves of equal values is no variance.
    if variance <= n * (n * mean * f64::EPSILON).powi(2) {
        return Some(1.0);
    }
    let lags = LAGS.min(values.len());
    let pairs = (0..lags / 2).map(|pair| (covariance(2 * pair) + covariance(2 * pair + 1)) / variance);
    let positive: Vec<f64> = pairs.take_while(|pair| *pair > 0.0).collect();
    let goes_on = positive.len() == lags / 2 && values.len() > LAGS;
    (!goes_on).then(|| 2.0 * positive.iter().sum::<f64>() - 1.0)
}

/// The last value of an odd number is left out.
fn means_of_two(values: &[f64]) -> Vec<f64> {
    values.chunks_exact(2).map(|two| f64::midpoint(two[0], two[1])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::made_up::Random;

    /// Of an AR(1) series, `ρ_k = φ^k`, so that `τ = (1 + φ) / (1 − φ)`.
    #[test]
    fn agrees_with_the_closed_form_of_an_autoregression() {
        for (phi, n) in [(0.0, 20_000), (0.5, 20_000), (0.9, 100_000)] {
            let series = Random::new(7).autoregression(n, phi, 1.0);
            let expected = n as f64 * (1.0 - phi) / (1.0 + phi);
            let found = effective_sample_size(&series);
            assert!((found / expected - 1.0).abs() < 0.1, "φ {phi}: {found}, not {expected}");
        }
    }

    #[test]
    fn correlation_that_helps_is_not_counted_on() {
        let series = Random::new(7).autoregression(5_000, -0.5, 1.0);
        assert!(effective_sample_size(&series) >= 0.97 * 5_000.0);
        let alternating: Vec<f64> = (0..100).map(|place| f64::from(place % 2)).collect();
        assert_eq!(effective_sample_size(&alternating).round(), 100.0);
    }

    #[test]
    fn a_slope_is_worth_little_and_equal_values_are_certain() {
        let slope: Vec<f64> = (0..200).map(f64::from).collect();
        assert!(effective_sample_size(&slope) < 10.0);
        let long: Vec<f64> = (0..50_000).map(f64::from).collect();
        let found = effective_sample_size(&long);
        assert!(found < 10.0, "{found}: correlated over more lags than are looked at");
        assert_eq!((effective_sample_size(&[0.1; 50]), effective_sample_size(&[])), (50.0, 0.0));
    }
}
