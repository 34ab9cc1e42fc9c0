//! Where a run's warm-up ends.

/// Values to a batch: the 5 of MSER-5.
const BATCH: usize = 5;

/// How many values at the beginning of `values` are warm-up, by the marginal standard error rule on means of
/// five (MSER-5; White 1997, "An effective truncation heuristic for bias reduction in simulation output",
/// Simulation 69:6): of m batch means Y, the cut d that makes
/// `Σ_{j > d} (Y_j − Ȳ_d)² / (m − d)²` least, where `Ȳ_d` is the mean of those that are left.
///
/// At most half of the batches are cut: a minimum beyond it may say that the run never settled (Hoad, Robinson & Davies
/// 2010, "Automating warm-up length estimation", Journal of the Operational Research Society 61:9), not that its end is
/// worth more. But one level run in eight of autocorrelated steps has its minimum there by chance, so whether a run
/// stays at its level is asked of [`Drift`](super::Drift), over all of it. A last batch that is not full decides nothing. Takes linear time.
pub fn mser5(values: &[f64]) -> usize {
    let means: Vec<f64> =
        values.chunks_exact(BATCH).map(|batch| batch.iter().sum::<f64>() / BATCH as f64).collect();
    let most = means.len() / 2;
    let mut best = (f64::INFINITY, 0);
    // From the end, so that what is left only ever grows by one batch (Welford's recurrence). Of equal
    // minima the smaller cut wins.
    let (mut n, mut mean, mut squares) = (0.0, 0.0, 0.0);
    for (cut, batch) in means.iter().enumerate().rev() {
        n += 1.0;
        let off = batch - mean;
        mean += off / n;
        squares += off * (batch - mean);
        let error: f64 = squares / (n * n);
        if cut <= most && error <= best.0 {
            best = (error, cut);
        }
    }
    best.1 * BATCH
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The formula as it is written.
    fn by_definition(values: &[f64]) -> usize {
        let means: Vec<f64> = values.chunks_exact(5).map(|five| five.iter().sum::<f64>() / 5.0).collect();
        let error = |cut: usize| {
            let left = &means[cut..];
            let mean = left.iter().sum::<f64>() / left.len() as f64;
            left.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (left.len() as f64).powi(2)
        };
        let cuts = 0..=means.len() / 2;
        cuts.min_by(|a, b| error(*a).total_cmp(&error(*b))).unwrap_or(0) * 5
    }

    fn wave(n: usize) -> Vec<f64> {
        (0..n).map(|place| (place as f64 * 1.7).sin()).collect()
    }

    #[test]
    fn finds_the_cut_worked_out_by_hand() {
        // Batch means 9, 3, 1, 2, 1, 2, 1, 2. The rule's statistic for d = 0 … 4: 49.875/64 = 0.779,
        // 3.429/49 = 0.070, 1.5/36 = 0.0417, 1.2/25 = 0.048, 1/16 = 0.0625: two batches go.
        let means = [9.0, 3.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0];
        let values: Vec<f64> = means.iter().flat_map(|&mean| [mean; 5]).collect();
        assert_eq!(mser5(&values), 10);
    }

    #[test]
    fn one_pass_finds_what_the_definition_does() {
        for n in [0, 4, 5, 23, 60, 137, 400] {
            for transient in [0.0, 0.5, 20.0] {
                let mut values = wave(n);
                for (place, value) in values.iter_mut().enumerate() {
                    *value += transient * (-(place as f64) / 9.0).exp();
                }
                assert_eq!(mser5(&values), by_definition(&values), "{n} values, transient {transient}");
            }
        }
    }

    #[test]
    fn at_most_half_is_cut_and_nothing_of_what_is_level() {
        let falling: Vec<f64> = (0..100).map(|place| -f64::from(place)).collect();
        assert_eq!(mser5(&falling), 50);
        assert_eq!((mser5(&[2.0; 100]), mser5(&[]), mser5(&[9.0, 1.0, 1.0])), (0, 0, 0));
    }
}
