//! What a run says: one summary of values, and that summary as text.
#![forbid(unsafe_code)]

mod ledger;
mod phases;
mod summary;
mod text;
mod units;

pub use ledger::{MomentSummary, PeakPart};
pub use phases::PhaseSummary;
pub use summary::{Account, NoSuchStep, StepSummary, Summary, summarize};
pub use text::render;
