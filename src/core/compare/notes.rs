//! What should be known before a comparison is believed.

use super::memory::peaks;
use super::metrics::Pairs;
use super::repeat::Repeat;
use super::verdict::{Margin, why_unsound};

/// How many runs a note names.
const NAMED: usize = 3;

pub fn notes(pairs: &Pairs, margin: Margin, noise_pct: Option<f64>) -> Vec<String> {
    let runs: Vec<&Repeat> = pairs.iter().flat_map(|(base, candidate)| [*base, *candidate]).collect();
    let notes = [
        order(pairs),
        overlap(&runs),
        unsound(&runs, margin),
        unknown_overhead(&runs),
        varying_peaks(pairs),
        no_noise(noise_pct),
    ];
    notes.into_iter().flatten().collect()
}

/// Pairs that do not follow each other share no state of the machine.
fn order(pairs: &Pairs) -> Option<String> {
    let first = |(base, candidate): &(&Repeat, &Repeat)| base.started_at.min(candidate.started_at);
    let last = |(base, candidate): &(&Repeat, &Repeat)| base.started_at.max(candidate.started_at);
    let mixed = pairs.windows(2).any(|two| last(&two[0]) > first(&two[1]));
    mixed.then(|| {
        "the sides did not take turns: what the machine did in the meantime is part of the change".to_owned()
    })
}

fn overlap(runs: &[&Repeat]) -> Option<String> {
    let mut runs = runs.to_vec();
    runs.sort_by_key(|run| run.started_at);
    let at_once = |two: &&[&Repeat]| two[0].finished_at.is_some_and(|end| end > two[1].started_at);
    let two = runs.windows(2).find(at_once)?;
    Some(format!(
        "runs {} and {} ran at the same time, and slowed each other down",
        two[0].run_id, two[1].run_id
    ))
}

fn unsound(runs: &[&Repeat], margin: Margin) -> Option<String> {
    let unsound: Vec<&str> =
        runs.iter().filter(|run| why_unsound(run, margin).is_some()).map(|run| run.run_id.as_str()).collect();
    let rest = unsound.len().saturating_sub(NAMED);
    let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    let named = unsound.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    (!unsound.is_empty())
        .then(|| format!("{} of {} runs are no sound units: {named}{rest}", unsound.len(), runs.len()))
}

fn unknown_overhead(runs: &[&Repeat]) -> Option<String> {
    let unknown = runs.iter().find(|run| run.overhead.is_none())?;
    Some(format!("what the instruments cost is not known, of run {} for one", unknown.run_id))
}

fn varying_peaks(pairs: &Pairs) -> Option<String> {
    let (base, candidate): (Vec<&Repeat>, Vec<&Repeat>) = pairs.iter().copied().unzip();
    let varies = [peaks(&base), peaks(&candidate)].into_iter().flatten().any(|span| span.varies());
    varies.then(|| "the runs of a side have different peaks; the highest are shown".to_owned())
}

fn no_noise(noise_pct: Option<f64>) -> Option<String> {
    noise_pct.is_none().then(|| {
        "this machine's own noise is not known; `stepledger calibrate --noise` measures it".to_owned()
    })
}
