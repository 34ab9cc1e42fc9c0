//! The whole method on runs as they really are: how often it is wrong, and how often it sees what is there.

use super::made_up::Random;
use super::{ENOUGH_PAIRS, LEAST_MARGIN, Place, Settled, TRIM, judge_pairs, mean_interval, trimmed_mean};

/// Steps of a run, warm-up included.
const STEPS: usize = 120;
const COMPARISONS: usize = 1000;

/// A run of a process: steps that depend on each other, what this process drew by lot, a warm-up that dies
/// away, and rare spikes.
fn run(random: &mut Random, level: f64) -> Vec<f64> {
    let process = 0.008 * random.normal();
    let steps = random.autoregression(STEPS, 0.5, 0.02);
    let spike =
        |random: &mut Random| if random.uniform() < 0.01 { 0.1 + 0.8 * random.uniform() } else { 0.0 };
    let at = |(place, step): (usize, f64)| {
        let warmup = 0.4 * (-(place as f64) / 5.0).exp();
        (level + process + step + warmup + spike(random)).exp()
    };
    steps.into_iter().enumerate().map(at).collect()
}

/// Where the method puts `ENOUGH_PAIRS` pairs whose candidate is `change` slower; `None` where it abstains.
fn comparison(random: &mut Random, change: f64) -> Option<Place> {
    let margin = LEAST_MARGIN.ln_1p();
    let mut estimate = |level: f64| {
        let estimate = Settled::of(&run(random, level), 1)?.estimate()?;
        estimate.weakness(margin).is_none().then_some(estimate.log_time)
    };
    let mut pair = || Some(-estimate(0.0)? + estimate(change.ln_1p())?);
    let differences: Option<Vec<f64>> = (0..ENOUGH_PAIRS).map(|_| pair()).collect();
    Some(judge_pairs(&differences?, margin)?.place)
}

/// Of many comparisons, the share that ends in one of `places`.
fn share(change: f64, places: &[Place]) -> f64 {
    let mut random = Random::new(2026);
    let mut hit = || comparison(&mut random, change).is_some_and(|place| places.contains(&place));
    (0..COMPARISONS).filter(|_| hit()).count() as f64 / COMPARISONS as f64
}

#[test]
fn identical_programs_are_hardly_ever_called_different() {
    let wrong = share(0.0, &[Place::Below, Place::Above]);
    assert!(wrong <= 0.01, "{wrong}");
}

#[test]
fn a_change_of_five_percent_is_seen() {
    let power = share(0.05, &[Place::Above]);
    assert!(power >= 0.9, "{power}");
    let mirrored = share(-0.05, &[Place::Below]);
    assert!(mirrored >= 0.9, "{mirrored}");
}

/// Why all this: a test over pooled steps (here the plain interval of the differences of steps) calls runs of the
/// same program different about every other time.
#[test]
fn pooled_steps_would_be_wrong_all_the_time() {
    let mut random = Random::new(1);
    let mut is_wrong = || {
        let [base, candidate] = [(); 2].map(|()| run(&mut random, 0.0));
        let differences: Vec<f64> =
            base.iter().zip(&candidate).skip(20).map(|(base, candidate)| (candidate / base).ln()).collect();
        mean_interval(&differences, 0.95).is_some_and(|interval| interval.is_clear_of_zero())
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
