//! Plain tables for a terminal.

use comfy_table::{CellAlignment, Table, presets};

/// A table without lines: names to the left, numbers to the right.
pub fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header.iter().copied());
    for (place, column) in table.column_iter_mut().enumerate() {
        let alignment = if place == 0 { CellAlignment::Left } else { CellAlignment::Right };
        column.set_cell_alignment(alignment);
    }
    table
}

/// The table as text, without the blanks that would trail its lines.
pub fn put(table: &Table) -> String {
    let text = table.to_string();
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}
