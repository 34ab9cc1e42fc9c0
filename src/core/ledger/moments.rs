//! The instants of a step at which the ledger is read.

use crate::record::{ByCategory, LedgerMoment, Moment, Phase};

/// Collects a step's moments while its events are replayed.
#[derive(Debug)]
pub struct Moments {
    step: i64,
    /// The last end of each phase: a step of several micro-batches has several.
    ends: [Option<LedgerMoment>; Phase::ALL.len()],
    peaks: [Option<LedgerMoment>; Phase::ALL.len()],
    failure: Option<LedgerMoment>,
}

/// The account's state at one instant.
#[derive(Debug, Clone, Copy)]
pub struct State {
    pub at_ns: i64,
    pub bytes: ByCategory,
    pub allocator_bytes: i64,
}

impl Moments {
    pub fn new(step: i64) -> Self {
        Moments { step, ends: Default::default(), peaks: Default::default(), failure: None }
    }

    /// Takes note of the state while `phase` runs.
    pub fn observe(&mut self, phase: Phase, state: &State) {
        let peak = &mut self.peaks[phase as usize];
        // The categories add up to the allocator's total at every event.
        if peak.is_none_or(|peak| state.allocator_bytes > peak.allocator_bytes) {
            // The kind of moment is put right when the step is over.
            *peak = Some(row(self.step, Moment::Peak, state));
        }
    }

    /// Takes note of the state as `phase` ends.
    pub fn end(&mut self, phase: Phase, state: &State) {
        if let Some(moment) = Moment::end_of(phase) {
            self.ends[phase as usize] = Some(row(self.step, moment, state));
        }
    }

    /// Takes note of the state as an allocation fails; the last one counts.
    pub fn fail(&mut self, state: &State) {
        self.failure = Some(row(self.step, Moment::OutOfMemory, state));
    }

    /// The step's highest total and the phase it fell into; the first instant wins a tie.
    pub fn peak(&self) -> Option<(Phase, LedgerMoment)> {
        let mut peaks: Vec<_> = Phase::ALL
            .iter()
            .filter(|&&phase| phase != Phase::Validation)
            .filter_map(|&phase| self.peaks[phase as usize].map(|peak| (phase, peak)))
            .collect();
        peaks.sort_by_key(|(_, peak)| (-peak.allocator_bytes, peak.at_ns));
        peaks.first().copied()
    }

    /// All moments, in the order of [`Moment::ALL`].
    pub fn into_rows(self) -> Vec<LedgerMoment> {
        let ends = self.ends.iter().copied().flatten();
        let peak = self.peak().map(|(_, peak)| peak);
        let phase_peaks = Phase::ALL.iter().filter_map(|&phase| {
            Some(LedgerMoment { moment: Moment::peak_of(phase)?, ..self.peaks[phase as usize]? })
        });
        ends.chain(peak).chain(phase_peaks).chain(self.failure).collect()
    }
}

fn row(step: i64, moment: Moment, state: &State) -> LedgerMoment {
    let State { at_ns, bytes, allocator_bytes } = *state;
    LedgerMoment { step, moment, at_ns, bytes, allocator_bytes }
}
