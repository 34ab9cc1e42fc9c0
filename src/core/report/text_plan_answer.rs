//! The answer of a plan in sentences: the best setting, and which blocks to recompute.

use super::text_policies::{name, whole};
use super::units::{bytes, count, ms};
use super::wrap::{wrap_at, wrap_told};
use crate::plan::{CPU, CapacityFrom, Placement, Plan, RankedBy, Segmented, Source};
use crate::record::EvidenceLevel;
use crate::stats::{ENOUGH_PAIRS, FEWEST_STEPS};

/// What is best and why, and what that rests on.
pub fn verdict(plan: &Plan, width: usize) -> String {
    let Some(best) = &plan.best else { return nothing_fits(plan, width) };
    let named =
        |checkpoint: &Option<String>| checkpoint.clone().unwrap_or_else(|| "the program as it is".to_owned());
    let at = &best.at;
    let bound = at.theory_tokens_per_s.filter(|_| at.predicted_step_ms.is_none());
    let predicted = [
        at.predicted_peak_bytes.map(bytes),
        at.predicted_step_ms.map(|step| format!("{} a step", ms(step))),
        at.predicted_tokens_per_s.map(|rate| format!("{} tokens/s", whole(rate))),
        bound.map(|rate| format!("at most {} tokens/s in theory", whole(rate))),
    ];
    let predicted = predicted.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let rests = match plan.ranked_by {
        RankedBy::TokensPerS => "predicted tokens/s",
        RankedBy::SequencesPerS => "predicted batch entries a second, as the runs count no tokens",
        RankedBy::ComputePerToken => {
            match plan.policies.iter().any(|policy| policy.recompute_share.is_some()) {
                true if plan.base.trace.is_none() => {
                    "matrix products a token, then the larger batch, as no rate was measured (--from)"
                }
                true => "matrix products a token, then the larger batch, as these runs tell no rate",
                false => "the larger batch alone, as these runs tell no rate",
            }
        }
    };
    let told = |sentence: &str| wrap_at(sentence, 2, width);
    let mut lines = vec![
        told(&format!(
            "Best: batch {} with checkpoint {}: {predicted}",
            count(at.batch),
            named(&best.checkpoint)
        )),
        wrap_told(&format!("  {}", best.command), 4, width),
    ];
    let warnings = [theory_of_another_device(plan), others_need(plan.capacity_from)];
    lines.extend(warnings.into_iter().flatten().map(|warning| told(&warning)));
    if let Some(second) = &plan.runner_up {
        lines.push(told(&format!("Runner-up: {}; {}.", named(&second.checkpoint), second.why_it_lost)));
    }
    let evidence = format!("Evidence: {}{}.", plan.evidence, why_no_more(plan).unwrap_or_default());
    lines.push(told(&format!("The ranking rests on {rests}. {evidence}")));
    lines.join("\n")
}

/// A GPU's allocator rounds up and keeps memory for its libraries, and its kernels need other room than a CPU's.
fn theory_of_another_device(plan: &Plan) -> Option<String> {
    let best = plan.best.as_ref()?;
    let policy = plan.policies.iter().find(|policy| policy.checkpoint == best.checkpoint)?;
    let device = &plan.base.device;
    (device != CPU && policy.source == Some(Source::Theory)).then(|| {
        format!("Warning: this peak is theory for a CPU, not for {device}, where more may be needed; measured runs (--from) tell.")
    })
}

/// A peak is what libtorch's allocator hands out: where nobody has set memory aside, nothing is left for the rest.
fn others_need(capacity: CapacityFrom) -> Option<String> {
    let whose = match capacity {
        CapacityFrom::Asked => return None,
        CapacityFrom::Available | CapacityFrom::Cgroup => {
            "libtorch itself, and whatever starts meanwhile, get"
        }
        CapacityFrom::Machine => "the system, other programs and libtorch itself get",
    };
    Some(format!("Warning: {whose} none of this capacity; leave room for them with --capacity-mb."))
}

