//! Where in the run the stream is.

use super::event::{Event, kind};
use crate::record::Phase;

/// Where in the run something happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// `None` before, between and after the steps.
    pub step: Option<i64>,
    /// `None` between the steps, but for validation; [`Phase::Other`] inside one but outside its phases.
    pub phase: Option<Phase>,
    /// How many parts of forward backward is running again, one within the other.
    pub recomputing: u8,
    /// Counts the phases of the run and the gaps between them, so that two forwards of one step can be
    /// told apart.
    pub turn: u32,
}

impl Place {
    /// Before the first step.
    pub const START: Place = Place { step: None, phase: None, recomputing: 0, turn: 0 };

    /// Where the run is once `event` has happened; only boundaries move it.
    pub fn after(self, event: &Event) -> Place {
        let (step, phase, recomputing) = match event.kind {
            kind::STEP_BEGIN => (Some(event.id as i64), Some(Phase::Other), 0),
            kind::STEP_END | kind::STEP_LEFT => (None, None, 0),
            kind::PHASE_BEGIN => (self.step, Phase::ALL.get(event.id as usize).copied(), 0),
            kind::PHASE_END => (self.step, self.step.map(|_| Phase::Other), 0),
            kind::RECOMPUTE_BEGIN => (self.step, self.phase, self.recomputing.saturating_add(1)),
            kind::RECOMPUTE_END => (self.step, self.phase, self.recomputing.saturating_sub(1)),
            _ => return self,
        };
        Place { step, phase, recomputing, turn: self.turn.wrapping_add(1) }
    }
}
