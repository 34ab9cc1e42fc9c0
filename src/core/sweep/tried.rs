//! What is known of a cell while its sweep goes on.

use std::time::Duration;

use super::alike::Alike;
use super::error::SweepError;
use super::gather::countable;
use super::measure::Measure;
use super::program::Ran;
use crate::record::RunStatus;
use crate::store::Calibrations;

/// The runs of a cell that have been made so far.
#[derive(Debug, Default)]
pub struct Tried {
    /// Those that completed, by repeat.
    pub measures: Vec<(usize, Measure)>,
    /// How the last of the others ended; where one of them was out of memory, that one.
    pub failed: Option<(RunStatus, String)>,
    /// Each further run would end as the failed one did.
    pub hopeless: bool,
}

impl Tried {
    /// Takes note of a run that has just been made. One whose measurement is not there for all that it is complete has
    /// failed.
    ///
    /// # Errors
    /// When it was made otherwise than the runs that are counted, as all further ones would be.
    pub fn take(
        &mut self,
        repeat: usize,
        ran: Ran,
        known: &Calibrations,
        alike: &mut Alike,
    ) -> Result<(), SweepError> {
        if ran.status != RunStatus::Complete {
            // What it was told was wrong with its flags is the same each time.
            self.hopeless |= ran.refused;
            self.fail(ran.status, ran.reason.unwrap_or_default());
            return Ok(());
        }
        match countable(&ran.dir, known)? {
            Ok(measure) => {
                if let Some(why) = alike.stranger(&measure) {
                    let counted = alike.runs().iter().map(|id| ran.dir.with_file_name(id)).collect();
                    return Err(SweepError::OtherSetting { dir: ran.dir, why, counted });
                }
                alike.count(&measure);
                // With the start and the end of its process.
                self.measures.push((repeat, Measure { took: Some(ran.took), ..measure }));
            }
            Err(why) => self.fail(RunStatus::Failed, why),
        }
        Ok(())
    }

    /// Takes note of a run that an earlier process has made.
    pub fn take_earlier(&mut self, repeat: usize, measure: Measure) {
        match measure.status {
            RunStatus::Complete => self.measures.push((repeat, measure)),
            status => self.fail(status, measure.reason.unwrap_or_default()),
        }
    }

    /// Whether it fits is the same each time: one run that was out of memory outweighs all others.
    fn fail(&mut self, status: RunStatus, reason: String) {
        self.hopeless |= status == RunStatus::OutOfMemory;
        if self.failed.as_ref().is_none_or(|(known, _)| *known != RunStatus::OutOfMemory) {
            self.failed = Some((status, reason));
        }
    }

    /// How long a run of this cell takes: one that failed says nothing of that.
    fn typical(&self) -> Option<Duration> {
        mean(&self.measures.iter().filter_map(|(_, measure)| measure.took).collect::<Vec<_>>())
    }

    /// Whether any of its runs has come to an end.
    pub fn any(&self) -> bool {
        !self.measures.is_empty() || self.failed.is_some()
    }

    /// How it stands with a cell that was to be run so many times, and why, if that is not well. A setting that was out of
    /// memory once is one that does not fit, though other runs of it came through.
    pub fn outcome(&self, repeats: usize) -> (RunStatus, Option<String>) {
        let made = self.measures.len();
        match &self.failed {
            Some((status, reason)) if made == 0 => (*status, Some(reason.clone())),
            Some((status, reason)) => {
                let word = status.as_str();
                let of_all = if *status == RunStatus::OutOfMemory { *status } else { RunStatus::Complete };
                (of_all, Some(format!("{made} of {repeats} runs; another one was {word}: {reason}")))
            }
            None if made == 0 => (RunStatus::Interrupted, Some("not run yet".to_owned())),
            None if made < repeats => (RunStatus::Complete, Some(format!("{made} of {repeats} runs so far"))),
            None => (RunStatus::Complete, None),
        }
    }
}

/// What the cells of these runs will take, if they take what they took before; those not run yet as long as the mean
/// of the others. `None` before the first run.
pub fn time_left(tried: &[Tried], cells: impl Iterator<Item = usize>) -> Option<Duration> {
    let typical: Vec<Option<Duration>> = tried.iter().map(Tried::typical).collect();
    let of_others = mean(&typical.iter().flatten().copied().collect::<Vec<_>>())?;
    Some(cells.map(|cell| typical[cell].unwrap_or(of_others)).sum())
}

fn mean(took: &[Duration]) -> Option<Duration> {
    Some(took.iter().sum::<Duration>() / u32::try_from(took.len()).ok().filter(|n| *n > 0)?)
}
