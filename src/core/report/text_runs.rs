//! A list of runs as a table for a terminal.

use comfy_table::CellAlignment;
use serde_json::Value;

use super::listed_run::ListedRun;
use super::tables::{put, table};
use super::units::{bytes, count, ms};
use super::wrap::wrap_at;

/// A column of the table.
struct Column {
    header: &'static str,
    is_text: bool,
    cell: fn(&ListedRun) -> Option<String>,
}

const fn text(header: &'static str, cell: fn(&ListedRun) -> Option<String>) -> Column {
    Column { header, is_text: true, cell }
}

const fn number(header: &'static str, cell: fn(&ListedRun) -> Option<String>) -> Column {
    Column { header, is_text: false, cell }
}

const COLUMNS: [Column; 11] = [
    text("id", |run| Some(run.run_id.clone())),
    text("started (UTC)", |run| run.started_at.as_deref().map(minute)),
    text("program", |run| run.program.clone()),
    text("status", |run| Some(run.status.clone())),
    number("batch", |run| configured(run, "batch")),
    text("checkpoint", |run| configured(run, "checkpoint")),
    text("dtype", |run| configured(run, "dtype")),
    number("steps", |run| run.steps.map(|steps| count(steps as i64))),
    number("step", |run| run.step_ms.map(ms)),
    number("tokens/s", |run| run.tokens_per_s.map(|rate| count(rate.round() as i64))),
    number("peak", |run| run.peak_bytes.map(bytes)),
];

/// What a narrow terminal goes without, the first of these first.
const DISPENSABLE: [&str; 7] =
    ["dtype", "program", "steps", "checkpoint", "started (UTC)", "tokens/s", "batch"];

/// One line a run, with as many of the columns as `width` has room for. Of those that are unreadable or went wrong,
/// `--json` has the reason.
pub fn render_runs(runs: &[ListedRun], width: usize) -> String {
    let without = |few: usize| {
        let left_out = &DISPENSABLE[..few];
        let kept = COLUMNS.iter().filter(|column| !left_out.contains(&column.header));
        (left_out, lines(runs, &kept.collect::<Vec<_>>()))
    };
    let fits = |text: &str| text.lines().all(|line| line.chars().count() <= width);
    let fitting = (0..DISPENSABLE.len()).map(without).find(|(_, text)| fits(text));
    let (left_out, text) = fitting.unwrap_or_else(|| without(DISPENSABLE.len()));
    match left_out {
        [] => text + "\n",
        few => {
            let note = format!(" (without {}: too wide; --json has them)", few.join(", "));
            format!("{text}\n{}\n", wrap_at(&note, 2, width))
        }
    }
}

fn lines(runs: &[ListedRun], columns: &[&Column]) -> String {
    let mut table = table(&columns.iter().map(|column| column.header).collect::<Vec<_>>());
    for (place, _) in columns.iter().enumerate().filter(|(_, column)| column.is_text) {
        if let Some(column) = table.column_mut(place) {
            column.set_cell_alignment(CellAlignment::Left);
        }
    }
    for run in runs {
        let cell = |column: &&Column| (column.cell)(run).unwrap_or_else(|| "—".to_owned());
        table.add_row(columns.iter().map(cell).collect::<Vec<_>>());
    }
    put(&table)
}

fn configured(run: &ListedRun, name: &str) -> Option<String> {
    match run.config.get(name)? {
        Value::Null => None,
        value => Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned)),
    }
}

/// `2026-01-31T12:00:59Z` as `2026-01-31 12:00`.
fn minute(instant: &str) -> String {
    instant.get(..16).unwrap_or(instant).replace('T', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> ListedRun {
        let mut run =
            ListedRun::without_row("20260131-120000-gpt-1a2b3".to_owned(), String::new(), "complete", None);
        run.started_at = Some("2026-01-31T12:00:59Z".to_owned());
        (run.step_ms, run.tokens_per_s) = (Some(3.19), Some(40_138.2));
        (run.steps, run.peak_bytes) = (Some(100), Some(421 << 10));
        run
    }

    #[test]
    fn a_narrow_terminal_goes_without_what_matters_least() {
        let at = |width: usize| render_runs(&[run()], width);
        let whole = at(usize::MAX);
        for part in ["2026-01-31 12:00", "3.19 ms", "40,138", "421 KiB", "dtype"] {
            assert!(whole.contains(part), "{part}: {whole}");
        }
        let narrow = at(80);
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
        assert!(narrow.contains("(without dtype, program") && narrow.contains("421 KiB"), "{narrow}");
        assert!(at(10).contains("20260131-120000-gpt-1a2b3  complete"), "{}", at(10));
    }
}
