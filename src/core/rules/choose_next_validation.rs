//! Rule 4: the one thing to try next.

use serde::Serialize;

use super::RuleError;
use super::field::{Field, Kind, Range};
use super::memory_ledger::{Component, MemoryCheck};
use super::object::Object;
use super::registry::Spec;
use super::sentences::{Lang, sentences};
use crate::record::words;

const TOTAL_MB: Field = mebibytes("total_mb");
const CAPACITY_MB: Field = mebibytes("capacity_mb");

const SHARES: &[Field] = &[
    percent("parameters_mb").unread(),
    percent("grads_mb").unread(),
    percent("adam_state_mb").unread(),
    percent("activation_mb").unread(),
    percent("temporary_mb").unread(),
];

/// What rule `memory-ledger` gives; only the total is needed.
const LEDGER: &[Field] = &[
    TOTAL_MB,
    mebibytes("parameters_mb").unread(),
    mebibytes("grads_mb").unread(),
    mebibytes("adam_state_mb").unread(),
    mebibytes("activation_mb").unread(),
    mebibytes("temporary_mb").unread(),
    bytes("parameters_bytes").unread(),
    bytes("grads_bytes").unread(),
    bytes("adam_state_bytes").unread(),
    bytes("activation_bytes").unread(),
    bytes("temporary_bytes").unread(),
    bytes("total_bytes").unread(),
    Field::new("shares_pct", "", Kind::Object(SHARES)).unread(),
    Field::new("dominant", "", Kind::Word(Component::WORDS)).unread(),
    percent("dominant_share_pct").unread(),
    Field::new("recommended_check", "", Kind::Word(MemoryCheck::WORDS)).unread(),
];

pub(super) const SPEC: Spec = Spec {
    summary: "The one thing to try next, and why, from the memory, the hotspot and the communication",
    inputs: &[
        Field::new("ledger", "", Kind::Object(LEDGER)),
        CAPACITY_MB,
        Field::new("hotspot", "", Kind::Text),
        Field::new("communication_heavy", "", Kind::Flag),
    ],
    thresholds: &[],
    source: "a teaching heuristic: what cannot run comes first, then what starves the device, then what it does",
};

const fn mebibytes(name: &'static str) -> Field {
    Field::new(name, "MiB", Kind::Number(Range::AtLeast(0.0)))
}

const fn bytes(name: &'static str) -> Field {
    Field::new(name, "bytes", Kind::Number(Range::AtLeast(0.0)))
}

const fn percent(name: &'static str) -> Field {
    Field::new(name, "%", Kind::Number(Range::AtLeast(0.0)))
}

/// What the choice depends on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Situation<'a> {
    /// The memory needed, MiB.
    pub total_mb: f64,
    /// The memory there is, MiB.
    pub capacity_mb: f64,
    /// The name of the event that takes the most time.
    pub hotspot: &'a str,
    pub communication_heavy: bool,
}

words! {
    /// What to try next.
    Validation, "validation" {
        CompareBatchCheckpointOffload = "compare_batch_checkpoint_offload",
        InspectInputPipeline = "inspect_input_pipeline",
        InspectCommunication = "inspect_communication_frequency_and_overlap",
        ProfileForward = "profile_forward_details",
        ProfileBackward = "profile_backward_details",
        ProfileOptimizer = "profile_optimizer_details",
        CollectMoreEvidence = "collect_more_evidence",
    }
}

/// What to try next, as identifiers and as sentences.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NextValidation {
    pub next_validation: Validation,
    /// What is believed to be the matter.
    pub hypothesis: String,
    /// What to change to find out.
    pub change: String,
    /// What to measure, before and after.
    pub metrics: &'static [&'static str],
    /// Why this comes before everything else.
    pub reason: String,
}

