//! Conditions under which a change is not let through.

use std::str::FromStr;

use serde::Serialize;

use super::memory::CategoryBytes;
use super::metrics::{byte_changes, change_pct, find};
use super::pct::{range_pct, signed_pct};
use super::{Comparison, Metric};
use crate::record::{Category, Phase, words};

/// What a condition can be about, beside phases and categories.
const FIGURES: [&str; 4] = ["step", "token", "tokens_per_s", "peak"];

/// A limit on the change of one metric, such as `step>+5%`.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// As it was written.
    text: String,
    metric: String,
    side: Side,
    pct: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Above,
    Below,
}

/// What was written is no condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no condition: {problem}; write METRIC>+N% or METRIC<-N%, such as 'step>+5%', with one of: {}",
    allowed()
)]
pub struct ConditionError {
    text: String,
    problem: String,
}

fn allowed() -> String {
    let phases = Phase::WORDS.iter().copied().filter(|phase| *phase != Phase::Validation.as_str());
    FIGURES.into_iter().chain(phases).chain(Category::WORDS.iter().copied()).collect::<Vec<_>>().join(", ")
}

fn is_metric(name: &str) -> bool {
    let phase = name.parse::<Phase>().is_ok_and(|phase| phase != Phase::Validation);
    phase || FIGURES.contains(&name) || name.parse::<Category>().is_ok()
}

impl FromStr for Condition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        let wrong = |problem: &str| ConditionError { text: text.to_owned(), problem: problem.to_owned() };
        let at = text.find(['>', '<']).ok_or_else(|| wrong("it has neither `>` nor `<`"))?;
        let (metric, limit) = (text[..at].trim(), text[at + 1..].trim());
        if !is_metric(metric) {
            return Err(wrong(&format!("there is no metric {metric:?}")));
        }
        let number = limit.strip_suffix('%').ok_or_else(|| wrong("it does not end in `%`"))?;
        let pct = number.trim().parse().ok().filter(|pct: &f64| pct.is_finite());
        let pct = pct.ok_or_else(|| wrong(&format!("{number:?} is no number")))?;
        let side = if text[at..].starts_with('>') { Side::Above } else { Side::Below };
        Ok(Condition { text: text.to_owned(), metric: metric.to_owned(), side, pct })
    }
}

words! {
    /// What became of a condition.
    GateOutcome, "outcome" {
        /// The change is not to be let through.
        Holds = "holds",
        Passes = "passes",
        CannotTell = "cannot_tell",
    }
}

/// A condition, judged.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    pub condition: String,
    pub outcome: GateOutcome,
    pub why: String,
}

/// A change, or the interval it lies in.
#[derive(Debug, Clone, Copy)]
struct Change {
    low: f64,
    high: f64,
}

/// Holds a comparison against conditions, in their order. Of times a condition holds where the whole interval
/// is beyond its limit, and passes where the whole interval is not; where no verdict is possible, nothing is told.
/// Bytes are counted, and always tell.
pub fn judge(comparison: &Comparison, conditions: &[Condition]) -> Vec<Judged> {
    conditions.iter().map(|condition| judged(comparison, condition)).collect()
}

fn judged(comparison: &Comparison, condition: &Condition) -> Judged {
    let (outcome, why) = match change(comparison, &condition.metric) {
        Ok(change) => (outcome(change, condition), told(change)),
        Err(why) => (GateOutcome::CannotTell, why),
    };
    Judged { condition: condition.text.clone(), outcome, why }
}

fn outcome(change: Change, condition: &Condition) -> GateOutcome {
    let (near, far) = match condition.side {
        Side::Above => (change.low > condition.pct, change.high > condition.pct),
        Side::Below => (change.high < condition.pct, change.low < condition.pct),
    };
    match (near, far) {
        (true, _) => GateOutcome::Holds,
        (false, false) => GateOutcome::Passes,
        (false, true) => GateOutcome::CannotTell,
    }
}

fn told(Change { low, high }: Change) -> String {
    if low == high { signed_pct(low) } else { range_pct(low, high) }
}

/// What is known of a metric's change, or why nothing is.
fn change(comparison: &Comparison, name: &str) -> Result<Change, String> {
    if let Ok(category) = name.parse::<Category>() {
        let bytes = comparison.bytes.0.iter().find(|(of, _)| *of == category).map(|(_, bytes)| bytes);
        let spans = bytes.and_then(|bytes| bytes.spans.0.zip(bytes.spans.1));
        return spans.map(bytes_change).ok_or_else(|| no_bytes(comparison, bytes));
    }
    let metric = find(&comparison.metrics, name);
    if name == "peak" {
        let exact = metric.and_then(|metric| metric.exact);
        return exact.map(bytes_change).ok_or_else(|| no_bytes(comparison, None));
    }
    let metric = metric.ok_or_else(|| format!("no run of either side has {name}"))?;
    if comparison.abstained { Err(comparison.reason.clone()) } else { interval(metric) }
}

