//! Seven pure functions that turn numbers into findings, and the record of an experiment.
//!
//! Each rule is a total function from values to a value or a [`RuleError`], in a file of its own, with its
//! formula, units, assumption and source. [`Rule`] is the list of them and applies them to JSON. Nothing here
//! prints, measures, or reads a file.
//!
//! The lines the rules draw ([`Thresholds`]) are teaching heuristics: they say where to look first, not what
//! is wrong.
//!
//! ```
//! # use stepledger_core as stepledger;
//! use stepledger::rules::{StepMetrics, Thresholds, Zone, summarize_step_metrics};
//!
//! let step = StepMetrics { step_ms: 180.0, tokens: 360.0, gpu_busy_pct: 42.0, cpu_wait_ms: 55.0 };
//! let summary = summarize_step_metrics(&step, &Thresholds::default())?;
//! assert_eq!(summary.throughput_tok_s, 2000.0);
//! assert_eq!(summary.zone, Zone::LikelyInputOrSyncBound);
//! # Ok::<(), stepledger::rules::RuleError>(())
//! ```
#![forbid(unsafe_code)]

mod attribute_bottleneck;
mod build_discrimination_experiment;
mod choose_next_validation;
mod derive_resource_metrics;
mod error;
mod experiment;
mod field;
mod input;
mod memory_ledger;
mod object;
mod registry;
mod round;
mod sentences;
mod summarize_step_metrics;
mod thresholds;
mod top_hotspots;
mod unreadable;

pub use attribute_bottleneck::{
    Attribution, BottleneckInput, Bound, Consistency, Hypothesis, References, attribute_bottleneck,
};
pub use build_discrimination_experiment::{DiscriminationExperiment, build_discrimination_experiment};
pub use choose_next_validation::{NextValidation, Situation, Validation, choose_next_validation};
pub use derive_resource_metrics::{
    ExposedShare, ResourceMetrics, ResourceRecord, TIME_MODEL, derive_resource_metrics,
};
pub use error::RuleError;
pub use experiment::{Evidence, ExperimentError, ExperimentRecord, ResultField, Variable, differences};
pub use field::{Field, Kind, Range};
pub use memory_ledger::{Component, LedgerInput, MemoryCheck, MemoryLedger, SharesPct, memory_ledger};
pub use registry::{Answer, Rule, Spec};
pub use sentences::Lang;
pub use summarize_step_metrics::{NextCheck, StepMetrics, StepSummary, Zone, summarize_step_metrics};
pub use thresholds::{
    CPU_WAIT_MS, EFFICIENCY_SCREEN, LOW_BUSY_PCT, RECHECK_EFFICIENCY, SLOW_STEP_MS, StepThresholds,
    Threshold, Thresholds, WAITING_BUSY_PCT,
};
pub use top_hotspots::{Event, Hotspot, top_hotspots};
