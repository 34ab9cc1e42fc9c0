//! Why a run tells no step time.

use super::step_times::StepSummary;

/// Why the steps that were measured do not tell how long one takes; `None` where none was.
pub fn why_no_time(step: &StepSummary) -> Option<&'static str> {
    (step.n > 0).then_some(match (step.uneven_steps, step.accumulates) {
        (1.., _) => {
            "the steps lie in cycles of many lengths, of accumulation or from one wait for the device to the next, and those of \
             no one length hold most of them"
        }
        (0, false) => {
            "it is known from one wait for the device to the next, and no such cycle lies within the measured steps. \
             Lower --sync-every, or measure more steps"
        }
        (0, true) => {
            "it is known over whole cycles of accumulation, from one wait for the device to another, and no such cycle lies within \
             the measured steps. Measure more steps"
        }
    })
}
