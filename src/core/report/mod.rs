//! What a run says: one summary of values, and that summary as text.
#![forbid(unsafe_code)]

mod experiment;
mod findings;
mod ledger;
mod phases;
mod summary;
mod tables;
mod text;
mod text_findings;
mod units;

pub use experiment::experiment;
pub use findings::{Abstention, Asked, Findings, HEAVY_COMMUNICATION_PCT, LedgerLine, StepFinding, find};
pub use ledger::{MomentSummary, PeakPart};
pub use phases::PhaseSummary;
pub use summary::{Account, NoSuchStep, StepSummary, Summary, peak_instant, summarize};
pub use text::render;
pub use text_findings::{render_experiment, render_findings};
