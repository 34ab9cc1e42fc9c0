//! What keeps a run, or the runs of a side together, from telling anything about a program.

use super::margin::Margin;
use super::metrics::Pairs;
use super::repeat::{MOST_OVERHEAD, Repeat};
use crate::stats::{Weakness, common_drift, longer};

/// Why nothing should be concluded from a run.
pub fn why_unsound(run: &Repeat, margin: Margin) -> Option<String> {
    run.time.weakness(margin.log()).map(|weakness| weakness.to_string()).or_else(|| too_costly(run))
}

/// Why nothing should be concluded about noise from a run. A drift alone is noise, too: it is what is measured then, and
/// no reason to look away.
pub fn why_no_noise(run: &Repeat, margin: Margin) -> Option<String> {
    let weaknesses: Vec<Weakness> = run.time.weaknesses(margin.log()).collect();
    let more_than_drift = weaknesses.iter().any(|weakness| !matches!(weakness, Weakness::Drifts { .. }));
    let first = weaknesses.first().filter(|_| more_than_drift);
    first.map(Weakness::to_string).or_else(|| too_costly(run))
}

fn too_costly(run: &Repeat) -> Option<String> {
    let overhead = run.overhead.filter(|overhead| *overhead > MOST_OVERHEAD)?;
    Some(format!(
        "its instruments cost {:.1} % of its steps' time, and {:.0} % is the most; trace less (--trace phases), or \
         measure larger steps",
        100.0 * overhead,
        100.0 * MOST_OVERHEAD
    ))
}

/// Why the pairs say nothing: a run of theirs is unsound.
pub fn unsound(pairs: &Pairs, margin: Margin) -> Option<String> {
    let runs = pairs.iter().flat_map(|(base, candidate)| [*base, *candidate]);
    let mut reasons =
        runs.filter_map(|run| Some(format!("run {}: {}", run.run_id, why_unsound(run, margin)?)));
    let first = reasons.next()?;
    Some(match reasons.count() {
        0 => first,
        1 => format!("{first} (1 more of the {} runs is no sound unit, either)", 2 * pairs.len()),
        n => format!("{first} ({n} more of the {} runs are no sound units, either)", 2 * pairs.len()),
    })
}

/// Why a side says nothing: its runs do not stay at their level, all alike.
pub fn drifting(pairs: &Pairs, margin: Margin) -> Option<String> {
    let (base, candidate): (Vec<&Repeat>, Vec<&Repeat>) = pairs.iter().copied().unzip();
    [("base", base), ("candidate", candidate)].into_iter().find_map(|(role, runs)| {
        let changes: Vec<f64> = runs.iter().filter_map(|run| Some(run.time.drift?.change)).collect();
        let change = common_drift(&changes, margin.log())?;
        Some(format!(
            "the {role}'s runs do not stay at their level: on average their second halves took {} than their first; \
             find out what changes on the way, or let the machine settle and run more warm-up steps",
            longer(change)
        ))
    })
}
