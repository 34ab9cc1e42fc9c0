//! A list of runs as a table for a terminal.

use serde_json::Value;

use super::listed_run::ListedRun;
use super::tables::{put, table};
use super::units::count;

/// One line a run. Of those that are unreadable or went wrong, `--json` has the reason.
pub fn render_runs(runs: &[ListedRun]) -> String {
    let mut table = table(&[
        "id",
        "started (UTC)",
        "program",
        "status",
        "batch",
        "checkpoint",
        "dtype",
        "steps",
        "step ms",
        "tokens/s",
        "peak MiB",
    ]);
    for column in [1, 2, 3, 5, 6] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(comfy_table::CellAlignment::Left);
        }
    }
    for run in runs {
        table.add_row(row(run));
    }
    put(&table) + "\n"
}

fn row(run: &ListedRun) -> Vec<String> {
    let dash = || "—".to_owned();
    let configured = |name: &str| match run.config.get(name) {
        None | Some(Value::Null) => dash(),
        Some(value) => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
    };
    vec![
        run.run_id.clone(),
        run.started_at.as_deref().map_or_else(dash, minute),
        run.program.clone().unwrap_or_else(dash),
        run.status.clone(),
        configured("batch"),
        configured("checkpoint"),
        configured("dtype"),
        run.steps.map_or_else(dash, |steps| steps.to_string()),
        run.step_ms.map_or_else(dash, |ms| format!("{ms:.2}")),
        run.tokens_per_s.map_or_else(dash, |rate| count(rate.round() as i64)),
        run.peak_bytes.map_or_else(dash, |bytes| format!("{:.1}", bytes as f64 / 1_048_576.0)),
    ]
}

/// `2026-01-31T12:00:59Z` as `2026-01-31 12:00`.
fn minute(instant: &str) -> String {
    instant.get(..16).unwrap_or(instant).replace('T', " ")
}
