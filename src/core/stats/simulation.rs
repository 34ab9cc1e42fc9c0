//! The whole method on runs as they really are: how often it is wrong, and how often it sees what is there.

use super::made_up::Random;
use super::outliers::without_spikes;
use super::{
    ENOUGH_PAIRS, LEAST_MARGIN, Place, RunEstimate, Settled, TRIM, common_drift, judge_pairs, mean_interval,
    trimmed_mean,
};

/// Steps of a run, warm-up included.
const STEPS: usize = 120;
const COMPARISONS: usize = 1000;
/// So many are enough to tell 90 from 99 %.
const FEWER: usize = 300;

/// What the level of a run's log times does as the run goes on, over what was asked of it; `place` is from 0 to 1.
type Course = fn(place: f64) -> f64;

const LEVEL: Course = |_| 0.0;

/// A run of a process: steps that depend on each other, what this process drew by lot, a warm-up that dies
/// away, and rare spikes of up to five times the step.
fn run(random: &mut Random, level: f64, course: Course) -> Vec<f64> {
    let process = 0.008 * random.normal();
    let steps = random.autoregression(STEPS, 0.5, 0.02);
    let spike =
        |random: &mut Random| if random.uniform() < 0.01 { 0.1 + 1.5 * random.uniform() } else { 0.0 };
    let at = |(place, step): (usize, f64)| {
        let warmup = 0.4 * (-(place as f64) / 5.0).exp();
        let course = course(place as f64 / STEPS as f64);
        (level + course + process + step + warmup + spike(random)).exp()
    };
    steps.into_iter().enumerate().map(at).collect()
}

/// Where the method puts `ENOUGH_PAIRS` pairs whose candidate is `change` slower; `None` where it abstains.
fn comparison(random: &mut Random, change: f64, course: Course) -> Option<Place> {
    let margin = LEAST_MARGIN.ln_1p();
    let mut side = |level: f64| -> Option<Vec<RunEstimate>> {
        let runs: Option<Vec<_>> =
            (0..ENOUGH_PAIRS).map(|_| Settled::of(&run(random, level, course), 1)?.estimate()).collect();
        let runs = runs?;
        let drifts: Vec<f64> = runs.iter().filter_map(|run| Some(run.drift?.change)).collect();
        let sound = runs.iter().all(|run| run.weakness(margin).is_none());
        (sound && common_drift(&drifts, margin).is_none()).then_some(runs)
    };
    let (base, candidate) = (side(0.0)?, side(change.ln_1p())?);
    let differences: Vec<f64> =
        base.iter().zip(&candidate).map(|(base, candidate)| candidate.log_time - base.log_time).collect();
    Some(judge_pairs(&differences, margin)?.place)
}

/// How so many comparisons ended.
fn ends(n: usize, change: f64, course: Course) -> Vec<Option<Place>> {
    let mut random = Random::new(2026);
    (0..n).map(|_| comparison(&mut random, change, course)).collect()
}

fn share(ends: &[Option<Place>], of: &[Option<Place>]) -> f64 {
    ends.iter().filter(|end| of.contains(end)).count() as f64 / ends.len() as f64
}

#[test]
fn identical_programs_are_hardly_ever_called_different_or_refused() {
    let ends = ends(COMPARISONS, 0.0, LEVEL);
    let wrong = share(&ends, &[Some(Place::Below), Some(Place::Above)]);
    let refused = share(&ends, &[None]);
    assert!(wrong <= 0.01 && refused <= 0.05, "{wrong} {refused}");
}

#[test]
fn a_change_of_five_percent_is_seen() {
    let power = share(&ends(COMPARISONS, 0.05, LEVEL), &[Some(Place::Above)]);
    assert!(power >= 0.9, "{power}");
    let mirrored = share(&ends(COMPARISONS, -0.05, LEVEL), &[Some(Place::Below)]);
    assert!(mirrored >= 0.9, "{mirrored}");
}

/// `same` is a claim, too: of programs that differ by the margin it is made in one case of forty, as often as one end
/// of a 95 % interval misses.
#[test]
fn programs_that_differ_are_hardly_ever_called_the_same() {
    let at_the_margin = share(&ends(COMPARISONS, LEAST_MARGIN, LEVEL), &[Some(Place::Within)]);
    assert!(at_the_margin <= 0.025, "{at_the_margin}");
    let beyond = share(&ends(COMPARISONS, 0.02, LEVEL), &[Some(Place::Within)]);
    assert!(beyond <= 0.001, "{beyond}");
}

/// All runs change their level alike, so that no scatter between them gives it away: a step, or a slope.
#[test]
fn runs_that_do_not_stay_level_are_refused() {
    let courses: [(&str, Course, f64); 6] = [
        ("8 % more from the middle on", |place| if place < 0.5 { 0.0 } else { 0.08 }, 0.99),
        ("8 % more from 60 % on", |place| if place < 0.6 { 0.0 } else { 0.08 }, 0.99),
        ("8 % more from 80 % on", |place| if place < 0.8 { 0.0 } else { 0.08 }, 0.9),
        ("8 % less from the middle on", |place| if place < 0.5 { 0.0 } else { -0.08 }, 0.99),
        ("3 % more from the middle on", |place| if place < 0.5 { 0.0 } else { 0.03 }, 0.9),
        ("a slope of 8 %", |place| 0.08 * place, 0.9),
    ];
    for (what, course, least) in courses {
        let refused = share(&ends(FEWER, 0.0, course), &[None]);
        assert!(refused >= least, "{what}: {refused}");
    }
}

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
        let moved = (0..COMPARISONS).filter(|_| moved(&mut random, factor)).count();
        assert!(moved <= COMPARISONS / 50, "×{factor}: {moved}");
    }
}

/// Why all this: a test over pooled steps (here the plain interval of the differences of steps) calls runs of the
/// same program different about every other time.
#[test]
fn pooled_steps_would_be_wrong_all_the_time() {
    let mut random = Random::new(1);
    let mut is_wrong = || {
        let [base, candidate] = [(); 2].map(|()| run(&mut random, 0.0, LEVEL));
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
