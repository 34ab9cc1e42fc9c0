//! What should be known before a comparison is believed.

use super::margin::{Margin, MarginSource};
use super::memory::peaks;
use super::metrics::Pairs;
use super::repeat::Repeat;
use super::schedule::{apart, overlap};
use super::sound::why_unsound;
use super::verdict::Decision;
use crate::stats::FEWEST_PAIRS;
use crate::store::Noise;

/// How many runs a note names.
const NAMED: usize = 3;
/// The share of a run's measured steps that a warm-up should not reach into.
const LATE: f64 = 0.2;
/// The noise of steps that are longer or shorter by this factor is that of another program.
const OTHER_STEPS: f64 = 3.0;

/// Of the pairs that were judged, and of all runs of both sides.
pub fn notes(
    pairs: &Pairs,
    all: &[&Repeat],
    decision: &Decision,
    margin: Margin,
    noise: Option<&Noise>,
) -> Vec<String> {
    let (base, candidate): (Vec<&Repeat>, Vec<&Repeat>) = pairs.iter().copied().unzip();
    let runs = [base.as_slice(), &candidate].concat();
    let notes = [
        apart(pairs),
        overlap(all),
        late("base", &base),
        late("candidate", &candidate),
        unsound(&runs, margin),
        unknown_overhead(&runs),
        host_times(&runs),
        uncounted(&runs),
        uneven(&runs),
        other_accumulation(&base, &candidate),
        varying_peaks(&base, &candidate),
        no_phases(&runs),
        no_ledger(&runs),
        no_noise(noise),
        noise.and_then(|noise| noise_of_others(&runs, margin, noise)),
    ];
    // What the reason says need not be said again.
    notes.into_iter().flatten().filter(|note| !decision.reason.contains(note)).collect()
}

/// Level runs lose a fifth of their steps now and then, by chance, but not all runs of a side.
fn late(role: &str, runs: &[&Repeat]) -> Option<String> {
    let is_late = |run: &&Repeat| run.time.cut_share() > LATE;
    (runs.len() >= FEWEST_PAIRS && runs.iter().all(is_late)).then(|| {
        format!(
            "more than a fifth of the {role}'s measured steps was cut off as warm-up in every run; run more warm-up steps"
        )
    })
}

fn unsound(runs: &[&Repeat], margin: Margin) -> Option<String> {
    let unsound: Vec<&str> =
        runs.iter().filter(|run| why_unsound(run, margin).is_some()).map(|run| run.run_id.as_str()).collect();
    let are = if unsound.len() == 1 { "is no sound unit" } else { "are no sound units" };
    (!unsound.is_empty())
        .then(|| format!("{} of {} runs {are}: {}", unsound.len(), runs.len(), named(&unsound)))
}

/// The first of them, and how many more there are.
fn named(ids: &[&str]) -> String {
    let rest = ids.len().saturating_sub(NAMED);
    let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    ids.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ") + &rest
}

fn no_phases(runs: &[&Repeat]) -> Option<String> {
    lacking(runs, Repeat::lacks_phases).map(|lacking| {
        format!(
            "not all phases of {lacking} are there, and their times are not compared; bring the missing \
             phases-….parquet back, or leave such runs out"
        )
    })
}

fn no_ledger(runs: &[&Repeat]) -> Option<String> {
    lacking(runs, Repeat::lacks_ledger).map(|lacking| {
        format!(
            "memory was traced, but the ledger of the step with the peak is not there of {lacking}: nothing is known \
             of its bytes by category; bring the missing ledger-….parquet back, or leave such runs out"
        )
    })
}

/// How many of the runs lack something, and which.
fn lacking(runs: &[&Repeat], lacks: fn(&Repeat) -> bool) -> Option<String> {
    let ids: Vec<&str> = runs.iter().filter(|run| lacks(run)).map(|run| run.run_id.as_str()).collect();
    (!ids.is_empty()).then(|| format!("{} of {} runs ({})", ids.len(), runs.len(), named(&ids)))
}

fn unknown_overhead(runs: &[&Repeat]) -> Option<String> {
    let unknown = runs.iter().find(|run| run.overhead.is_none())?;
    Some(format!("what the instruments cost is not known, of run {} for one", unknown.run_id))
}

fn host_times(runs: &[&Repeat]) -> Option<String> {
    let run = runs.iter().find(|run| !run.waits)?;
    Some(format!(
        "no step of run {} is known to have waited for the device, none has a loss: its times are the host's; read the loss now \
         and then, and give it to `Step::finish`",
        run.run_id
    ))
}

fn varying_peaks(base: &[&Repeat], candidate: &[&Repeat]) -> Option<String> {
    let varies = [peaks(base), peaks(candidate)].into_iter().flatten().any(|span| span.varies());
    varies.then(|| "the runs of a side have different peaks; the highest are shown".to_owned())
}

fn uncounted(runs: &[&Repeat]) -> Option<String> {
    let uncounted = runs.iter().any(|run| run.tokens_per_step.is_none());
    uncounted.then(|| {
        "tokens were not counted in every run: the time of a step is judged, whatever a step holds".to_owned()
    })
}

fn uneven(runs: &[&Repeat]) -> Option<String> {
    lacking(runs, |run| run.uneven_steps > 0).map(|those| {
        format!(
            "of {those} some steps lie in longer or shorter cycles than most (from one wait for the device, or one run of \
             the optimizer, to the next), and are left out"
        )
    })
}

/// A side that updates its parameters in fewer steps does less in each.
fn other_accumulation(base: &[&Repeat], candidate: &[&Repeat]) -> Option<String> {
    let every = |runs: &[&Repeat]| runs.iter().filter_map(|run| run.steps_per_update).reduce(f64::max);
    let (base, candidate) = (every(base)?, every(candidate)?);
    // A skipped optimizer makes none of this.
    ((base / candidate - 1.0).abs() > 0.01).then(|| {
        let [base, candidate] = [base, candidate].map(|steps| (10.0 * steps).round() / 10.0);
        format!(
            "the optimizer runs in one of {base} steps of the base, and in one of {candidate} of the candidate: a step of \
             theirs is not the same work"
        )
    })
}

fn no_noise(noise: Option<&Noise>) -> Option<String> {
    noise.is_none().then(|| {
        "this machine's own noise is not known; `stepledger calibrate --noise` measures it".to_owned()
    })
}

/// Short steps are noisier than long ones.
fn noise_of_others(runs: &[&Repeat], margin: Margin, noise: &Noise) -> Option<String> {
    let logs: f64 = runs.iter().map(|run| run.time.log_time).sum();
    let step_ms = (logs / runs.len() as f64).exp() / 1e6;
    let factor = (step_ms / noise.step_ms).max(noise.step_ms / step_ms);
    (margin.source == MarginSource::Noise && factor > OTHER_STEPS).then(|| {
        format!(
            "the margin is the noise of steps of {:.3} ms, and these take {step_ms:.3} ms: measure it with their own \
             flags, `stepledger calibrate --noise -- FLAGS`",
            noise.step_ms
        )
    })
}