/// What keeps measured runs from being a benchmark of the two best; the runner-up's own line tells of intervals.
fn why_no_more(plan: &Plan) -> Option<String> {
    let smoke = plan.evidence == EvidenceLevel::SmokeTest;
    let (best, second) = plan.best.as_ref().filter(|_| smoke).zip(plan.runner_up.as_ref())?;
    (best.at.repeats.min(second.at.repeats) < ENOUGH_PAIRS).then(|| {
        format!(
            " (the two were not measured at their batches, or around them, by {ENOUGH_PAIRS} runs of {FEWEST_STEPS} steps \
             each)"
        )
    })
}

fn nothing_fits(plan: &Plan, width: usize) -> String {
    let least = plan
        .policies
        .iter()
        .filter_map(|policy| Some((policy.predicted_peak_bytes?, policy)))
        .min_by_key(|p| p.0);
    let Some((floor, policy)) = least else { return "Nothing is known to fit.".to_owned() };
    let mib = floor / (1 << 20) + i64::from(floor % (1 << 20) > 0);
    wrap_at(
        &format!(
            "Nothing fits: one sequence takes {} at the least, with checkpoint {}. Give --capacity-mb {mib} or more, \
             or plan for a smaller model or shorter sequences.",
            bytes(floor),
            name(policy)
        ),
        2,
        width,
    )
}

/// Also where nothing fits: what takes the least then tells how much is lacking.
pub fn segments(placement: &Placement, width: usize) -> String {
    let size = |size: &Segmented| match size.theory_max_batch {
        0 => format!(
            "{} ({}, {} for one sequence)",
            size.blocks,
            size.checkpoint,
            bytes(size.theory_peak_bytes)
        ),
        batch => format!("{} ({}, batch {})", size.blocks, size.checkpoint, count(batch)),
    };
    let for_capacity = match &placement.for_capacity {
        Some(best) => format!("for this capacity {}", size(best)),
        None => "none of them fits this capacity".to_owned(),
    };
    let text = format!(
        "Blocks in a segment, in theory, of all from 1 to {}: {for_capacity}; for memory alone {}; √L would be {}.",
        placement.layers,
        size(&placement.for_memory),
        size(&placement.square_root)
    );
    wrap_at(&text, 2, width)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::{Request, plan};

    /// A GPT of so many blocks in so many MiB.
    fn deep(layers: i64, capacity_mb: i64) -> Plan {
        let config = json!({"model": "gpt", "layers": layers, "width": 128, "heads": 4, "seq": 64, "batch": 8,
            "attention": "sdpa"});
        plan(&Request::from_theory(config.as_object().unwrap().clone(), capacity_mb << 20)).unwrap()
    }

    #[test]
    fn a_capacity_that_nobody_asked_for_is_warned_of_beside_the_command() {
        let told = |capacity_from| verdict(&Plan { capacity_from, ..deep(4, 64) }, 80).replace("\n  ", " ");
        assert!(!told(CapacityFrom::Asked).contains("Warning"), "{}", told(CapacityFrom::Asked));
        for (from, whose) in [
            (CapacityFrom::Available, "libtorch itself"),
            (CapacityFrom::Machine, "the system"),
            (CapacityFrom::Cgroup, "libtorch itself"),
        ] {
            assert!(told(from).contains(&format!("Warning: {whose}")), "{}", told(from));
        }
    }

    #[test]
    fn theory_for_a_cpu_is_not_passed_off_as_that_of_a_gpu() {
        let told = |device: &str| {
            let mut plan = deep(4, 64);
            plan.base.device = device.to_owned();
            verdict(&plan, 80).replace("\n  ", " ")
        };
        assert!(
            told("cuda:1").contains("Warning: this peak is theory for a CPU, not for cuda:1"),
            "{}",
            told("cuda:1")
        );
        assert!(!told("cpu").contains("Warning"), "{}", told("cpu"));
    }

    #[test]
    fn segments_are_placed_where_nothing_fits_too() {
        let text = |plan: &Plan| segments(plan.placement.as_ref().unwrap(), 80).replace("\n ", "");
        let (none_fits, fits) = (deep(48, 64), deep(48, 256));
        let told = text(&none_fits);
        assert!(none_fits.best.is_none() && told.contains("none of them fits this capacity"), "{told}");
        for part in
            ["for memory alone 1 (full, 146 MiB for one", "would be 7 (every:7, 146 MiB for one sequence)"]
        {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert!(text(&fits).contains("for this capacity 1 (full, batch 68)"), "{}", text(&fits));
    }
}
