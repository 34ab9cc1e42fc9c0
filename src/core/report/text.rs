//! A run's summary as text for a terminal.

use serde_json::{Map, Value};

use super::ledger::PeakPart;
use super::phases::PhaseSummary;
use super::summary::Summary;
use super::tables::{put, table};
use super::text_rates::product_rate;
use super::text_step::step_line;
use super::units::{bytes, count, ms, number, pct, share_pct, threads};
use super::wrap::{prose, wrap_at};
use super::{text_device, text_out_of_memory};
use crate::record::{Category, Moment, Phase, RECOMPUTE, file_of};

/// How many parts of the peak are listed; the rest is summed in one line.
const PEAK_PARTS: usize = 10;

/// The whole account: what ran, where time and memory went, and what is missing; sentences in lines that suit a terminal
/// of so many columns.
pub fn render(summary: &Summary, width: usize) -> String {
    let sections = [
        heading(summary, prose(width)),
        summary.out_of_memory.as_ref().map(text_out_of_memory::render).unwrap_or_default(),
        step_line(summary, prose(width)),
        phases(summary),
        scopes(summary),
        summary.products.as_ref().map(product_rate).unwrap_or_default(),
        ledger(summary),
        peak(summary),
        instruments(summary),
        experiments(summary),
        missing(summary, prose(width)),
    ];
    sections.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n\n") + "\n"
}

fn heading(summary: &Summary, width: usize) -> String {
    let machine = &summary.machine;
    let mut lines = vec![format!("run {}  ({})", summary.run_id, status(summary))];
    let parameters = summary.parameters.map(|n| format!(", {} parameters", count(n))).unwrap_or_default();
    lines.push(format!("  {} on {}{parameters}", summary.program, summary.device));
    if !summary.config.is_empty() {
        lines.push(format!("  {}", settings(&summary.config)));
    }
    let cpu = machine.cpu.as_deref().unwrap_or("unknown CPU");
    let with = machine.torch_threads.map(|n| format!(", {}", threads(n))).unwrap_or_default();
    let torch = summary.versions.torch.as_deref().map(|v| format!(", libtorch {v}")).unwrap_or_default();
    lines.extend(text_device::facts(&summary.device_facts));
    lines.push(format!("  {cpu}{with}{torch}, stepledger {}", summary.versions.stepledger));
    lines.iter().map(|line| wrap_at(line, 2, width)).collect::<Vec<_>>().join("\n")
}

fn status(summary: &Summary) -> String {
    let reason = summary.reason.as_ref().map(|reason| format!(": {reason}"));
    format!("{}{}", summary.status, reason.unwrap_or_default())
}

/// A configuration in one line; what is not set is left out.
pub(super) fn settings(config: &Map<String, Value>) -> String {
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    // What a file holds is for comparing; its path tells a reader more.
    let set = config.iter().filter(|(name, value)| !value.is_null() && file_of(name).is_none());
    set.map(|(name, value)| format!("{name} {}", plain(value))).collect::<Vec<_>>().join(", ")
}

fn phases(summary: &Summary) -> String {
    if summary.phases.is_empty() {
        return String::new();
    }
    let device = summary.phases.iter().any(|phase| phase.device_ms.is_some());
    let mut header = vec!["phase", "share", "per step", "total", "calls"];
    header.extend(device.then_some("on device"));
    let mut table = table(&header);
    for phase in &summary.phases {
        table.add_row(phase_row(phase, device));
        for part in summary.scopes.iter().filter(|scope| is_recomputation_in(phase, scope)) {
            let mut row = phase_row(part, device);
            row[0] = format!("  {}", part.name);
            table.add_row(row);
        }
    }
    table.add_rows(summary.device_goes_on.iter().map(|beyond| phase_row(beyond, device)));
    let calls = summary.step.n.to_string();
    let per_step = ms_or_none(summary.step.median_ms);
    table.add_row(vec!["step".to_owned(), pct(100.0), per_step, ms(summary.step.total_ms), calls]);
    format!("Where the time went\n{}{}", put(&table), text_device::times(summary))
}

