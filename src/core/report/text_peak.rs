//! A step's peak as text for a terminal.

use comfy_table::CellAlignment;

use super::peak::{PeakBlock, PeakScope, PeakView};
use super::scope_tree::last_part;
use super::step_memory::Reconciliation;
use super::tables::{put, table};
use super::text::{kind_of, part_row};
use super::units::{bytes, count, ms, pct};

/// How many scopes are listed, the largest of them; all are in the JSON.
const SCOPES: usize = 40;

/// What stands where nothing is known.
pub(super) const ABSENT: &str = "—";

/// What was alive at the peak, from three sides, and that nothing is left out.
pub fn render_peak(view: &PeakView) -> String {
    let total = view.reconciliation.parts_bytes;
    let phase = view.phase.map(|phase| format!(", in {phase}")).unwrap_or_default();
    let heading = format!(
        "Peak of step {} of run {}: {} ({} bytes), {} into the step{phase}",
        view.step,
        view.run_id,
        bytes(total),
        count(total),
        ms(view.at_ms)
    );
    let sections = [
        heading,
        parts(view),
        scopes(view),
        blocks_table(&view.largest),
        reconciliation("sum of the parts", &view.reconciliation),
    ];
    sections.join("\n\n") + "\n"
}

fn parts(view: &PeakView) -> String {
    let mut table = table(&["what was alive", "size", "share", "blocks"]);
    for part in &view.parts {
        table.add_row(part_row(part));
    }
    let whole = bytes(view.reconciliation.parts_bytes);
    table.add_row(vec!["all".to_owned(), whole, pct(100.0), view.blocks.to_string()]);
    put(&table)
}

fn scopes(view: &PeakView) -> String {
    let shown = largest_scopes(&view.scopes);
    let mut table = table(&["made in scope", "with nested", "share", "own", "own blocks"]);
    for (scope, _) in view.scopes.iter().zip(&shown).filter(|(_, shown)| **shown) {
        let name = last_part(&scope.scope, scope.parent.as_deref());
        let own = (bytes(scope.own_bytes), scope.own_blocks.to_string());
        let (size, share) = (bytes(scope.bytes), pct(scope.share_pct));
        table.add_row(vec![format!("{}{name}", "  ".repeat(scope.depth)), size, share, own.0, own.1]);
    }
    let outside = view.no_scope;
    let size = bytes(outside.bytes);
    let blocks = outside.blocks.to_string();
    table.add_row(vec!["(no scope)".to_owned(), size.clone(), pct(outside.share_pct), size, blocks]);
    let rest = view.scopes.iter().zip(&shown).filter(|(_, shown)| !**shown).map(|(scope, _)| scope);
    if let Some(row) = left_out(rest) {
        table.add_row(row);
    }
    put(&table)
}

/// Marks the largest scopes; a scope is never larger than the one it is nested in, so that is marked too.
fn largest_scopes(scopes: &[PeakScope]) -> Vec<bool> {
    let mut places: Vec<usize> = (0..scopes.len()).collect();
    places.sort_by_key(|&place| (-scopes[place].bytes, scopes[place].depth, place));
    let mut shown = vec![false; scopes.len()];
    places.iter().take(SCOPES).for_each(|&place| shown[place] = true);
    shown
}

/// How many scopes are not listed, and what they held themselves, so that the column still adds up.
fn left_out<'a>(scopes: impl Iterator<Item = &'a PeakScope> + Clone) -> Option<Vec<String>> {
    let n = scopes.clone().count();
    let own: i64 = scopes.clone().map(|scope| scope.own_bytes).sum();
    let blocks: i64 = scopes.map(|scope| scope.own_blocks).sum();
    let row =
        || vec![format!("({n} more scopes)"), String::new(), String::new(), bytes(own), blocks.to_string()];
    (n > 0).then(row)
}

/// A row for each block.
pub(super) fn blocks_table(blocks: &[PeakBlock]) -> String {
    let header = ["largest blocks", "what for", "age", "phase", "op", "scope", "variable"];
    let mut table = table(&header);
    table.column_iter_mut().skip(3).for_each(|column| column.set_cell_alignment(CellAlignment::Left));
    if let Some(column) = table.column_mut(0) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    if let Some(column) = table.column_mut(1) {
        column.set_cell_alignment(CellAlignment::Left);
    }
    for block in blocks {
        let known = |text: Option<&str>| text.unwrap_or(ABSENT).to_owned();
        table.add_row(vec![
            bytes(block.bytes),
            kind_of(block.category, block.detail),
            age(block),
            known(block.phase),
            known(block.op.as_deref()),
            known(block.scope.as_deref()),
            known(block.name.as_deref()),
        ]);
    }
    put(&table)
}

/// In time, and in steps for a block that is older than the step.
fn age(block: &PeakBlock) -> String {
    let time = ms(block.age_ms);
    match (block.age_steps, block.before_first_step) {
        (0, _) => time,
        (1, true) => format!("{time}, before the first step"),
        (n, true) => format!("{time}, before the first step of {n}"),
        (1, false) => format!("{time}, 1 step"),
        (n, false) => format!("{time}, {n} steps"),
    }
}

/// One line that says whether a view and the ledger agree, and what a difference can come from.
pub(super) fn reconciliation(what: &str, sums: &Reconciliation) -> String {
    let line = format!(
        "{what} {} bytes, ledger's total {} bytes, difference {}",
        count(sums.parts_bytes),
        count(sums.ledger_bytes),
        count(sums.difference_bytes)
    );
    match (sums.difference_bytes, sums.dropped_events) {
        (0, _) => line,
        (1.., 0) => format!(
            "{line}: blocks that an earlier probe of the same process saw made count in the ledger, and no \
             allocation of this run tells of them"
        ),
        (_, 0) => format!("{line}: a defect of stepledger, since no event was dropped; please report it"),
        (_, dropped) => {
            format!("{line}: {} of the run's events were dropped, allocations or frees", count(dropped))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_has_the_reason_that_can_hold() {
        let line = |difference_bytes, dropped_events| {
            let sums = Reconciliation {
                parts_bytes: 5000,
                ledger_bytes: 5000 + difference_bytes,
                difference_bytes,
                dropped_events,
            };
            reconciliation("sum", &sums)
        };
        assert_eq!(line(0, 7), "sum 5,000 bytes, ledger's total 5,000 bytes, difference 0");
        assert!(line(64, 0).contains("an earlier probe"), "{}", line(64, 0));
        assert!(line(-64, 0).contains("a defect"), "{}", line(-64, 0));
        for difference in [64, -64] {
            assert!(line(difference, 1200).contains(": 1,200 of the run's events were dropped"));
        }
    }
}
