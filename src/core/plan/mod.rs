//! Which setting to train with, given a capacity: the largest batch that fits under each checkpointing policy, how
//! fast each would be, and which is best. Pure.
//!
//! What is known comes from measured runs (peak and step time are close to affine in the batch: a line for each
//! policy), from the toy models' closed forms, or from both; every number says which, and the two are never mixed in
//! one field.
//!
//! ```
//! # use stepledger_core as stepledger;
//! use stepledger::plan::{Request, plan};
//!
//! let config = serde_json::json!({
//!     "model": "gpt", "layers": 4, "width": 128, "heads": 4, "seq": 64, "batch": 8, "attention": "sdpa",
//! });
//! let request = Request::from_theory(config.as_object().unwrap().clone(), 64 << 20);
//! let plan = plan(&request)?;
//! let best = plan.best.unwrap();
//! assert_eq!((best.checkpoint.as_deref(), best.at.batch), (Some("none"), 24));
//! # Ok::<(), stepledger::plan::PlanError>(())
//! ```
#![forbid(unsafe_code)]

mod commands;
#[cfg(test)]
mod doubts;
mod error;
mod evidence;
mod fit;
mod flags;
mod lost;
mod making;
mod measured;
mod missing;
#[cfg(test)]
mod never_slower;
mod no_largest;
mod notes;
mod placement;
mod policy;
mod rank;
mod select;
mod step_time;
#[cfg(test)]
mod tests;
mod verified;

pub use error::{PlanError, RUNS_TOLD};
pub(crate) use error::{more_than_told, some_of};
pub use fit::{CONFIDENCE, FitQuality};
pub use flags::run_flags;
pub(crate) use making::CPU;
pub use making::{Base, CapacityFrom, Plan, Request, is_toy, plan};
pub use measured::{Measured, NotUsed};
pub use placement::{Placement, Segmented};
pub use policy::{AtBatch, Extrapolates, PolicyPlan, Source, TimeSource};
pub use rank::{Best, RankedBy, RunnerUp};
pub use select::first_used;
pub use verified::{Trial, Verified, trials};
