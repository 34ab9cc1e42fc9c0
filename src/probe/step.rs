//! One training step under instruments.

use super::error::ProbeError;
use super::session::{EndedStep, Probe, in_phase};
use crate::record::Phase;

/// A step in progress. Run its parts through the phase methods; what runs outside them is `other`.
#[must_use = "a step is recorded by `finish`"]
pub struct Step<'probe> {
    probe: &'probe mut Probe,
    step: i64,
    begin_ns: i64,
    outcome: Result<(), ProbeError>,
    finished: bool,
}

/// What a finished step looked like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepSummary {
    pub step: i64,
    pub wall_ns: i64,
    pub loss: Option<f64>,
    pub tokens: Option<i64>,
}

impl<'probe> Step<'probe> {
    /// `outcome` is what has gone wrong so far; [`Step::finish`] tells it.
    pub(super) fn new(
        probe: &'probe mut Probe,
        step: i64,
        begin_ns: i64,
        outcome: Result<(), ProbeError>,
    ) -> Self {
        Step { probe, step, begin_ns, outcome, finished: false }
    }

    /// The step's number: the first is 0, warm-up included.
    pub fn number(&self) -> i64 {
        self.step
    }

    /// Waits for (or makes) the batch: what is made here and outlives it is `input`.
    pub fn dataloader<T>(&mut self, work: impl FnOnce() -> T) -> T {
        self.phase(Phase::Dataloader, work)
    }

    /// Computes the loss. Drop what backward does not need inside `work`, or it counts as kept output.
    pub fn forward<T>(&mut self, work: impl FnOnce() -> T) -> T {
        self.phase(Phase::Forward, work)
    }

    /// Computes gradients.
    pub fn backward<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let made = self.phase(Phase::Backward, work);
        // Now, since the loop may drop its gradients before the step ends.
        let identified = self.probe.identify_meanwhile();
        if self.outcome.is_ok() {
            self.outcome = identified;
        }
        made
    }

    /// Applies the gradients: what is made here and outlives the step is `adam_state`.
    pub fn optimizer<T>(&mut self, work: impl FnOnce() -> T) -> T {
        self.phase(Phase::Optimizer, work)
    }

    /// Exchanges data with other processes.
    pub fn communication<T>(&mut self, work: impl FnOnce() -> T) -> T {
        self.phase(Phase::Communication, work)
    }

    fn phase<T>(&mut self, phase: Phase, work: impl FnOnce() -> T) -> T {
        let depth = self.probe.spans.borrow_mut().enter_phase(phase);
        in_phase(&self.probe.spans, phase, depth, work)
    }

    /// Ends the step and records it. `loss` and `tokens` are `None` where the loop has none to tell.
    ///
    /// # Errors
    /// When the records cannot be kept (a full disk, say), when the run could not be opened, or gradients cannot be named.
    /// The step has been made all the same, and its number is not given again.
    pub fn finish(
        mut self,
        loss: impl Into<Option<f64>>,
        tokens: impl Into<Option<i64>>,
    ) -> Result<StepSummary, ProbeError> {
        let Step { step, begin_ns, .. } = self;
        // A step that has no records is left, as `drop` does it.
        std::mem::replace(&mut self.outcome, Ok(()))?;
        let end_ns = self.probe.spans.borrow_mut().end_step(step);
        self.finished = true;
        let (loss, tokens) = (loss.into(), tokens.into());
        self.probe.record(EndedStep { step, begin_ns, end_ns, loss, tokens })?;
        Ok(StepSummary { step, wall_ns: end_ns - begin_ns, loss, tokens })
    }
}

impl Drop for Step<'_> {
    /// A step that is left by an error or a panic is not recorded as a step, but what its memory did is. Its number is not
    /// given again, so that it shows as missing.
    fn drop(&mut self) {
        if !self.finished {
            self.probe.leave_step(self.step);
        }
    }
}
