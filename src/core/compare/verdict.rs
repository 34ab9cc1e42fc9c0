//! Faster, slower, the same, or not to be told; and why.

use serde::Serialize;

use super::metrics::{Pairs, log_token_time, percent};
use super::repeat::{MOST_OVERHEAD, Repeat};
use super::setting::{Difference, FieldKind};
use crate::record::words;
use crate::stats::{ENOUGH_PAIRS, FEWEST_PAIRS, LEAST_MARGIN, Paired, Place, judge_pairs};

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

words! {
    /// Where the margin comes from.
    MarginSource, "source of the margin" {
        /// Nobody cares for less than 1 %.
        Least = "least",
        /// This machine's own noise, measured between runs of the same program.
        Noise = "noise",
    }
}

/// Differences of this size and less do not matter.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Margin {
    pub pct: f64,
    pub source: MarginSource,
}

impl Margin {
    /// `max(1 %, noise)`: `noise_pct` is the half-width that pairs of the same program had on this machine.
    pub fn of(noise_pct: Option<f64>) -> Self {
        let least = 100.0 * LEAST_MARGIN;
        match noise_pct.filter(|noise| *noise > least) {
            Some(pct) => Margin { pct, source: MarginSource::Noise },
            None => Margin { pct: least, source: MarginSource::Least },
        }
    }

    /// Of logarithms.
    pub fn log(self) -> f64 {
        (self.pct / 100.0).ln_1p()
    }
}

/// A verdict and what it rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    pub verdict: Verdict,
    pub reason: String,
    pub quantity: Quantity,
    /// Fewer pairs than are enough.
    pub provisional: bool,
    /// Nothing was concluded from the times, for a reason that more of them alone would not mend.
    pub abstained: bool,
    /// How many pairs would settle it, as runs scatter here.
    pub pairs_needed: Option<usize>,
}

/// Judges the pairs, or says why not.
pub fn decide(pairs: &Pairs, differs: &[Difference], margin: Margin) -> Decision {
    let quantity = quantity(pairs);
    let abstention = forbidden(differs)
        .or_else(|| uncounted(pairs, differs))
        .or_else(|| too_few(pairs))
        .or_else(|| unsound(pairs, margin));
    let cannot_tell = |reason| Decision {
        verdict: Verdict::CannotTell,
        reason,
        quantity,
        provisional: false,
        abstained: true,
        pairs_needed: None,
    };
    if let Some(reason) = abstention {
        let pairs_needed = (pairs.len() < FEWEST_PAIRS).then_some(ENOUGH_PAIRS);
        return Decision { pairs_needed, ..cannot_tell(reason) };
    }
    match judge_pairs(&log_changes(pairs, quantity), margin.log()) {
        Some(paired) => judged(&paired, quantity, margin),
        None => cannot_tell(
            "the times are no numbers; this is a fault of stepledger, please report it".to_owned(),
        ),
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

/// The fields that say how many samples a step has.
const STEP_SIZE: [&str; 2] = ["batch", "accumulate"];

/// Steps of different sizes whose tokens nobody counted.
fn uncounted(pairs: &Pairs, differs: &[Difference]) -> Option<String> {
    let size = differs.iter().find(|difference| STEP_SIZE.contains(&difference.field.as_str()))?;
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

/// One run in twenty may be unsound; from then on the runs say nothing about the programs.
fn unsound(pairs: &Pairs, margin: Margin) -> Option<String> {
    let runs = pairs.iter().flat_map(|(base, candidate)| [*base, *candidate]);
    let reasons: Vec<String> =
        runs.filter_map(|run| Some(format!("run {}: {}", run.run_id, why_unsound(run, margin)?))).collect();
    let first = reasons.first().filter(|_| reasons.len() > pairs.len() / 10)?;
    let others = match reasons.len() {
        1 => String::new(),
        n => format!(" (and {} more runs of {})", n - 1, 2 * pairs.len()),
    };
    Some(format!("{first}{others}"))
}

/// Why nothing should be concluded from a run.
pub fn why_unsound(run: &Repeat, margin: Margin) -> Option<String> {
    if let Some(weakness) = run.time.weakness(margin.log()) {
        return Some(weakness.to_string());
    }
    let overhead = run.overhead.filter(|overhead| *overhead > MOST_OVERHEAD)?;
    Some(format!(
        "its instruments cost {:.1} % of its steps' time, and {:.0} % is the most; trace less (--trace phases), or \
         measure larger steps",
        100.0 * overhead,
        100.0 * MOST_OVERHEAD
    ))
}

fn judged(paired: &Paired, quantity: Quantity, margin: Margin) -> Decision {
    let (interval, band) = (paired.interval, format!("±{:.1} %", margin.pct));
    let span = format!("{:+.1} % to {:+.1} %", percent(interval.low), percent(interval.high));
    let (verdict, reason) = match paired.place {
        Place::Below => {
            (Verdict::Faster, format!("the whole interval, {span}, is below −{:.1} %", margin.pct))
        }
        Place::Above => {
            (Verdict::Slower, format!("the whole interval, {span}, is above +{:.1} %", margin.pct))
        }
        Place::Within => (Verdict::Same, format!("the whole interval, {span}, is within {band}")),
        Place::Across => (Verdict::CannotTell, across(paired, &span, &band)),
    };
    Decision {
        verdict,
        reason,
        quantity,
        provisional: interval.n < ENOUGH_PAIRS,
        abstained: false,
        pairs_needed: paired.pairs_needed,
    }
}

fn across(paired: &Paired, span: &str, band: &str) -> String {
    let way_out = match paired.pairs_needed {
        Some(pairs) => format!("about {pairs} pairs would settle it, if runs scatter on as they do"),
        None => {
            "no sensible number of pairs would settle it: quieten the machine, or run more steps".to_owned()
        }
    };
    format!("the interval, {span}, lies across an end of {band}; {way_out}")
}
