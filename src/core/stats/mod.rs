//! Numbers about numbers. Pure.
#![forbid(unsafe_code)]

mod interval;
mod line;

pub use interval::{MeanInterval, mean_interval, student_t_quantile};
pub use line::{Line, Prediction, fit_line};

/// The value below which the share `q` (0 to 1) of the values lies, between neighbours by their distance
/// (Hyndman & Fan 1996, type 7, as NumPy and R do by default). `None` for no values.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let place = q.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    Some(sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64))
}

/// The middle value. `None` for no values.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_numpy() {
        // numpy.quantile([3, 1, 2, 4], [0, .25, .5, .75, 1])
        let values = [3.0, 1.0, 2.0, 4.0];
        for (q, expected) in [(0.0, 1.0), (0.25, 1.75), (0.5, 2.5), (0.75, 3.25), (1.0, 4.0)] {
            assert_eq!(quantile(&values, q), Some(expected));
        }
    }

    #[test]
    fn nothing_has_no_median_and_one_value_is_its_own() {
        assert_eq!((median(&[]), median(&[7.0])), (None, Some(7.0)));
    }
}
