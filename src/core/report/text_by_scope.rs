//! The table of the modules as text for a terminal.

use super::by_scope::{ByScope, Cells};
use super::scope_tree::last_part;
use super::tables::{put, table};
use super::text_peak::ABSENT;
use super::units::{bytes, ms};

const HEADER: [&str; 7] =
    ["scope", "parameters", "gradients", "states", "activations", "forward", "backward"];

/// The table, what it adds up to, and what the ledger and the phases say.
pub fn render_by_scope(table_of: &ByScope) -> String {
    let mut lines = vec![heading(table_of), String::new(), rows(table_of)];
    if table_of.sum.backward_ms.is_none() {
        lines.push(format!("{ABSENT} backward by scope: `--trace ops` gives it"));
    }
    if table_of.difference.backward_ms.is_some_and(|ms| ms < 0.0) {
        lines.push(
            "several threads ran nodes of backward at once: together they took longer than the phase"
                .to_owned(),
        );
    }
    lines.join("\n") + "\n"
}

fn heading(table_of: &ByScope) -> String {
    let times = match table_of.steps {
        1 => "times of one step".to_owned(),
        n => format!("times are means over {n} steps (medians would not add up)"),
    };
    format!(
        "By scope, run {}\n  bytes in step {}: activations at forward_end, the others at {}\n  {times}; each row \
         without the scopes nested in it",
        table_of.run_id, table_of.step, table_of.kept_at
    )
}

fn rows(table_of: &ByScope) -> String {
    let mut table = table(&HEADER);
    for row in &table_of.rows {
        let name = last_part(&row.scope, row.parent.as_deref());
        let cells = line(&format!("{}{name}", "  ".repeat(row.depth)), &row.cells);
        table.add_row(cells.into_iter().map(without_unit));
    }
    let outside = &table_of.outside;
    table.add_row(std::iter::once("(no scope)".to_owned()).chain(sizes(outside)));
    let blanks = sizes(outside).map(|_| String::new());
    table.add_row(std::iter::once("(outside scopes)".to_owned()).chain(blanks).chain(times(outside)));
    table.add_row(line("sum", &table_of.sum));
    table.add_row(line("ledger and phases", &table_of.account));
    table.add_row(line("difference", &table_of.difference));
    put(&table)
}

fn line(name: &str, cells: &Cells) -> Vec<String> {
    std::iter::once(name.to_owned()).chain(sizes(cells)).chain(times(cells)).collect()
}

/// A bare 0, so that what is there stands out among what is not.
fn without_unit(cell: String) -> String {
    if cell == bytes(0) || cell == ms(0.0) { "0".to_owned() } else { cell }
}

fn sizes(cells: &Cells) -> [String; 4] {
    let columns =
        [cells.parameter_bytes, cells.gradient_bytes, cells.adam_state_bytes, cells.activation_bytes];
    columns.map(|column| column.map_or_else(|| ABSENT.to_owned(), bytes))
}

fn times(cells: &Cells) -> [String; 2] {
    [cells.forward_ms, cells.backward_ms].map(|column| column.map_or_else(|| ABSENT.to_owned(), ms))
}
