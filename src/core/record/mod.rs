//! What a run leaves behind, as plain values: words, rows, units. Knows no torch, no Parquet, no printing.

#![forbid(unsafe_code)]

mod bytes;
mod device;
mod files;
mod ids;
pub(crate) mod instant;
mod lacking;
mod number;
mod rates;
mod recency;
mod rows;
mod shell;
mod sink;
mod step_spans;
mod words;

pub use bytes::ByCategory;
pub use device::DeviceFacts;
pub use files::{FILES, by_content, content_field, file_of};
pub use ids::{id_tail, id_time};
pub use lacking::{INCOMPLETE, LackingSteps};
pub(crate) use number::three_digits;
pub use number::{bytes, count};
pub use rates::{
    ARRAY_PART_OF_MEMORY, Datasheet, DeviceRates, MOST_ARRAY_BYTES, MeasuredRate, ReferenceRates,
    beyond_caches_bytes,
};
pub use recency::Recency;
pub use rows::{
    AllocationRow, ExperimentRow, FailedAllocation, LedgerMoment, Machine, PhaseRow, RunRow, StepRow,
    SweepRow,
};
pub use shell::shell_word;
pub use sink::{BetweenRecords, MANY_LIFETIMES, Sink, SinkError, StepRecords};
pub use step_spans::{StepPhases, StepTiming};
pub use words::{
    Category, Detail, EvidenceLevel, Moment, Phase, RECOMPUTE, RunStatus, SpanKind, Trace, UnknownWord,
};

pub(crate) use words::words;

/// The version of the dataset's tables that this build writes. Raise it with every change of
/// [`RunRow`], [`StepRow`], [`PhaseRow`], [`AllocationRow`], [`LedgerMoment`] or [`ExperimentRow`].
pub const SCHEMA_VERSION: i32 = 4;