/// Backward's row holds its recomputation, which is told beside it.
fn is_recomputation_in(phase: &PhaseSummary, scope: &PhaseSummary) -> bool {
    scope.phase == Some(&phase.name) && scope.parent.is_none() && &*scope.name == RECOMPUTE
}

fn phase_row(phase: &PhaseSummary, device: bool) -> Vec<String> {
    let mut row = vec![
        phase.name.to_string(),
        pct(phase.share_pct),
        ms_or_none(phase.median_ms),
        ms(phase.total_ms),
        phase.calls.to_string(),
    ];
    row.extend(device.then(|| ms_or_none(phase.device_ms)));
    row
}

fn ms_or_none(time: Option<f64>) -> String {
    time.map_or_else(|| "—".to_owned(), ms)
}

/// How many scopes are listed, the slowest first; all are in the JSON.
const SCOPES: usize = 6;

fn scopes(summary: &Summary) -> String {
    if summary.scopes.is_empty() {
        return String::new();
    }
    let mut scopes: Vec<&PhaseSummary> = summary.scopes.iter().collect();
    scopes.sort_by(|a, b| b.total_ms.total_cmp(&a.total_ms));
    let mut table = table(&["slowest scopes", "share", "per step", "total", "calls"]);
    scopes.truncate(SCOPES);
    for scope in &scopes {
        let mut row = phase_row(scope, false);
        row[0] = format!("{} ({})", scope.name, scope.phase.unwrap_or_default());
        table.add_row(row);
    }
    let in_backward = scopes.iter().any(|scope| scope.phase == Some(Phase::Backward.as_str()));
    let note = if in_backward {
        "\n (of backward's graph without the scopes nested in it; in recomputation and elsewhere with them)"
    } else {
        ""
    };
    format!("{}{note}", put(&table))
}

/// The moments that have a column; the peaks of phases have a line of their own.
const COLUMNS: [Moment; 4] = [Moment::ForwardEnd, Moment::BackwardEnd, Moment::OptimizerEnd, Moment::Peak];

fn ledger(summary: &Summary) -> String {
    let moments: Vec<_> = COLUMNS
        .iter()
        .filter_map(|moment| summary.ledger.get(moment.as_str()).map(|m| (moment, &m.0)))
        .collect();
    let (Some(step), false) = (summary.ledger_step, moments.is_empty()) else { return String::new() };
    let mut header = vec!["category"];
    header.extend(moments.iter().flat_map(|(moment, _)| [moment.as_str(), ""]));
    let mut table = table(&header);
    for &category in Category::ALL {
        let mut row = vec![category.to_string()];
        for (_, moment) in &moments {
            row.push(bytes(moment.bytes[category]));
            row.push(pct(share_pct(moment.bytes[category], moment.bytes.total())));
        }
        table.add_row(row);
    }
    for (name, value) in LEDGER_SUMS {
        let cells = moments.iter().flat_map(|(_, moment)| [bytes(value(moment)), String::new()]);
        table.add_row(std::iter::once(name.to_owned()).chain(cells).collect::<Vec<_>>());
    }
    format!("Where the memory went (step {step})\n{}{}", put(&table), largest_difference(summary))
}

/// The moments of the table are a few of many instants.
fn largest_difference(summary: &Summary) -> String {
    let Some(most) = summary.instruments.difference_bytes else { return String::new() };
    let steps = match summary.step.n {
        1 => "the step".to_owned(),
        n => format!("the {n} measured steps"),
    };
    let most = count(most);
    format!(
        "\n (the sum is without unattributed; largest difference at any allocator event of {steps}: {most} bytes)"
    )
}

type MomentValue = fn(&crate::record::LedgerMoment) -> i64;

