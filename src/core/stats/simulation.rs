//! Parts of the method on runs as they really are. What comes of the whole is simulated where it is decided, in
//! `compare`.

use super::made_up::{LEVEL, Random, STEPS};
use super::outliers::without_spikes;
use super::{Settled, TRIM, mean_interval, trimmed_mean};

const RUNS: usize = 1000;

/// MSER alone takes all that lies before a spike for warm-up in 94 of 100 runs.
#[test]
fn a_spike_does_not_end_the_warm_up() {
    let mut random = Random::new(7);
    let moved = |random: &mut Random, factor: f64| {
        let calm: Vec<f64> = random.autoregression(STEPS, 0.5, 0.02).into_iter().map(f64::exp).collect();
        let spike = 25 + random.below(30);
        let mut spiked = calm.clone();
        spiked[spike] *= factor;
        let [calm, spiked] = [calm, spiked].map(|times| Settled::of(&times, 1).map(|found| found.warmup));
        calm < Some(spike) && spiked > Some(spike)
    };
    for factor in [1.5, 2.0, 5.0] {
        let moved = (0..RUNS).filter(|_| moved(&mut random, factor)).count();
        assert!(moved <= RUNS / 50, "×{factor}: {moved}");
    }
}

/// Why all this: a test over pooled steps (here the plain interval of the differences of steps) calls runs of the
/// same program different about every other time.
#[test]
fn pooled_steps_would_be_wrong_all_the_time() {
    let mut random = Random::new(1);
    let mut is_wrong = || {
        let [base, candidate] = [(); 2].map(|()| random.run(0.0, LEVEL));
        let differences: Vec<f64> =
            base.iter().zip(&candidate).skip(20).map(|(base, candidate)| (candidate / base).ln()).collect();
        // Spikes would only widen it.
        mean_interval(&without_spikes(&differences), 0.95).is_some_and(|interval| interval.is_clear_of_zero())
    };
    let wrong = (0..200).filter(|_| is_wrong()).count();
    assert!(wrong > 60, "{wrong}");
}

/// The level that is found is that of the run without its warm-up, to a fifth of a percent.
#[test]
fn the_warm_up_leaves_no_bias() {
    let mut random = Random::new(9);
    let off = |random: &mut Random| {
        let steps = random.autoregression(STEPS, 0.5, 0.02);
        let warm = |(place, step): (usize, &f64)| (step + 0.4 * (-(place as f64) / 5.0).exp()).exp();
        let warming: Vec<f64> = steps.iter().enumerate().map(warm).collect();
        Settled::of(&warming, 1)?.estimate().map(|found| found.log_time)
    };
    let offs: Option<Vec<f64>> = (0..400).map(|_| off(&mut random)).collect();
    let bias = trimmed_mean(&offs.unwrap(), TRIM).unwrap();
    assert!(bias.abs() < 0.002, "{bias}");
}
