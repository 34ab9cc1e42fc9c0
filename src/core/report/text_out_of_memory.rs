//! A run that ran out of memory, as text.

use super::out_of_memory::OutOfMemory;
use super::tables::{put, table};
use super::text::kind_of;
use super::text_peak::blocks_table;
use super::units::{bytes, count, pct, share_pct};
use crate::record::FailedAllocation;

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
        return format!(
            "Out of memory; {limit}. What was asked for is not known: the allocator was not traced."
        );
    };
    let in_use = ended.ledger.as_ref().map(|ledger| {
        let total = ledger.0.allocator_bytes;
        format!(" while {} ({} bytes) were in use", bytes(total), count(total))
    });
    format!(
        "Out of memory in {}\n  {} ({} bytes) were asked for{}; {limit}",
        place(failed),
        bytes(failed.asked_bytes),
        count(failed.asked_bytes),
        in_use.unwrap_or_default(),
    )
}

/// `forward of step 3, scope h.2.mlp, operator aten::gelu`.
fn place(failed: &FailedAllocation) -> String {
    let phase = failed.phase.map_or("no phase", |phase| phase.as_str());
    let step =
        failed.step.map_or(" before or between the steps".to_owned(), |step| format!(" of step {step}"));
    let named = |what: &str, name: &Option<_>| {
        name.as_ref().map(|name: &std::sync::Arc<str>| format!(", {what} {name}"))
    };
    let (scope, op) = (named("scope", &failed.scope), named("operator", &failed.op));
    format!("{phase}{step}{}{}", scope.unwrap_or_default(), op.unwrap_or_default())
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
    let parts: i64 = ended.parts.iter().map(|part| part.bytes).sum();
    let sums = format!(
        " sum of the parts {} bytes, allocator's total {} bytes, difference {}",
        count(parts),
        count(ledger.0.allocator_bytes),
        count(ledger.0.allocator_bytes - parts)
    );
    format!("{}\n{sums}", put(&table))
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
        return "What would fit is not known: no theory covers this run, or it knows no smaller one."
            .to_owned();
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
        false => format!("No single change that the theory knows would fit {room}"),
    };
    format!("{heading}\n{}", put(&table))
}
