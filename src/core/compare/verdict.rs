//! Faster, slower, the same, or not to be told; and why.

use super::margin::Margin;
use super::metrics::{Pairs, log_token_time, percent};
use super::pct::{range_pct, signed_pct};
use super::repeat::Repeat;
use super::schedule::{apart, overlap};
use super::setting::{Difference, FieldKind};
use super::sound::{drifting, unsound};
use super::step_size::is_step_size;
use crate::record::{EvidenceLevel, words};
use crate::stats::{ENOUGH_PAIRS, FEWEST_PAIRS, Paired, Place, judge_pairs};

words! {
    /// What came of a comparison.
    Verdict, "verdict" {
        Faster = "faster",
        Slower = "slower",
        /// Any difference is smaller than what matters.
        Same = "same",
        CannotTell = "cannot_tell",
    }
}

words! {
    /// What the verdict is about.
    Quantity, "quantity" {
        /// The time of a step.
        Step = "step",
        /// The time for a token, where the sides' steps have different numbers of them: throughput.
        Token = "token",
    }
}

/// A verdict and what it rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    pub verdict: Verdict,
    pub reason: String,
    pub quantity: Quantity,
    pub evidence: EvidenceLevel,
    /// Fewer pairs than are enough.
    pub provisional: bool,
    /// Nothing was concluded from the times, for a reason that more of them alone would not mend.
    pub abstained: bool,
    /// How many pairs would settle it, as runs scatter here.
    pub pairs_needed: Option<usize>,
}

/// Judges the pairs, or says why not; `runs` are all of both sides.
pub fn decide(pairs: &Pairs, runs: &[&Repeat], differs: &[Difference], margin: Margin) -> Decision {
    let quantity = quantity(pairs);
    let abstention = forbidden(differs)
        .or_else(|| uncounted(pairs, differs))
        .or_else(|| too_few(pairs))
        .or_else(|| overlap(runs))
        .or_else(|| unsound(pairs, margin))
        .or_else(|| drifting(pairs, margin));
    if let Some(reason) = abstention {
        let pairs_needed = (pairs.len() < FEWEST_PAIRS).then_some(ENOUGH_PAIRS);
        return Decision { pairs_needed, ..abstained(reason, quantity) };
    }
    match judge_pairs(&log_changes(pairs, quantity), margin.log()) {
        Some(paired) => judged(&paired, quantity, margin, apart(pairs)),
        None => abstained(
            "the times are no numbers; this is a fault of stepledger, please report it".to_owned(),
            quantity,
        ),
    }
}

/// Nothing was concluded, so that nothing is proven, however often it was measured.
fn abstained(reason: String, quantity: Quantity) -> Decision {
    Decision {
        verdict: Verdict::CannotTell,
        reason,
        quantity,
        evidence: EvidenceLevel::SmokeTest,
        provisional: false,
        abstained: true,
        pairs_needed: None,
    }
}

/// Time per token where the steps of both sides have tokens, but not as many.
fn quantity(pairs: &Pairs) -> Quantity {
    let differ =
        |(base, candidate): &(&Repeat, &Repeat)| match (base.tokens_per_step, candidate.tokens_per_step) {
            (Some(base), Some(candidate)) => (base / candidate - 1.0).abs() > 1e-6,
            _ => false,
        };
    if pairs.iter().any(differ) { Quantity::Token } else { Quantity::Step }
}

fn log_changes(pairs: &Pairs, quantity: Quantity) -> Vec<f64> {
    let log_time = |run: &Repeat| match quantity {
        Quantity::Step => Some(run.time.log_time),
        Quantity::Token => log_token_time(run),
    };
    let change = |(base, candidate): &(&Repeat, &Repeat)| Some(log_time(candidate)? - log_time(base)?);
    // One that is missing makes the list unfit, rather than shorter.
    pairs.iter().map(|pair| change(pair).unwrap_or(f64::NAN)).collect()
}

fn forbidden(differs: &[Difference]) -> Option<String> {
    let of = |kind: FieldKind| -> Vec<&str> {
        differs.iter().filter(|d| d.kind == kind).map(|d| d.field.as_str()).collect()
    };
    let sentences = [
        (FieldKind::Workload, "the workloads differ", "compare runs that compute the same"),
        (FieldKind::Machine, "the machines differ", "run both sides on one machine"),
        (FieldKind::Version, "the versions differ", "run both sides with the same builds"),
    ];
    let sentence = |(kind, what, way_out): (FieldKind, &str, &str)| {
        let fields = of(kind);
        (!fields.is_empty()).then(|| format!("{what} ({}); {way_out}", fields.join(", ")))
    };
    sentences.into_iter().find_map(sentence)
}

/// Steps of different sizes whose tokens nobody counted.
fn uncounted(pairs: &Pairs, differs: &[Difference]) -> Option<String> {
    let size = differs.iter().find(|difference| is_step_size(difference))?;
    let counted = |run: &Repeat| run.tokens_per_step.is_some();
    let all = pairs.iter().all(|(base, candidate)| counted(base) && counted(candidate));
    (!all).then(|| {
        format!(
            "steps of different sizes ({}) without a count of their tokens; give `Step::finish` the tokens of \
             each step",
            size.field
        )
    })
}

fn too_few(pairs: &Pairs) -> Option<String> {
    let why = "what varies between runs is not in it";
    let sides = match pairs.len() {
        1 => format!("one run a side: the interval holds what varies within these two runs, and {why}"),
        2 => "two pairs of runs say next to nothing about what varies between runs".to_owned(),
        _ => return None,
    };
    Some(format!("{sides}; repeat both sides, {ENOUGH_PAIRS} times or more, taking turns"))
}

fn judged(paired: &Paired, quantity: Quantity, margin: Margin, apart: Option<String>) -> Decision {
    let interval = paired.interval;
    let span = range_pct(percent(interval.low), percent(interval.high));
    let (verdict, reason) = match paired.place {
        Place::Below => {
            (Verdict::Faster, format!("the whole interval, {span}, is below {}", signed_pct(margin.low_pct)))
        }
        Place::Above => {
            (Verdict::Slower, format!("the whole interval, {span}, is above {}", signed_pct(margin.high_pct)))
        }
        Place::Within => (Verdict::Same, format!("the whole interval, {span}, is within {}", margin.told())),
        Place::Across => (Verdict::CannotTell, across(paired, &span, margin)),
    };
    let enough = interval.n >= ENOUGH_PAIRS;
    // Enough repeats are not all that it takes: an interval across the margin's end is none that is clear.
    let proven = enough && paired.place != Place::Across && apart.is_none();
    Decision {
        verdict,
        reason: apart.map_or(reason.clone(), |why| format!("{reason}; but {why}")),
        quantity,
        evidence: if proven { EvidenceLevel::RepeatedBenchmark } else { EvidenceLevel::SmokeTest },
        provisional: !enough,
        abstained: false,
        pairs_needed: paired.pairs_needed,
    }
}

fn across(paired: &Paired, span: &str, margin: Margin) -> String {
    let way_out = match paired.pairs_needed {
        Some(pairs) => {
            format!("roughly {pairs} pairs would settle it, if mean and scatter stay as they are")
        }
        None => {
            "no sensible number of pairs would settle it: quieten the machine, or run more steps".to_owned()
        }
    };
    format!("the interval, {span}, lies across an end of the margin, {}; {way_out}", margin.told())
}