/// Chooses the next validation.
///
/// - **Formula:** the first that holds: `total_mb` > `capacity_mb` → compare batch, checkpoint and offload;
///   hotspot `dataloader` → the input pipeline; heavy communication → its frequency and overlap; hotspot
///   `forward`, `backward` or `optimizer` → its details; else more evidence.
/// - **Units:** MiB.
/// - **Assumption:** the ledger and the capacity speak of the same device.
/// - **Source:** a teaching heuristic.
/// - **Errors:** a negative or non-finite memory. It never abstains: without a lead it asks for evidence.
pub fn choose_next_validation(situation: &Situation, lang: Lang) -> Result<NextValidation, RuleError> {
    TOTAL_MB.check(situation.total_mb).map_err(|error| error.within("ledger"))?;
    CAPACITY_MB.check(situation.capacity_mb)?;
    let next_validation = choose(situation);
    let sentences = sentences(next_validation, lang);
    let told = |sentence: &str| {
        sentence
            .replace("{total}", &in_a_sentence(situation.total_mb))
            .replace("{capacity}", &in_a_sentence(situation.capacity_mb))
    };
    Ok(NextValidation {
        next_validation,
        hypothesis: told(sentences.hypothesis),
        change: told(sentences.change),
        metrics: metrics(next_validation),
        reason: told(sentences.reason),
    })
}

fn choose(situation: &Situation) -> Validation {
    match situation.hotspot {
        _ if situation.total_mb > situation.capacity_mb => Validation::CompareBatchCheckpointOffload,
        "dataloader" => Validation::InspectInputPipeline,
        _ if situation.communication_heavy => Validation::InspectCommunication,
        "forward" => Validation::ProfileForward,
        "backward" => Validation::ProfileBackward,
        "optimizer" => Validation::ProfileOptimizer,
        _ => Validation::CollectMoreEvidence,
    }
}

const fn metrics(next: Validation) -> &'static [&'static str] {
    match next {
        Validation::CompareBatchCheckpointOffload => &["peak_memory_mb", "throughput"],
        Validation::InspectCommunication => &["latency_ms", "communication_ms"],
        Validation::ProfileForward | Validation::ProfileBackward | Validation::ProfileOptimizer => {
            &["latency_ms", "stage_share_pct"]
        }
        Validation::InspectInputPipeline | Validation::CollectMoreEvidence => &["latency_ms", "throughput"],
    }
}

pub(super) fn apply(mut input: Object, lang: Lang) -> Result<NextValidation, RuleError> {
    let hotspot: String = input.take("hotspot")?;
    let situation = Situation {
        total_mb: input.take_object("ledger", |mut ledger| ledger.take("total_mb"))?,
        capacity_mb: input.take("capacity_mb")?,
        hotspot: &hotspot,
        communication_heavy: input.take("communication_heavy")?,
    };
    choose_next_validation(&situation, lang)
}

/// At most two decimals: people compare these, nothing computes with them.
fn in_a_sentence(mb: f64) -> String {
    format!("{mb:.2}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FITS: Situation =
        Situation { total_mb: 10.0, capacity_mb: 10.0, hotspot: "validation", communication_heavy: false };

    #[track_caller]
    fn check(situation: Situation, expected: Validation) {
        let next = choose_next_validation(&situation, Lang::En).unwrap();
        assert_eq!(next.next_validation, expected);
    }

    #[test]
    fn the_first_that_holds_wins() {
        check(FITS, Validation::CollectMoreEvidence);
        check(Situation { hotspot: "forward", ..FITS }, Validation::ProfileForward);
        let talking = Situation { hotspot: "forward", communication_heavy: true, ..FITS };
        check(talking, Validation::InspectCommunication);
        check(Situation { hotspot: "dataloader", ..talking }, Validation::InspectInputPipeline);
        let large = Situation { total_mb: 10.01, hotspot: "dataloader", ..talking };
        check(large, Validation::CompareBatchCheckpointOffload);
    }

    #[test]
    fn the_language_changes_sentences_and_nothing_else() {
        let large = Situation { total_mb: 20.5, ..FITS };
        let english = choose_next_validation(&large, Lang::En).unwrap();
        let chinese = choose_next_validation(&large, Lang::Zh).unwrap();
        assert_eq!(english.next_validation, chinese.next_validation);
        assert_eq!(english.metrics, chinese.metrics);
        assert_ne!(english.reason, chinese.reason);
        assert!(english.reason.contains("20.5 MiB") && chinese.reason.contains("20.5 MiB"));
    }
}
