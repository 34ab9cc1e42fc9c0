//! What a sweep came to: its cells, the frontier among them, and an answer.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::answer::{Answer, answer};
use super::cell::CellResult;
use super::duel::Duel;
use super::gather::SetAside;
use super::spec::Spec;
use super::tried::Tried;
use super::workload::Workload;
use crate::record::SweepRow;
use crate::store::Calibrations;

/// A sweep's results: the documented object of `sweep --json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sweep {
    pub sweep_id: String,
    pub dir: PathBuf,
    /// Whether all runs have been made.
    pub complete: bool,
    pub repeats: usize,
    pub capacity_bytes: Option<i64>,
    /// What all of its runs have in common; `None` before the first one is measured.
    pub workload: Option<Workload>,
    /// The flags that the grid varies.
    pub grid: Vec<String>,
    pub cells: Vec<CellResult>,
    /// Runs in its folder that are not counted.
    pub set_aside: Vec<SetAside>,
    pub answer: Answer,
}

impl Sweep {
    pub(super) fn of(spec: &Spec, dir: &Path, tried: &[Tried], complete: bool, known: &Calibrations) -> Self {
        let grid: Vec<String> = spec.grid.axes().iter().map(|axis| axis.flag.clone()).collect();
        let cells = spec.grid.cells();
        let results = cells.iter().zip(tried).enumerate().map(|(number, (cell, tried))| {
            CellResult::of(number, cell, tried, spec.repeats, spec.capacity_bytes)
        });
        let mut cells: Vec<CellResult> = results.collect();
        mark_frontier(&mut cells);
        let workloads = tried.iter().flat_map(|tried| &tried.measures).map(|(_, measure)| &measure.workload);
        let duel = |best: &CellResult, rival: &CellResult| Duel::between(dir, best, rival, known);
        Sweep {
            sweep_id: spec.sweep_id.clone(),
            dir: dir.to_owned(),
            complete,
            repeats: spec.repeats,
            capacity_bytes: spec.capacity_bytes,
            answer: answer(&cells, &grid, spec.capacity_bytes, &duel),
            workload: Workload::common(workloads, &grid),
            grid,
            cells,
            set_aside: Vec::new(),
        }
    }

    /// The table to keep, a row a cell.
    pub fn rows(&self) -> Vec<SweepRow> {
        self.cells.iter().map(|cell| cell.row(self.repeats, self.capacity_bytes)).collect()
    }
}

/// Marks the cells that no other one beats in both, tokens/s and peak: Pareto's frontier.
fn mark_frontier(cells: &mut [CellResult]) {
    let points: Vec<Option<(f64, i64)>> = cells.iter().map(CellResult::rate_and_peak).collect();
    for (place, cell) in cells.iter_mut().enumerate() {
        let Some((rate, peak)) = points[place] else { continue };
        cell.pareto = !points.iter().flatten().any(|&(other_rate, other_peak)| {
            other_rate >= rate && other_peak <= peak && (other_rate > rate || other_peak < peak)
        });
    }
}

#[cfg(test)]
pub mod made_up {
    //! Cells of two flags, without runs behind them.

    use serde_json::json;

    use super::super::grid::Cell;
    use super::*;
    use crate::record::{EvidenceLevel, RunStatus};

    /// A complete sweep of these cells.
    pub fn made_up(cells: Vec<CellResult>, capacity_bytes: Option<i64>) -> Sweep {
        let grid = ["batch".to_owned(), "checkpoint".to_owned()];
        Sweep {
            sweep_id: "sweep-made-up".to_owned(),
            dir: PathBuf::from("runs/sweep-made-up"),
            complete: true,
            repeats: 5,
            capacity_bytes,
            answer: answer(&cells, &grid, capacity_bytes, &|_, _| None),
            workload: Some(Workload {
                program: "gpt".to_owned(),
                device: "cpu".to_owned(),
                device_name: Some("a cpu".to_owned()),
                config: json!({"layers": 4, "width": 128, "lr": 0.001}).as_object().unwrap().clone(),
            }),
            grid: grid.to_vec(),
            cells,
            set_aside: Vec::new(),
        }
    }

    /// A cell at so many tokens/s and bytes.
    pub fn cell(batch: i64, checkpoint: &str, rate: f64, peak_bytes: i64) -> CellResult {
        let cell = Cell { values: Vec::new() };
        let blank = CellResult::of(0, &cell, &Tried::default(), 5, None);
        let settings = json!({"batch": batch, "checkpoint": checkpoint});
        CellResult {
            settings: settings.as_object().unwrap().clone(),
            status: RunStatus::Complete,
            tried: true,
            reason: None,
            step_ms: Some(1.0),
            tokens_per_s: Some(rate),
            tokens_per_s_low: Some(rate * 0.99),
            tokens_per_s_high: Some(rate * 1.01),
            peak_bytes: Some(peak_bytes),
            evidence: Some(EvidenceLevel::RepeatedBenchmark),
            why: Some("5 interleaved runs".to_owned()),
            ..blank
        }
    }
}

#[cfg(test)]
mod tests {
    use super::made_up::cell;
    use super::*;
    use crate::record::RunStatus;

    #[test]
    fn the_frontier_is_what_no_other_beats() {
        let mut cells = [
            cell(8, "none", 100.0, 50),
            cell(8, "full", 80.0, 30),
            cell(4, "none", 79.0, 31),
            cell(16, "none", 100.0, 90),
            CellResult { tokens_per_s: None, ..cell(32, "none", 1.0, 1) },
            CellResult { status: RunStatus::OutOfMemory, ..cell(64, "none", 900.0, 20) },
        ];
        mark_frontier(&mut cells);
        assert_eq!(cells.map(|cell| cell.pareto), [true, true, false, false, false, false]);
    }
}
