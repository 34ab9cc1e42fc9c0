//! Single wild values, held back where they would decide what many others should.

use super::median;

/// How many standard deviations a value may lie from the median.
const REACH: f64 = 3.0;
/// The median absolute deviation of normal values is their standard deviation over this.
const NORMAL: f64 = 1.4826;

/// The values, each at most three standard deviations from the median, the deviation estimated by the median absolute
/// one (Hampel's identifier; Davies & Gather 1993, "The identification of multiple outliers", Journal of the American
/// Statistical Association 88:423). Values that differ in less than half of the places have no such scale, and stay as
/// they are.
pub fn clipped(values: &[f64]) -> Vec<f64> {
    let centre = median(values).unwrap_or(0.0);
    let off: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    let reach = REACH * NORMAL * median(&off).unwrap_or(0.0);
    if reach > 0.0 && reach.is_finite() {
        values.iter().map(|value| value.clamp(centre - reach, centre + reach)).collect()
    } else {
        values.to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wild_values_come_as_near_as_three_deviations() {
        // The median is 5, the median absolute deviation 2.
        let values = [1.0, 2.0, 4.0, 5.0, 6.0, 7.0, 100.0];
        let reach = 3.0 * 1.4826 * 2.0;
        assert_eq!(clipped(&values), [1.0, 2.0, 4.0, 5.0, 6.0, 7.0, 5.0 + reach]);
        assert_eq!(clipped(&values.map(|value| -value))[6], -5.0 - reach);
    }

    #[test]
    fn without_a_scale_nothing_is_wild() {
        for values in [&[][..], &[3.0], &[1.0, 1.0, 1.0, 9.0], &[1.0, f64::INFINITY, f64::INFINITY]] {
            assert_eq!(clipped(values), values);
        }
    }
}
