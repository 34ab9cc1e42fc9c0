//! Findings and experiments as text for a terminal.

use super::bottleneck::BottleneckFinding;
use super::creep::MemoryCreep;
use super::findings::{Findings, LedgerLine};
use super::reference::whose;
use super::tables::{put, table};
use super::text::settings;
use super::text_rates::{flops, gigabytes};
use super::units::{bytes, ms, number, pct};
use super::wrap::{prose, wrap_at};
use crate::rules::ExperimentRecord;

/// The findings of a run, each with the numbers it rests on, for a terminal of so many columns.
pub fn render_findings(findings: &Findings, width: usize) -> String {
    let mut lines = vec!["Findings (the rules' thresholds are teaching heuristics)".to_owned()];
    lines.extend(step(findings));
    lines.extend(hotspots(findings));
    lines.extend(exposure(findings));
    lines.extend(held_up(findings));
    lines.extend(memory(findings));
    lines.extend(findings.memory_creep.iter().map(creep));
    lines.extend(next(findings));
    let silent = findings.abstained.iter();
    lines.extend(silent.map(|abstention| format!("  {} says nothing: {}", abstention.rule, abstention.why)));
    let wrapped = lines.iter().flat_map(|line| line.lines()).map(|line| wrap_at(line, 6, prose(width)));
    let mut text = wrapped.collect::<Vec<_>>().join("\n") + "\n";
    if !findings.ledger.is_empty() {
        text += &format!("\nMemory in theory and as measured\n{}\n", ledger(&findings.ledger));
    }
    text
}

fn step(findings: &Findings) -> Option<String> {
    let finding = findings.summary.as_ref()?;
    let (zone, check) = (finding.rule.zone, finding.rule.next_check);
    let busy = pct(finding.device_busy_pct);
    let wait = ms(finding.rule.cpu_wait_ms);
    Some(format!("  {zone} → {check} (device busy {busy} of the step, waited {wait} for data)"))
}

fn hotspots(findings: &Findings) -> Option<String> {
    let spots = findings.hotspots.iter();
    let spots: Vec<_> = spots.map(|spot| format!("{} {}", spot.event.name, pct(spot.share_pct))).collect();
    (!spots.is_empty()).then(|| format!("  hotspots: {}", spots.join(", ")))
}

/// What of a GPU's time its events tell.
fn exposure(findings: &Findings) -> Option<String> {
    let found = findings.exposure.as_ref()?;
    let what = match found.largest {
        Some(largest) => format!("{largest} takes the most of the step, whatever its kernels do"),
        None => "neither transfers, nor waits, nor launches surely take the most of the step".to_owned(),
    };
    Some(format!(
        "  {what} (by events alone: kernels at most {}, transfers at least {}, waits {}, launches {})",
        ms(found.kernel_at_most_ms),
        ms(found.transfer_at_least_ms),
        ms(found.sync_at_least_ms),
        ms(found.launch_at_least_ms)
    ))
}

/// What holds the step up, and whose figures say so.
fn held_up(findings: &Findings) -> Option<String> {
    let BottleneckFinding { rule, reference } = findings.bottleneck.as_ref()?;
    let (efficiency, bound) = (pct(100.0 * rule.reference_efficiency), rule.roofline_bound);
    let (products, memory) = (flops(reference.tflop_s), gigabytes(reference.gb_s));
    Some(format!(
        "  {} ({efficiency} of the roofline's limit, bound by {bound}; {products} and {memory} {}: {})",
        rule.primary_hypothesis,
        whose(reference.source),
        reference.what
    ))
}

fn memory(findings: &Findings) -> Option<String> {
    let theory = findings.theory.as_ref()?;
    let share = pct(theory.dominant_share_pct);
    Some(format!(
        "  memory in theory: {} dominates with {share} → {}",
        theory.dominant, theory.recommended_check
    ))
}

fn creep(creep: &MemoryCreep) -> String {
    let whole = |value: f64| bytes(value.round() as i64);
    let blame = creep.blame.as_ref().map(|blame| {
        format!(", first to blame: {} ({} in {} blocks)", blame.place, bytes(blame.bytes), blame.blocks)
    });
    format!(
        "  memory_creep: {} grows by {} a step ({} to {}) at {} of {} steps{}",
        creep.category,
        whole(creep.bytes_per_step),
        whole(creep.low),
        whole(creep.high),
        creep.moment,
        creep.steps,
        blame.unwrap_or_default()
    )
}

fn next(findings: &Findings) -> Option<String> {
    let next = findings.next_validation.as_ref()?;
    let capacity = findings.capacity_mb.map(|mb| bytes((mb * 1024.0 * 1024.0) as i64));
    Some(format!(
        "  next: {} (memory to fit into: {})\n    {}\n    {}\n    {}\n    watch {}",
        next.next_validation,
        capacity.unwrap_or_else(|| "not known".to_owned()),
        next.hypothesis,
        next.change,
        next.reason,
        next.metrics.join(", ")
    ))
}

fn ledger(lines: &[LedgerLine]) -> String {
    let mut table = table(&["line", "theory", "measured", "difference", "why they may differ"]);
    if let Some(column) = table.column_mut(4) {
        column.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    let known = |value: Option<i64>| value.map_or_else(|| "—".to_owned(), bytes);
    for line in lines {
        table.add_row(vec![
            line.line.to_owned(),
            known(line.theory_bytes),
            bytes(line.measured_bytes),
            known(line.difference_bytes),
            line.why.to_owned(),
        ]);
    }
    put(&table)
}

/// One experiment: what was changed, what came of it, and what that is worth.
pub fn render_experiment(record: &ExperimentRecord, width: usize) -> String {
    let value =
        |value: &Option<serde_json::Value>| value.as_ref().map_or("(absent)".to_owned(), |v| v.to_string());
    let variable = &record.variable;
    let mut fixed = record.baseline.clone();
    fixed.shift_remove(&variable.field);
    let mut table = table(&["result", "baseline", "changed", "change", ""]);
    for result in &record.results {
        table.add_row(vec![
            result.name.clone(),
            number(result.baseline),
            number(result.changed),
            number(result.change),
            result.change_pct.map(|change| format!("{change:+.1} %")).unwrap_or_default(),
        ]);
    }
    let width = prose(width);
    let evidence = format!("Evidence: {}; {}", record.evidence.level, record.evidence.why);
    format!(
        "{}\n\n{}: {} → {}\n{}\n\n{}\n",
        wrap_at(&format!("Fixed: {}", settings(&fixed)), 2, width),
        variable.field,
        value(&variable.baseline),
        value(&variable.changed),
        put(&table),
        wrap_at(&evidence, 2, width)
    )
}
