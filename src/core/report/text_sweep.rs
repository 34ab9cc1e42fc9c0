//! A sweep as text.

use std::path::Path;

use super::tables::{put, table};
use super::units::{bytes, count, ms, pct};
use super::wrap::{prose, wrap_at};
use crate::record::shell_word;
use crate::stats::FEWEST_PAIRS;
use crate::sweep::{CellResult, SetAside, Sweep};

/// The table of a sweep's cells and its answer, as suits a terminal of so many columns.
pub fn render_sweep(sweep: &Sweep, width: usize) -> String {
    let told = |text: &str, indent: usize| wrap_at(text, indent, prose(width));
    let mut lines = vec![heading(sweep), String::new(), cells(sweep, width), String::new()];
    if sweep.cells.iter().any(|cell| cell.pareto) {
        lines.push("* on the frontier: no other setting has more tokens/s at no higher a peak.".to_owned());
    }
    if sweep.repeats < FEWEST_PAIRS {
        lines.push(format!("No intervals: that takes {FEWEST_PAIRS} repeats."));
    }
    lines.extend(reasons(sweep).iter().map(|line| told(line, 2)));
    lines.extend(sweep.set_aside.iter().map(|run| not_counted(run, &sweep.dir, prose(width))));
    // None of the notes may have been called for.
    if lines.last().is_some_and(|line| !line.is_empty()) {
        lines.push(String::new());
    }
    lines.extend(sweep.answer.sentences.iter().map(|sentence| told(sentence, 0)));
    lines.push(told(&format!("Evidence: {} ({}).", sweep.answer.evidence, sweep.answer.why), 0));
    lines.join("\n") + "\n"
}

/// The command in a line of its own: one that is broken within quotes is another command.
fn not_counted(run: &SetAside, dir: &Path, width: usize) -> String {
    let SetAside { run_id, why } = run;
    let told = format!("Not counted: {run_id}: {why}; this removes it:");
    let path = dir.join(run_id);
    format!("{}\n    stepledger rm {}", wrap_at(&told, 2, width), shell_word(&path.to_string_lossy()))
}

fn heading(sweep: &Sweep) -> String {
    let within =
        sweep.capacity_bytes.map(|capacity| format!(" within {}", bytes(capacity))).unwrap_or_default();
    let runs: usize = sweep.cells.iter().map(|cell| cell.run_ids.len()).sum();
    let unfinished = if sweep.complete { "" } else { "; not finished" };
    let of = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let (settings, runs) = (of(sweep.cells.len(), "setting"), of(runs, "run"));
    format!("{}: {settings}{within}, {runs} measured{unfinished}", sweep.sweep_id)
}

/// A column of what was measured.
struct Column {
    header: &'static str,
    cell: fn(&CellResult) -> Option<String>,
    /// Whether it helps to decide, or to understand why.
    decides: bool,
}

const COLUMNS: [Column; 9] = [
    Column { header: "step", cell: |cell| cell.step_ms.map(ms), decides: true },
    Column { header: "95 %", cell: reach, decides: true },
    Column {
        header: "tokens/s",
        cell: |cell| cell.tokens_per_s.map(|rate| count(rate.round() as i64)),
        decides: true,
    },
    Column { header: "peak", cell: |cell| cell.peak_bytes.map(bytes), decides: true },
    Column { header: "activations", cell: |cell| cell.activation_bytes.map(bytes), decides: false },
    Column { header: "recomputed", cell: |cell| cell.recompute_pct.map(pct), decides: false },
    Column {
        header: "fits",
        cell: |cell| cell.fits.map(|fits| if fits { "yes" } else { "no" }.to_owned()),
        decides: true,
    },
    Column { header: "status", cell: |cell| Some(cell.status.to_string()), decides: false },
    Column {
        header: "evidence",
        cell: |cell| cell.evidence.map(|evidence| evidence.to_string()),
        decides: false,
    },
];

/// In one table, or where that would be too wide in two: of what decides, and of what explains it.
fn cells(sweep: &Sweep, width: usize) -> String {
    let whole = text(sweep, &COLUMNS.iter().collect::<Vec<_>>());
    if whole.lines().all(|line| line.chars().count() <= width) {
        return whole;
    }
    let (decide, explain): (Vec<&Column>, Vec<&Column>) = COLUMNS.iter().partition(|column| column.decides);
    format!("{}\n\n{}", text(sweep, &decide), text(sweep, &explain))
}

