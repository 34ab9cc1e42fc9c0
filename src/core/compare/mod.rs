//! Two sides of runs, compared: is the candidate faster, and what else became of it?
//!
//! The unit is a run of a process. [`read_sides`] reads the runs of both sides a few at a time and keeps a few
//! numbers of each ([`Repeat`]); [`compare`] pairs them in the order in which they started and judges the
//! pairs by the method of [`stats`](crate::stats); a [`Condition`] makes a gate of the result.
#![forbid(unsafe_code)]

mod comparison;
mod error;
mod gate;
mod losses;
#[cfg(test)]
pub(crate) mod made_up;
mod margin;
mod memory;
mod metrics;
mod noise;
mod notes;
mod pairing;
mod pct;
mod read;
mod repeat;
mod schedule;
mod setting;
mod side;
#[cfg(test)]
mod simulation;
mod sound;
mod step_size;
mod verdict;

pub use comparison::{Comparison, Repeats, compare};
pub use error::{CompareError, Unusable};
pub use gate::{Condition, ConditionError, GateOutcome, Judged, judge};
pub use losses::LossesCompared;
pub use margin::{Margin, MarginSource};
pub use memory::{CategoryBytes, MEASURED_AT};
pub use metrics::{Metric, SideTails};
pub use noise::{NoNoise, noise, shows_noise};
pub use pct::{range_pct, signed_pct};
pub use read::{Found, find, read_side, read_sides, read_tables};
pub use repeat::{MOST_OVERHEAD, Repeat, RunTables, peak_step};
pub use setting::{Difference, FieldKind};
pub(crate) use setting::{differing, setting};
pub use side::{LeftOut, Side};
pub use verdict::{Decision, Quantity, Verdict};