/// Each moment's own reconciliation, which could fail: what is unattributed counts as a difference.
const LEDGER_SUMS: [(&str, MomentValue); 3] = [
    ("sum of categories", |moment| moment.bytes.attributed()),
    ("allocator's total", |moment| moment.allocator_bytes),
    ("difference", |moment| moment.difference_bytes()),
];

fn peak(summary: &Summary) -> String {
    let (Some(peak), Some(phase)) = (summary.ledger.get(Moment::Peak.as_str()), summary.peak_phase) else {
        return String::new();
    };
    let total = peak.0.bytes.total();
    let mut table = table(&["what was alive", "size", "share", "blocks"]);
    for part in summary.peak_parts.iter().take(PEAK_PARTS) {
        table.add_row(part_row(part));
    }
    let rest: i64 = summary.peak_parts.iter().skip(PEAK_PARTS).map(|part| part.bytes).sum();
    if rest > 0 {
        table.add_row(vec!["the rest".to_owned(), bytes(rest)]);
    }
    let phases = phase_peaks(summary);
    format!("Peak: {} ({} bytes), in {phase}\n{}\n{phases}\n{MORE}", bytes(total), count(total), put(&table))
}

/// Where to look for what this account sums up.
const MORE: &str =
    " more: show --peak (by scope, largest blocks), --by scope (each module), --timeline (a picture)";

/// What the part is for, its size, share and number of blocks.
pub(super) fn part_row(part: &PeakPart) -> Vec<String> {
    let what = kind_of(part.category, part.detail);
    vec![what, bytes(part.bytes), pct(part.share_pct), part.blocks.to_string()]
}

/// `workspace / output`.
pub(super) fn kind_of(category: &str, detail: Option<&str>) -> String {
    detail.map_or_else(|| category.to_owned(), |detail| format!("{category} / {detail}"))
}

/// The highest total while each phase ran.
fn phase_peaks(summary: &Summary) -> String {
    let peak = |phase: &Phase| {
        let moment = summary.ledger.get(Moment::peak_of(*phase)?.as_str())?;
        Some(format!("{phase} {}", bytes(moment.0.bytes.total())))
    };
    format!(" by phase: {}", Phase::ALL.iter().filter_map(peak).collect::<Vec<_>>().join(", "))
}

fn instruments(summary: &Summary) -> String {
    let seen = &summary.instruments;
    let events = seen.events_per_step.filter(|_| summary.ledger_step.is_some());
    let events = events.map(|n| format!("{n:.0} allocator events a step"));
    let cost = seen.hook_ns_per_event.map(|ns| format!("{ns:.0} ns an event"));
    let observer = seen.observer_median_ms.map(|cost| format!("{} a step to file them", ms(cost)));
    let dropped = events.is_some().then(|| format!("{} dropped", seen.dropped_events));
    let parts: Vec<_> = [events, cost, observer, dropped].into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!("Instruments: {}", parts.join(", ")) }
}

/// A line for each result; the results of one experiment follow each other.
fn experiments(summary: &Summary) -> String {
    if summary.experiments.is_empty() {
        return String::new();
    }
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "(absent)".to_owned());
    let mut table = table(&["against run", "change", "result", "", "", "evidence"]);
    for row in &summary.experiments {
        table.add_row(vec![
            row.baseline_run_id.clone(),
            format!("{}: {} → {}", row.variable, value(&row.baseline_value), value(&row.changed_value)),
            row.result.clone(),
            format!("{} → {}", number(row.baseline), number(row.changed)),
            row.change_pct.map(|change| format!("{change:+.1} %")).unwrap_or_default(),
            row.evidence.to_string(),
        ]);
    }
    format!("Experiments\n{}", put(&table))
}

fn missing(summary: &Summary, width: usize) -> String {
    if summary.missing.is_empty() {
        return String::new();
    }
    let lines: Vec<_> =
        summary.missing.iter().map(|signal| wrap_at(&format!("  {signal}"), 4, width)).collect();
    format!("Missing\n{}", lines.join("\n"))
}