/// Why a side has no peak, or no bytes of a category.
fn no_bytes(comparison: &Comparison, bytes: Option<&CategoryBytes>) -> String {
    let peak = find(&comparison.metrics, "peak");
    let peaks = [peak.and_then(|peak| peak.base), peak.and_then(|peak| peak.candidate)];
    match peaks {
        [None, None] => "memory was not traced on either side; run both with --trace allocations".to_owned(),
        [None, Some(_)] => untraced("base"),
        [Some(_), None] => untraced("candidate"),
        [Some(_), Some(_)] => {
            let lacking = match bytes.map(|bytes| (bytes.base, bytes.candidate)) {
                Some((Some(_), None)) => "the candidate",
                Some((None, Some(_))) => "the base",
                _ => "either side",
            };
            let moment = bytes.map(|bytes| format!(" at {}", bytes.moment)).unwrap_or_default();
            format!("no run of {lacking} has a ledger{moment}, though memory was traced")
        }
    }
}

fn untraced(side: &str) -> String {
    format!("memory was not traced on the {side}; run it with --trace allocations")
}

/// From nothing to something is beyond any limit.
fn bytes_change((base, candidate): (super::memory::Span, super::memory::Span)) -> Change {
    let or_all = |change: Option<f64>| change.unwrap_or(f64::INFINITY);
    let (low, high) = byte_changes(base, candidate);
    let exact =
        (!base.varies() && !candidate.varies()).then(|| or_all(change_pct(base.most, candidate.most)));
    Change { low: exact.unwrap_or(or_all(low)), high: exact.unwrap_or(or_all(high)) }
}

fn interval(metric: &Metric) -> Result<Change, String> {
    let ends = metric.low_pct.zip(metric.high_pct);
    let change = ends.map(|(low, high)| Change { low, high });
    change.ok_or_else(|| match (metric.base, metric.candidate) {
        (None, _) => format!("not every run of the base has {}", metric.name),
        (_, None) => format!("not every run of the candidate has {}", metric.name),
        _ => format!("these runs give no interval of {}", metric.name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_as_people_write_them() {
        for (text, metric, side, pct) in [
            ("step>+5%", "step", Side::Above, 5.0),
            ("tokens_per_s<-3%", "tokens_per_s", Side::Below, -3.0),
            ("peak > 1 %", "peak", Side::Above, 1.0),
            ("backward>2.5%", "backward", Side::Above, 2.5),
            ("adam_state<0%", "adam_state", Side::Below, 0.0),
        ] {
            let condition: Condition = text.parse().unwrap();
            assert_eq!(
                (condition.metric.as_str(), condition.side, condition.pct),
                (metric, side, pct),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_condition_is_named_with_the_grammar() {
        for (text, problem) in [
            ("step", "neither"),
            ("", "neither"),
            ("stepp>5%", "no metric \"stepp\""),
            (">5%", "no metric \"\""),
            ("validation>5%", "no metric"),
            ("step>5", "end in `%`"),
            ("step>%", "no number"),
            ("step>nan%", "no number"),
            ("step>inf%", "no number"),
            ("step>>5%", "no number"),
        ] {
            let error = text.parse::<Condition>().unwrap_err().to_string();
            let grammar = error.contains("METRIC>+N%") && error.contains("adam_state");
            assert!(error.contains(problem) && grammar && error.contains(&format!("`{text}`")), "{error}");
        }
    }

    #[test]
    fn a_limit_is_held_against_both_ends() {
        let outcome = |low, high, text: &str| outcome(Change { low, high }, &text.parse().unwrap());
        for (low, high, text, expected) in [
            (5.1, 9.0, "step>5%", GateOutcome::Holds),
            (1.0, 5.0, "step>5%", GateOutcome::Passes),
            (4.9, 5.1, "step>5%", GateOutcome::CannotTell),
            (-9.0, -3.1, "tokens_per_s<-3%", GateOutcome::Holds),
            (-3.0, 4.0, "tokens_per_s<-3%", GateOutcome::Passes),
            (-3.1, 4.0, "tokens_per_s<-3%", GateOutcome::CannotTell),
            (f64::INFINITY, f64::INFINITY, "peak>1%", GateOutcome::Holds),
        ] {
            assert_eq!(outcome(low, high, text), expected, "{low} to {high}, {text}");
        }
    }
}
