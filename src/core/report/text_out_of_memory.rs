//! A run that ran out of memory, as text.

use super::ledger::PeakPart;
use super::out_of_memory::OutOfMemory;
use super::tables::{put, table};
use super::text::kind_of;
use super::text_peak::blocks_table;
use super::units::{bytes, count, pct, share_pct};
use crate::record::{Category, FailedAllocation, Phase};

/// The whole section.
pub fn render(ended: &OutOfMemory) -> String {
    let parts = [headline(ended), alive(ended), largest(ended), alternatives(ended)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}

fn headline(ended: &OutOfMemory) -> String {
    let limit = match ended.limit_bytes {
        Some(limit) => format!("the limit is {} ({} bytes)", bytes(limit), count(limit)),
        None => "no limit was set: the machine had no more".to_owned(),
    };
    let Some(failed) = &ended.failed else {
        let why = match ended.traced {
            true => "it was not asked of libtorch's allocator",
            false => "the allocator was not traced",
        };
        return format!("Out of memory; {limit}. What was asked for is not known: {why}.");
    };
    let in_use = ended.ledger.as_ref().map(|ledger| {
        let total = ledger.0.allocator_bytes;
        format!(" while {} ({} bytes) were in use", bytes(total), count(total))
    });
    format!(
        "Out of memory {}\n  {} ({} bytes) were asked for{}; {limit}",
        place(failed),
        bytes(failed.asked_bytes),
        count(failed.asked_bytes),
        in_use.unwrap_or_default(),
    )
}

/// `in forward of step 3, scope h.2.mlp, operator aten::gelu`.
fn place(failed: &FailedAllocation) -> String {
    let when = match (failed.phase.filter(|phase| *phase != Phase::Other), failed.step) {
        (Some(phase), Some(step)) => format!("in {phase} of step {step}"),
        (Some(phase), None) => format!("in {phase} between the steps"),
        (None, Some(step)) => format!("in step {step}, outside its phases"),
        (None, None) => "before or between the steps".to_owned(),
    };
    let named = |what: &str, name: &Option<_>| {
        name.as_ref().map(|name: &std::sync::Arc<str>| format!(", {what} {name}"))
    };
    let (scope, op) = (named("scope", &failed.scope), named("operator", &failed.op));
    format!("{when}{}{}", scope.unwrap_or_default(), op.unwrap_or_default())
}

fn alive(ended: &OutOfMemory) -> String {
    let Some(ledger) = &ended.ledger else { return String::new() };
    let total = ledger.0.bytes.total();
    let mut table = table(&["what was alive then", "size", "share", "blocks"]);
    for part in &ended.parts {
        let share = pct(share_pct(part.bytes, total));
        table.add_row(vec![
            kind_of(part.category, part.detail),
            bytes(part.bytes),
            share,
            part.blocks.to_string(),
        ]);
    }
    // What is unattributed is no explanation.
    let is_known = |part: &&PeakPart| part.category != Category::Unattributed.as_str();
    let known = ended.parts.iter().filter(is_known);
    let without = if known.clone().count() == ended.parts.len() { "" } else { " without unattributed" };
    let parts: i64 = known.map(|part| part.bytes).sum();
    let sums = format!(
        " sum of the parts{without} {} bytes, allocator's total {} bytes, difference {}",
        count(parts),
        count(ledger.0.allocator_bytes),
        count(ledger.0.allocator_bytes - parts)
    );
    let parts = [put(&table), sums, cut_off(ended).to_owned()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// What the failure kept from being known, where it did: a block of forward counts as what backward releases.
fn cut_off(ended: &OutOfMemory) -> &'static str {
    let in_forward = ended.failed.as_ref().is_some_and(|failed| failed.phase == Some(Phase::Forward));
    let is_activation = |part: &PeakPart| part.category == Category::Activation.as_str();
    match in_forward && ended.parts.iter().any(is_activation) {
        true => " (forward had not ended: its temporaries of that instant count as activation)",
        false => "",
    }
}

fn largest(ended: &OutOfMemory) -> String {
    if ended.largest.is_empty() { String::new() } else { blocks_table(&ended.largest) }
}

fn alternatives(ended: &OutOfMemory) -> String {
    let alternatives = &ended.alternatives;
    let fitting = alternatives.iter().any(|other| other.fits);
    let room = match ended.limit_bytes {
        Some(_) => "in the limit",
        None => "in what was in use",
    };
    if alternatives.is_empty() {
        return nothing_offered(ended).to_owned();
    }
    let mut table = table(&["one change", "peak in theory", "fits?", "price"]);
    if let Some(column) = table.column_mut(3) {
        column.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    for other in alternatives {
        let fits = if other.fits { "yes" } else { "no" };
        table.add_row(vec![
            other.flags.clone(),
            bytes(other.theory_peak_bytes),
            fits.to_owned(),
            other.price.to_owned(),
        ]);
    }
    let heading = match fitting {
        true => format!("What would fit {room}, in theory"),
        false => format!("No single change that keeps the model would fit {room}, in theory"),
    };
    format!("{heading}\n{}", put(&table))
}

/// Why there are no alternatives.
fn nothing_offered(ended: &OutOfMemory) -> &'static str {
    match (ended.in_theory, ended.room_bytes()) {
        (false, _) => {
            "What would fit is not known: theory covers the toy models without dropout only. Run it at two smaller batches, and \
             `plan` tells from these which one fits."
        }
        (true, None) => {
            "What would fit is not known: no limit was set, and without a trace of the allocator it is not known how much \
             memory there was. Run it with --trace allocations, or with --capacity-mb N --enforce."
        }
        (true, Some(_)) => {
            "Nothing smaller is known: no single change that keeps the model takes less, in theory."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of which nothing is known but that it ran out of memory.
    fn blind() -> OutOfMemory {
        OutOfMemory {
            failed: None,
            limit_bytes: None,
            ledger: None,
            parts: Vec::new(),
            largest: Vec::new(),
            alternatives: Vec::new(),
            traced: false,
            in_theory: true,
        }
    }

    #[test]
    fn what_is_not_known_is_told_with_its_own_reason() {
        let traced = OutOfMemory { traced: true, ..blind() };
        for (ended, expected) in [
            (blind(), "not known: the allocator was not traced."),
            (traced, "not known: it was not asked of libtorch's allocator."),
            (blind(), "it is not known how much memory there was"),
            (OutOfMemory { in_theory: false, ..blind() }, "the toy models without dropout only"),
            (OutOfMemory { limit_bytes: Some(1), ..blind() }, "Nothing smaller is known"),
        ] {
            let text = render(&ended);
            assert!(text.contains(expected), "{expected} is not in\n{text}");
        }
        assert!(!render(&blind()).contains("theory covers"));
    }

    #[test]
    fn what_forward_held_is_not_told_apart() {
        let part = PeakPart { category: "activation", detail: None, bytes: 8, blocks: 1, share_pct: 100.0 };
        let failed = |phase| FailedAllocation {
            at_ns: 0,
            asked_bytes: 1,
            step: Some(0),
            phase: Some(phase),
            scope: None,
            op: None,
        };
        let ended = |phase, parts| OutOfMemory { failed: Some(failed(phase)), parts, ..blind() };
        assert!(cut_off(&ended(Phase::Forward, vec![part.clone()])).contains("count as activation"));
        assert_eq!(cut_off(&ended(Phase::Forward, vec![])), "");
        assert_eq!(cut_off(&ended(Phase::Backward, vec![part])), "");
    }

    #[test]
    fn the_place_is_told_in_words() {
        let at = |phase, step| {
            place(&FailedAllocation { at_ns: 0, asked_bytes: 1, step, phase, scope: None, op: None })
        };
        assert_eq!(at(Some(Phase::Forward), Some(3)), "in forward of step 3");
        assert_eq!(at(Some(Phase::Other), Some(3)), "in step 3, outside its phases");
        assert_eq!(at(Some(Phase::Validation), None), "in validation between the steps");
        assert_eq!(at(None, None), "before or between the steps");
    }
}
