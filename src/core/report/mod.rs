//! What a run says: one summary of values, and that summary as text.
#![forbid(unsafe_code)]

mod by_scope;
mod creep;
mod experiment;
mod findings;
mod homes;
mod ledger;
mod out_of_memory;
mod peak;
mod phase_spans;
mod phases;
mod scope_times;
mod scope_tree;
mod step_memory;
mod summary;
mod tables;
mod text;
mod text_by_scope;
mod text_compare;
mod text_findings;
mod text_out_of_memory;
mod text_peak;
mod text_timeline;
mod timeline;
mod units;

pub use by_scope::{ByScope, Cells, ScopeRow, by_scope};
pub use creep::{Blame, MemoryCreep, creep_instant};
pub use experiment::experiment;
pub use findings::{Abstention, Asked, Findings, HEAVY_COMMUNICATION_PCT, LedgerLine, StepFinding, find};
pub use ledger::{MomentSummary, PeakPart};
pub use peak::{NoScope, PeakBlock, PeakScope, PeakView, peak_view};
pub use phase_spans::PhaseSpan;
pub use phases::PhaseSummary;
pub use step_memory::{NoView, Reconciliation, StepMemory, StepSpan, memory_step};
pub use summary::{Account, NoSuchStep, StepSummary, Summary, peak_instant, summarize};
pub use text::render;
pub use text_by_scope::render_by_scope;
pub use text_compare::render_comparison;
pub use text_findings::{render_experiment, render_findings};
pub use text_peak::render_peak;
pub use text_timeline::render_timeline;
pub use timeline::{Change, Timeline, timeline};
