//! What earlier processes have left of a sweep.

use std::collections::VecDeque;
use std::path::Path;

use serde::Serialize;

use super::alike::{Alike, is_same, named};
use super::attempts::Attempts;
use super::error::SweepError;
use super::folder::Folder;
use super::measure::Measure;
use super::order::Turn;
use super::spec::Spec;
use super::tried::Tried;
use crate::record::RunStatus;
use crate::store::{Calibrations, StoreError, this_machine};

/// A run that lies in a sweep's folder but is not counted: its turn is made again, and it stays where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SetAside {
    pub run_id: String,
    pub why: String,
}

/// What is there, and what is still to come.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// How many runs are there.
    pub done: usize,
    /// Those still to be made, each with the number of the attempt.
    pub waiting: VecDeque<(Turn, usize)>,
    pub set_aside: Vec<SetAside>,
    /// How they were made.
    pub alike: Alike,
}

/// Reads the runs that are there.
///
/// # Errors
/// When one of them cannot be told from one that goes on, or those that are missing would be made on another machine.
pub(super) fn gather(
    folder: &Folder,
    tried: &mut [Tried],
    known: &Calibrations,
) -> Result<Gathered, SweepError> {
    let attempts = folder.attempts()?;
    let ended = ended(folder, &attempts, known)?;
    let tries = ended.iter().flat_map(|(turn, tries)| tries.iter().map(|(_, measure)| (*turn, measure)));
    let measures = tries.filter_map(|(turn, measure)| Some((turn, measure.as_ref().ok()?)));
    let alike = Alike::of(&folder.spec().grid, measures);
    let mut gathered = Gathered { alike, ..Gathered::default() };
    for (turn, tries) in ended {
        match gathered.find(folder.spec(), turn, tries) {
            Some(measure) => {
                tried[turn.cell].take_earlier(turn.repeat, measure);
                gathered.done += 1;
            }
            None => gathered.waiting.push_back((turn, attempts.next(turn))),
        }
    }
    gathered.waiting.retain(|(turn, _)| !tried[turn.cell].hopeless);
    let here = this_machine();
    match gathered.alike.machine() {
        Some(begun) if !gathered.waiting.is_empty() && !is_same(begun, &here) => {
            let (dir, begun, here) = (folder.dir().to_owned(), named(begun), named(&here));
            Err(SweepError::OtherMachine { dir, begun, here })
        }
        _ => Ok(gathered),
    }
}

/// An attempt at a turn that came to an end, by its number: what was measured of it, or why that cannot be counted.
type Ended = (usize, Result<Measure, String>);

/// The attempts at each turn that came to an end, in the order of the turns.
fn ended(
    folder: &Folder,
    attempts: &Attempts,
    known: &Calibrations,
) -> Result<Vec<(Turn, Vec<Ended>)>, SweepError> {
    let read = |turn: Turn, attempt: usize| -> Result<Option<Ended>, SweepError> {
        let Some(dir) = folder.ended(turn, attempt)? else { return Ok(None) };
        Ok(Some((attempt, countable(&dir, known)?)))
    };
    let all = |turn: Turn| {
        let tries = attempts.at(turn).iter().filter_map(|&attempt| read(turn, attempt).transpose());
        Ok((turn, tries.collect::<Result<_, SweepError>>()?))
    };
    folder.spec().turns().into_iter().map(all).collect()
}

impl Gathered {
    /// What was measured of the first attempt at a turn that can be counted; those before it are set aside.
    fn find(&mut self, spec: &Spec, turn: Turn, tries: Vec<Ended>) -> Option<Measure> {
        for (attempt, measure) in tries {
            let why = match measure {
                Ok(measure) => match self.alike.stranger(&measure) {
                    None => return Some(measure),
                    Some(why) => why,
                },
                Err(why) => why,
            };
            self.set_aside.push(SetAside { run_id: spec.run_id(turn, attempt), why });
        }
        None
    }
}

/// What was measured of a run, or why that cannot be counted.
pub(super) fn countable(dir: &Path, known: &Calibrations) -> Result<Result<Measure, String>, StoreError> {
    match Measure::read(dir, known) {
        Ok(measure) => Ok(match measure.lacks.clone() {
            Some(lacks) if measure.status == RunStatus::Complete => Err(lacks),
            _ => Ok(measure),
        }),
        // Another permission, or the disk put back, is all that this one needs.
        Err(error @ StoreError::Read { .. }) => Err(error),
        // Without the way out that other readers have.
        Err(StoreError::Damaged { path, damage }) => {
            let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
            Ok(Err(format!("{name} is damaged: {damage}")))
        }
        Err(error) => Ok(Err(error.to_string())),
    }
}
