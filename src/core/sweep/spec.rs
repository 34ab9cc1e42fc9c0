//! What a sweep is to run, as its folder keeps it.

use serde::{Deserialize, Serialize};

use super::grid::{Cell, Grid};
use super::order::{Turn, order};

/// The version of `sweep.json`; a change of its meaning raises it.
pub const SWEEP_VERSION: u32 = 1;

/// More repeats of a cell would take days, and are a slip of the pen.
pub const MOST_REPEATS: u32 = 1000;

/// A grid, how often each of its cells is run, and with which flags beside the grid's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    pub version: u32,
    /// Also the folder's name, and the beginning of its runs' ids.
    pub sweep_id: String,
    pub stepledger_version: String,
    pub grid: Grid,
    /// Flags of `stepledger run` that all cells share.
    pub base: Vec<String>,
    /// 1 to [`MOST_REPEATS`].
    pub repeats: usize,
    /// Of the order of the runs.
    pub seed: u64,
    /// The memory to fit into.
    pub capacity_bytes: Option<i64>,
}

impl Spec {
    /// A sweep with the id `sweep-<name>`.
    pub fn new(name: &str, grid: Grid, base: Vec<String>, repeats: usize) -> Self {
        Spec {
            version: SWEEP_VERSION,
            sweep_id: format!("sweep-{name}"),
            stepledger_version: env!("CARGO_PKG_VERSION").to_owned(),
            grid,
            base,
            repeats,
            seed: 1,
            capacity_bytes: None,
        }
    }

    /// Whether a sweep may have so many repeats.
    pub(super) fn allows(repeats: usize) -> bool {
        (1..=MOST_REPEATS as usize).contains(&repeats)
    }

    /// The runs, in the order in which they are made.
    pub fn turns(&self) -> Vec<Turn> {
        order(self.grid.cells().len(), self.repeats, self.seed)
    }

    /// The flags of a cell's runs. The cell's own come last, and so have the last word.
    pub fn args(&self, cell: &Cell) -> Vec<String> {
        [self.base.clone(), cell.args()].concat()
    }

    /// The id of a turn's run; the runs of further attempts, after one that was interrupted, have the number of the
    /// attempt at the end.
    pub fn run_id(&self, turn: Turn, attempt: usize) -> String {
        let Turn { cell, repeat } = turn;
        let again = if attempt > 1 { format!("-again{attempt}") } else { String::new() };
        format!("{}-c{:02}-r{}{again}", self.sweep_id, cell + 1, repeat + 1)
    }
    /// The turn and the number of the attempt that a run's id stands for; `None` of any other name.
    pub(super) fn attempt(&self, run_id: &str) -> Option<(Turn, usize)> {
        let place = run_id.strip_prefix(&self.sweep_id)?.strip_prefix("-c")?;
        let (cell, repeat) = place.split_once("-r")?;
        let (repeat, attempt) = repeat.split_once("-again").unwrap_or((repeat, "1"));
        let from_one = |number: &str| number.parse::<usize>().ok()?.checked_sub(1);
        let turn = Turn { cell: from_one(cell)?, repeat: from_one(repeat)? };
        let attempt = attempt.parse().ok()?;
        // A number can be spelt in several ways, and ids have one.
        (self.run_id(turn, attempt) == run_id).then_some((turn, attempt))
    }
}
