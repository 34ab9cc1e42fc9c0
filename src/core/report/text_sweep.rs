//! A sweep as text.

use super::tables::{put, table};
use super::units::{bytes, count, ms, pct};
use super::wrap::wrap;
use crate::stats::FEWEST_PAIRS;
use crate::sweep::{CellResult, SetAside, Sweep};

/// The table of a sweep's cells and its answer.
pub fn render_sweep(sweep: &Sweep) -> String {
    let mut lines = vec![heading(sweep), String::new(), put(&cells(sweep)), String::new()];
    lines.push("* on the frontier: no other setting has more tokens/s at no higher a peak.".to_owned());
    if sweep.repeats < FEWEST_PAIRS {
        lines.push(format!("No intervals: that takes {FEWEST_PAIRS} repeats."));
    }
    lines.extend(reasons(sweep).iter().map(|line| wrap(line, 2)));
    lines.extend(sweep.set_aside.iter().map(|run| wrap(&not_counted(run), 2)));
    lines.push(String::new());
    lines.extend(sweep.answer.sentences.iter().map(|sentence| wrap(sentence, 0)));
    lines.push(wrap(&format!("Evidence: {} ({}).", sweep.answer.evidence, sweep.answer.why), 0));
    lines.join("\n") + "\n"
}

fn not_counted(run: &SetAside) -> String {
    let SetAside { run_id, why } = run;
    format!("Not counted: {run_id}: {why}. Its place is another run's; `stepledger rm {run_id}` removes it.")
}

fn heading(sweep: &Sweep) -> String {
    let within =
        sweep.capacity_bytes.map(|capacity| format!(" within {}", bytes(capacity))).unwrap_or_default();
    let runs: usize = sweep.cells.iter().map(|cell| cell.run_ids.len()).sum();
    let unfinished = if sweep.complete { "" } else { "; not finished" };
    let cells = sweep.cells.len();
    format!("{}: {cells} settings{within}, {runs} runs measured{unfinished}", sweep.sweep_id)
}

fn cells(sweep: &Sweep) -> comfy_table::Table {
    let flags: Vec<&str> = sweep.grid.iter().map(String::as_str).collect();
    let fixed =
        ["step", "95 %", "tokens/s", "peak", "activations", "recomputed", "fits", "status", "evidence"];
    let mut table = table(&[&[""], &flags[..], &fixed[..]].concat());
    for cell in &sweep.cells {
        let settings = flags.iter().map(|flag| setting(cell, flag));
        let mark = if cell.pareto { "*" } else { "" };
        table.add_row(std::iter::once(mark.to_owned()).chain(settings).chain(measured(cell)));
    }
    table
}

fn setting(cell: &CellResult, flag: &str) -> String {
    match cell.settings.get(flag) {
        Some(serde_json::Value::String(word)) => word.clone(),
        Some(value) => value.to_string(),
        None => ABSENT.to_owned(),
    }
}

/// In place of what there is no measurement of.
const ABSENT: &str = "–";

fn measured(cell: &CellResult) -> [String; 9] {
    let or_absent = |text: Option<String>| text.unwrap_or_else(|| ABSENT.to_owned());
    // It is one of logarithms, and so reaches further up than down.
    let reach = cell.step_ms_low.zip(cell.step_ms_high).zip(cell.step_ms);
    let reach = reach.map(|((low, high), mean)| {
        format!("−{:.1}/+{}", 100.0 * (1.0 - low / mean), pct(100.0 * (high / mean - 1.0)))
    });
    [
        or_absent(cell.step_ms.map(ms)),
        or_absent(reach),
        or_absent(cell.tokens_per_s.map(|rate| count(rate.round() as i64))),
        or_absent(cell.peak_bytes.map(bytes)),
        or_absent(cell.activation_bytes.map(bytes)),
        or_absent(cell.recompute_pct.map(pct)),
        or_absent(cell.fits.map(|fits| if fits { "yes" } else { "no" }.to_owned())),
        cell.status.to_string(),
        or_absent(cell.evidence.map(|evidence| evidence.to_string())),
    ]
}

/// Why cells have no measurement, or not as many as asked for: each reason once, with the cells it is true of.
fn reasons(sweep: &Sweep) -> Vec<String> {
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for cell in &sweep.cells {
        let Some(reason) = cell.reason.clone() else { continue };
        let name = cell.named(&sweep.grid);
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, cells)) => cells.push(name),
            None => reasons.push((reason, vec![name])),
        }
    }
    reasons.into_iter().map(|(reason, cells)| format!("{}: {reason}", cells.join("; "))).collect()
}
