//! Making a sweep's runs, one after the other.

use std::time::Duration;

use super::error::SweepError;
use super::folder::Folder;
use super::gather::{Gathered, gather};
use super::grid::Cell;
use super::order::Turn;
use super::program::Program;
use super::result::Sweep;
use super::tried::{Tried, time_left};
use crate::record::RunStatus;
use crate::store::{Calibrations, home, keep_sweep};

/// How far a sweep has come, told before each run and at the end.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress<'a> {
    /// Runs made, and runs in all: those that would only fail again are in neither.
    pub done: usize,
    pub total: usize,
    /// What is run now; `None` at the end.
    pub next: Option<(&'a Cell, Turn)>,
    /// What is still to come will take if it takes what the runs before took; `None` before the first.
    pub left: Option<Duration>,
}

/// Makes the runs of the sweep in `folder` that are not there yet, keeps its table, and returns what came of it.
/// `stop` is asked before each run; what is missing then can be made by another call.
///
/// # Errors
/// When runs cannot be started, would be made on another machine or in another setting than those before them, or what
/// they left cannot be read. That a run fails is a result.
pub fn sweep(
    folder: &Folder,
    program: &Program,
    tell: &mut dyn FnMut(Progress),
    stop: &dyn Fn() -> bool,
) -> Result<Sweep, SweepError> {
    let spec = folder.spec();
    let cells = spec.grid.cells();
    // Before the runs, so that a file that cannot be read does not cost them.
    let known = home().map_or_else(|| Ok(Calibrations::default()), |home| Calibrations::load(&home))?;
    let mut tried: Vec<Tried> = cells.iter().map(|_| Tried::default()).collect();
    let Gathered { mut done, mut waiting, set_aside, mut alike } = gather(folder, &mut tried, &known)?;
    while let Some(&(turn, attempt)) = waiting.front() {
        if stop() {
            break;
        }
        let left = time_left(&tried, waiting.iter().map(|(turn, _)| turn.cell));
        tell(Progress { done, total: done + waiting.len(), next: Some((&cells[turn.cell], turn)), left });
        let (run_id, args) = (spec.run_id(turn, attempt), spec.args(&cells[turn.cell]));
        let ran = program.run_with(folder.lock_for_a_run()?, folder.dir(), &run_id, &args)?;
        // What ended this sweep has ended its run: it is still to be made.
        if ran.status == RunStatus::Interrupted && stop() {
            break;
        }
        tried[turn.cell].take(turn.repeat, ran, &known, &mut alike)?;
        waiting.pop_front();
        waiting.retain(|(turn, _)| !tried[turn.cell].hopeless);
        done += 1;
    }
    tell(Progress { done, total: done + waiting.len(), next: None, left: None });
    let sweep = Sweep { set_aside, ..Sweep::of(spec, folder.dir(), &tried, waiting.is_empty(), &known) };
    keep_sweep(folder.dir(), &spec.sweep_id, sweep.rows())?;
    Ok(sweep)
}
