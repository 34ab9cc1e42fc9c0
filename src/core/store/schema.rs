//! The tables, a line for each column: name and Rust type, from which schema, writing and reading follow.
//!
//! Which Rust type is which column type stands in `cell.rs`, what each column means in `SCHEMA.md`; a test
//! compares that page with the files. Every table begins with the [`Stamp`]'s columns, `run_id` and `rank`.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, Field};
use chrono::{DateTime, Utc};

use super::Damage;
use super::StepGlance;
use super::cell::{decode, encode, field};
use super::flat::{LedgerRow, PhaseTime, RunColumns};
use crate::record::{
    AllocationRow, Category, Detail, EvidenceLevel, ExperimentRow, Moment, Phase, PhaseRow, RunRow,
    RunStatus, SpanKind, StepRow, SweepRow, Trace,
};

/// A row type with the table it is a row of.
pub(super) trait Table: Sized {
    /// What the table's files are called, up to the part's number.
    const NAME: &'static str;
    const COLUMNS: &'static [&'static str];

    fn fields() -> Vec<Field>;
    fn columns<'a>(rows: impl Iterator<Item = &'a Self> + Clone) -> Result<Vec<ArrayRef>, ArrowError>
    where
        Self: 'a;
    /// Goes by column names, and so past columns it does not know.
    fn rows(batch: &RecordBatch) -> Result<Vec<Self>, Damage>;
}

/// Whose rows they are: the columns that every table begins with.
#[derive(Debug, Clone)]
pub(super) struct Stamp {
    pub run_id: Arc<str>,
    pub rank: i32,
}

impl Stamp {
    pub fn of(run: &RunRow) -> Self {
        Stamp { run_id: run.run_id.as_str().into(), rank: run.rank }
    }
}

macro_rules! table {
    ($name:literal, $row:ident { $($column:ident: $cell:ty),+ $(,)? }) => {
        impl Table for $row {
            const NAME: &'static str = $name;
            const COLUMNS: &'static [&'static str] = &[$(stringify!($column),)+];

            fn fields() -> Vec<Field> {
                vec![$(field::<$cell>(stringify!($column)),)+]
            }

            fn columns<'a>(rows: impl Iterator<Item = &'a Self> + Clone) -> Result<Vec<ArrayRef>, ArrowError> {
                Ok(vec![$(encode::<$cell>(rows.clone().map(|row| &row.$column))?,)+])
            }

            fn rows(batch: &RecordBatch) -> Result<Vec<Self>, Damage> {
                $(let mut $column = decode::<$cell>(batch, stringify!($column))?;)+
                Ok((0..batch.num_rows()).map_while(|_| Some($row { $($column: $column.next()?,)+ })).collect())
            }
        }
    };
}

table! { "stamp", Stamp {
    run_id: Arc<str>,
    rank: i32,
} }

table! { "run", RunColumns {
    schema_version: i32,
    program: String,
    status: RunStatus,
    reason: Option<String>,
    started_at: DateTime<Utc>,
    finished_at: Option<DateTime<Utc>>,
    config: String,
    device: String,
    parameters: Option<i64>,
    trace: Trace,
    capacity_bytes: Option<i64>,
    oom_at_ns: Option<i64>,
    oom_asked_bytes: Option<i64>,
    oom_step: Option<i64>,
    oom_phase: Option<Phase>,
    oom_scope: Option<String>,
    oom_op: Option<String>,
    host: Option<String>,
    os: Option<String>,
    cpu: Option<String>,
    logical_cpus: Option<i64>,
    memory_bytes: Option<i64>,
    torch_threads: Option<i64>,
    device_name: Option<String>,
    compute_capability: Option<String>,
    multiprocessors: Option<i64>,
    device_memory_bytes: Option<i64>,
    device_free_bytes: Option<i64>,
    driver_version: Option<String>,
    cuda_driver_version: Option<String>,
    cuda_runtime_version: Option<String>,
    sm_clock_mhz: Option<i64>,
    memory_clock_mhz: Option<i64>,
    power_w: Option<f64>,
    power_limit_w: Option<f64>,
    allocator_settings: Option<String>,
    reference_rates: Option<String>,
    stepledger_version: String,
    torch_version: Option<String>,
    steps: Option<i64>,
    events: i64,
    dropped_events: i64,
    hook_ns_per_event: Option<f64>,
    missing: Vec<String>,
} }

