//! Rule 7: the one change that tells whether a hypothesis holds.

use serde::Serialize;

use super::RuleError;
use super::attribute_bottleneck::{Bound, Consistency, Hypothesis};
use super::field::{Field, Kind, Range};
use super::object::Object;
use super::registry::Spec;
use super::thresholds::SCREEN;

const MS: Kind = Kind::Number(Range::AtLeast(0.0));
const POSITIVE: Kind = Kind::Number(Range::Above(0.0));

const EXPOSED: &[Field] = &[
    Field::new("kernel_memory", "ms", MS).unread(),
    Field::new("kernel_compute", "ms", MS).unread(),
    Field::new("kernel_underutilized", "ms", MS).unread(),
    Field::new("transfer", "ms", MS).unread(),
    Field::new("synchronization", "ms", MS).unread(),
    Field::new("launch", "ms", MS).unread(),
];

/// What rule `attribute-bottleneck` gives; only the hypothesis is needed.
const ATTRIBUTION: &[Field] = &[
    Field::new("primary_hypothesis", "", Kind::Word(Hypothesis::WORDS)),
    Field::new("machine_balance_flop_per_byte", "FLOP/byte", POSITIVE).unread(),
    Field::new("roofline_bound", "", Kind::Word(Bound::WORDS)).unread(),
    Field::new("roofline_limit_tflops", "TFLOP/s", POSITIVE).unread(),
    Field::new("reference_efficiency", "", MS).unread(),
    SCREEN.unread(),
    Field::new("reference_consistency", "", Kind::Word(Consistency::WORDS)).unread(),
    Field::new("exposed_ms", "", Kind::Object(EXPOSED)).unread(),
];

pub(super) const SPEC: Spec = Spec {
    summary: "The experiment of one change that confirms or refutes a bottleneck",
    inputs: &[
        Field::new("attribution", "", Kind::Object(ATTRIBUTION)),
        Field::new("single_change", "", Kind::Text),
    ],
    thresholds: &[],
    source: "a teaching table: for each hypothesis the changes that move it and little else",
};

/// An experiment of one change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DiscriminationExperiment {
    pub hypothesis: Hypothesis,
    pub single_change: &'static str,
    /// What to measure, before and after.
    pub target_metrics: &'static [&'static str],
    /// The outcome that refutes the hypothesis.
    pub revisit_when: &'static str,
}

/// One line of the table.
struct Design {
    changes: &'static [&'static str],
    target_metrics: &'static [&'static str],
    revisit_when: &'static str,
}

/// Designs the experiment that makes one change to test one hypothesis.
///
/// - **Formula:** a table from the hypothesis to the changes allowed, what to measure, and the outcome that
///   refutes it.
/// - **Units:** none; the metrics carry theirs in their names.
/// - **Assumption:** everything but the one change stays as it was.
/// - **Source:** a teaching table.
/// - **Abstains** never; **errors:** the hypothesis `recheck_reference`, which no change can test, and a
///   change that is not one of the hypothesis's own.
pub fn build_discrimination_experiment(
    hypothesis: Hypothesis,
    single_change: &str,
) -> Result<DiscriminationExperiment, RuleError> {
    let Some(Design { changes, target_metrics, revisit_when }) = design(hypothesis) else {
        return Err(RuleError::new(
            "attribution.primary_hypothesis",
            format!(
                "is {hypothesis}, which no experiment can test: correct the references and attribute again"
            ),
        ));
    };
    let single_change = changes.iter().find(|&&change| change == single_change).ok_or_else(|| {
        let allowed = Kind::Word(changes).refusal(&format!("{single_change:?}"));
        RuleError::new("single_change", format!("{allowed} (for hypothesis {hypothesis})"))
    })?;
    Ok(DiscriminationExperiment { hypothesis, single_change, target_metrics, revisit_when })
}

const fn design(hypothesis: Hypothesis) -> Option<Design> {
    Some(match hypothesis {
        Hypothesis::KernelMemory => Design {
            changes: &["tile_size", "layout"],
            target_metrics: &["dram_bytes", "kernel_ms", "stage_ms", "max_abs_error"],
            revisit_when: "bytes_down_but_kernel_ms_unchanged",
        },
        Hypothesis::KernelCompute => Design {
            changes: &["compute_kernel"],
            target_metrics: &["achieved_tflops", "kernel_ms", "stage_ms", "max_abs_error"],
            revisit_when: "kernel_faster_but_stage_ms_unchanged",
        },
        Hypothesis::KernelUnderutilized => Design {
            changes: &["block_size"],
            target_metrics: &["kernel_ms", "occupancy", "stage_ms", "max_abs_error"],
            revisit_when: "occupancy_changes_but_kernel_ms_unchanged",
        },
        Hypothesis::Transfer => Design {
            changes: &["pin_memory", "async_copy"],
            target_metrics: &["exposed_transfer_ms", "stage_ms", "host_memory_mib", "max_abs_error"],
            revisit_when: "transfer_overlap_up_but_stage_ms_unchanged",
        },
        Hypothesis::Synchronization => Design {
            changes: &["sync_placement"],
            target_metrics: &["sync_ms", "stage_ms", "max_abs_error"],
            revisit_when: "sync_ms_down_but_stage_ms_unchanged",
        },
        Hypothesis::Launch => Design {
            changes: &["graph_capture"],
            target_metrics: &["launch_count", "launch_ms", "stage_ms", "max_abs_error"],
            revisit_when: "launches_down_but_stage_ms_unchanged",
        },
        Hypothesis::RecheckReference => return None,
    })
}

pub(super) fn apply(mut input: Object) -> Result<DiscriminationExperiment, RuleError> {
    let hypothesis = input.take_object("attribution", |mut attribution| {
        let word = attribution.take::<String>("primary_hypothesis")?;
        word.parse().map_err(|unknown| RuleError::new("primary_hypothesis", format!("is an {unknown}")))
    })?;
    build_discrimination_experiment(hypothesis, &input.take::<String>("single_change")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hypothesis_has_its_changes_and_refuses_the_others() {
        for &hypothesis in Hypothesis::ALL {
            let changes = design(hypothesis).map_or(&[][..], |design| design.changes);
            for change in changes {
                let experiment = build_discrimination_experiment(hypothesis, change).unwrap();
                assert_eq!((experiment.hypothesis, experiment.single_change), (hypothesis, *change));
                assert!(experiment.target_metrics.contains(&"stage_ms"));
            }
            assert!(build_discrimination_experiment(hypothesis, "tile_or_layout").is_err());
        }
    }

    #[test]
    fn a_wrong_change_lists_the_right_ones() {
        let error = build_discrimination_experiment(Hypothesis::Transfer, "block_size").unwrap_err();
        assert!(error.to_string().contains("pin_memory, async_copy"), "{error}");
    }
}