fn text(sweep: &Sweep, columns: &[&Column]) -> String {
    let flags: Vec<&str> = sweep.grid.iter().map(String::as_str).collect();
    let headers: Vec<&str> = columns.iter().map(|column| column.header).collect();
    let mut table = table(&[&[""], &flags[..], &headers[..]].concat());
    for cell in &sweep.cells {
        let settings = flags.iter().map(|flag| cell.setting(flag).unwrap_or_else(absent));
        let mark = if cell.pareto { "*" } else { "" };
        let measured = columns.iter().map(|column| (column.cell)(cell).unwrap_or_else(absent));
        table.add_row(std::iter::once(mark.to_owned()).chain(settings).chain(measured));
    }
    put(&table)
}

/// In place of what there is no measurement of.
fn absent() -> String {
    "–".to_owned()
}

/// How far the interval reaches down and up. It is one of logarithms, and so reaches further up than down.
fn reach(cell: &CellResult) -> Option<String> {
    let (low, high, mean) = (cell.step_ms_low?, cell.step_ms_high?, cell.step_ms?);
    Some(format!("−{:.1}/+{}", 100.0 * (1.0 - low / mean), pct(100.0 * (high / mean - 1.0))))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::made_up::{cell, made_up};

    #[test]
    fn what_is_too_wide_for_one_table_is_put_into_two() {
        let within = |low: f64, high: f64, cell| CellResult {
            step_ms: Some(26.0),
            step_ms_low: Some(low),
            step_ms_high: Some(high),
            pareto: true,
            activation_bytes: Some(8 << 20),
            recompute_pct: Some(20.9),
            fits: Some(true),
            ..cell
        };
        let cells =
            vec![within(22.0, 30.0, cell(8, "none", 9_828.0, 18 << 20)), cell(8, "every:2", 9.0, 9 << 20)];
        let sweep = made_up(cells, None);
        let (wide, narrow) = (render_sweep(&sweep, 200), render_sweep(&sweep, 80));
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
        for header in COLUMNS.map(|column| column.header) {
            assert!(wide.contains(header) && narrow.contains(header), "{header}:\n{narrow}");
        }
        let lines = |text: &str| text.lines().filter(|line| line.contains("every:2")).count();
        // Once in each table, and in the answer.
        assert_eq!((lines(&wide), lines(&narrow)), (2, 3), "{wide}\n{narrow}");
    }

    #[test]
    fn only_what_is_there_is_explained_and_one_is_one() {
        let mut sweep = made_up(vec![cell(8, "none", 9_828.0, 18 << 20)], None);
        sweep.cells[0].run_ids = vec!["a".to_owned()];
        let text = render_sweep(&sweep, 80);
        assert!(text.starts_with("sweep-made-up: 1 setting, 1 run measured\n"), "{text}");
        assert!(!text.contains("frontier") && !text.contains("\n\n\n"), "{text}");
        sweep.cells[0].pareto = true;
        assert!(render_sweep(&sweep, 80).contains("* on the frontier"));
    }

    #[test]
    fn what_is_not_counted_is_removed_by_the_command_that_is_told() {
        let mut sweep = made_up(vec![cell(8, "none", 9_828.0, 18 << 20)], None);
        sweep.dir = "my runs of today/sweep-made-up".into();
        let why = "its steps are damaged, and a long sentence says how much of them there was and is not"
            .to_owned();
        sweep.set_aside = vec![SetAside { run_id: "sweep-made-up-c01-r1".to_owned(), why }];
        let text = render_sweep(&sweep, 80);
        let command = "\n    stepledger rm 'my runs of today/sweep-made-up/sweep-made-up-c01-r1'\n";
        assert!(text.contains(command), "{text}");
    }

    #[test]
    fn the_answer_has_the_tables_numbers_in_lines_that_suit_the_terminal() {
        let sweep =
            made_up(vec![cell(8, "none", 25_844.0, 605_184), cell(8, "full", 25_000.0, 600_000)], None);
        for (width, at_most) in [(60, 60), (200, 100)] {
            let text = render_sweep(&sweep, width);
            let (table, answer) = text.split_once("\nTake ").unwrap();
            for number in ["25,844", "591 KiB"] {
                assert!(table.contains(number) && answer.contains(number), "{number}: {text}");
            }
            let widest = answer.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= at_most && widest > at_most - 20, "{widest}: {text}");
        }
    }
}
