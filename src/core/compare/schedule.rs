//! When the runs were made, which decides what else is in their difference.

use chrono::TimeDelta;

use super::metrics::Pairs;
use super::repeat::Repeat;

/// Between the two runs of a pair, at most: what else a machine does, and how warm it is, follows the hours of the day.
const FAR_APART: TimeDelta = TimeDelta::hours(6);

/// Two runs that ran at the same time, of either side and whether they are in a pair or not.
pub fn overlap(runs: &[&Repeat]) -> Option<String> {
    let mut runs = runs.to_vec();
    runs.sort_by_key(|run| run.started_at);
    let at_once = |two: &&[&Repeat]| two[0].finished_at.is_some_and(|end| end > two[1].started_at);
    let two = runs.windows(2).find(at_once)?;
    Some(format!(
        "runs {} and {} ran at the same time, and slowed each other down; run one after the other",
        two[0].run_id, two[1].run_id
    ))
}

/// Why the machine may not have been the same for both sides: pairs that do not follow each other, or whose two runs
/// lie hours apart, share no state of it.
pub fn apart(pairs: &Pairs) -> Option<String> {
    let first = |(base, candidate): &(&Repeat, &Repeat)| base.started_at.min(candidate.started_at);
    let last = |(base, candidate): &(&Repeat, &Repeat)| base.started_at.max(candidate.started_at);
    let why = "what the machine did in the meantime is part of the change";
    if pairs.windows(2).any(|two| last(&two[0]) > first(&two[1])) {
        return Some(format!("the sides did not take turns: {why}"));
    }
    let gap = pairs.iter().map(gap).max().filter(|gap| *gap > FAR_APART)?;
    Some(format!("the runs of a pair are up to {} hours apart: {why}", gap.num_hours()))
}

/// From the end of the earlier run to the start of the later one.
fn gap((base, candidate): &(&Repeat, &Repeat)) -> TimeDelta {
    let (first, second) =
        if base.started_at <= candidate.started_at { (base, candidate) } else { (candidate, base) };
    second.started_at - first.finished_at.unwrap_or(first.started_at)
}
