//! Single wild values, set aside where they would decide what many others should.

use super::median;

/// A value is wild from so many standard deviations on.
const WILD: f64 = 3.0;
/// The median absolute deviation of normal values is their standard deviation over this.
const NORMAL: f64 = 1.4826;
/// How many neighbours a value has on each side.
const NEIGHBOURS: usize = 2;

/// The values, each that is more than three standard deviations off the median of the five about it replaced by that
/// median (Hampel's filter; Pearson 2002, "Outliers in process modeling and identification", IEEE Transactions on Control
/// Systems Technology 10:1). The deviation is that of all values, estimated by their median absolute one. One or two
/// spikes in a row vanish; what goes on for longer, such as a warm-up or another level, stays as it is.
pub fn without_spikes(values: &[f64]) -> Vec<f64> {
    let centre = median(values).unwrap_or(0.0);
    let off: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    let reach = WILD * NORMAL * median(&off).unwrap_or(0.0);
    let calm = |(place, value): (usize, &f64)| {
        let end = values.len().min(place + NEIGHBOURS + 1);
        let about = median(&values[place.saturating_sub(NEIGHBOURS)..end]).unwrap_or(*value);
        if (value - about).abs() > reach { about } else { *value }
    };
    values.iter().enumerate().map(calm).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spikes_become_what_is_about_them() {
        // The median is 3, the median absolute deviation 1: wild from 4.4 on.
        let values = [2.0, 4.0, 3.0, 2.0, 90.0, 4.0, 3.0, 2.0, 80.0, 70.0, 4.0, 3.0, 2.0];
        let calm = [2.0, 4.0, 3.0, 2.0, 3.0, 4.0, 3.0, 2.0, 70.0, 70.0, 4.0, 3.0, 2.0];
        let found = without_spikes(&values);
        assert_eq!(found[..8], calm[..8]);
        assert!(found[8] < 80.0 && found[10..] == calm[10..], "{found:?}");
    }

    #[test]
    fn what_goes_on_stays() {
        let warming = [9.0, 8.0, 6.0, 3.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0];
        assert_eq!(without_spikes(&warming), warming);
        let level = [[1.0; 8], [5.0; 8]].concat();
        assert_eq!(without_spikes(&level), level);
        assert_eq!((without_spikes(&[]), without_spikes(&[3.0])), (vec![], vec![3.0]));
    }
}