table! { "steps", StepRow {
    step: i64,
    warmup: bool,
    started_at: DateTime<Utc>,
    wall_ns: i64,
    loss: Option<f64>,
    tokens: Option<i64>,
    device_busy_pct: Option<f64>,
    cpu_wait_ns: Option<i64>,
    events: i64,
    dropped_events: i64,
    peak_bytes: Option<i64>,
    peak_phase: Option<Phase>,
    difference_bytes: Option<i64>,
    observer_ns: i64,
    rounding_bytes: Option<i64>,
    cached_bytes: Option<i64>,
    non_torch_bytes: Option<i64>,
    transfer_ns: Option<i64>,
    sync_ns: Option<i64>,
    launch_ns: Option<i64>,
    lead_ns: Option<i64>,
    optimizer_calls: Option<i64>,
} }

// Some columns of the same table.
table! { "steps", StepGlance {
    step: i64,
    warmup: bool,
    started_at: DateTime<Utc>,
    wall_ns: i64,
    lead_ns: Option<i64>,
    optimizer_calls: Option<i64>,
    loss: Option<f64>,
    tokens: Option<i64>,
    peak_bytes: Option<i64>,
} }

table! { "phases", PhaseRow {
    step: i64,
    kind: SpanKind,
    phase: Phase,
    name: Arc<str>,
    parent: Option<Arc<str>>,
    calls: i64,
    begin_ns: Option<i64>,
    total_ns: i64,
    device_ns: Option<i64>,
    lead_ns: Option<i64>,
} }

// The columns of `phases` that add up to the step, for those who read many runs.
table! { "phases", PhaseTime {
    step: i64,
    kind: SpanKind,
    phase: Phase,
    total_ns: i64,
} }

table! { "sweep", SweepRow {
    cell: i64,
    batch: Option<i64>,
    checkpoint: Option<String>,
    accumulate: Option<i64>,
    dtype: Option<String>,
    attention: Option<String>,
    adamw: Option<String>,
    seq: Option<i64>,
    status: RunStatus,
    reason: Option<String>,
    repeats: i64,
    runs: Vec<String>,
    step_ms: Option<f64>,
    step_ms_low: Option<f64>,
    step_ms_high: Option<f64>,
    tokens_per_s: Option<f64>,
    tokens_per_s_low: Option<f64>,
    tokens_per_s_high: Option<f64>,
    peak_bytes: Option<i64>,
    activation_bytes: Option<i64>,
    recompute_pct: Option<f64>,
    capacity_bytes: Option<i64>,
    fits: Option<bool>,
    pareto: bool,
    evidence: Option<EvidenceLevel>,
    why: Option<String>,
} }

table! { "experiments", ExperimentRow {
    recorded_at: DateTime<Utc>,
    baseline_run_id: String,
    baseline_config: String,
    variable: String,
    baseline_value: Option<String>,
    changed_value: Option<String>,
    result: String,
    baseline: f64,
    changed: f64,
    change: f64,
    change_pct: Option<f64>,
    evidence: EvidenceLevel,
    why: String,
} }

table! { "ledger", LedgerRow {
    step: i64,
    moment: Moment,
    category: Category,
    bytes: i64,
    at_ns: i64,
    allocator_bytes: i64,
} }

table! { "allocations", AllocationRow {
    step: Option<i64>,
    id: i64,
    bytes: i64,
    category: Category,
    detail: Option<Detail>,
    name: Option<Arc<str>>,
    phase: Option<Phase>,
    scope: Option<Arc<str>>,
    op: Option<Arc<str>>,
    thread: i32,
    at_ns: i64,
    freed_ns: Option<i64>,
    freed_step: Option<i64>,
    freed_phase: Option<Phase>,
} }
