//! One struct for each table of the dataset, a field for each column.
//!
//! Units are in the names: `_ns` nanoseconds, `_bytes` bytes. `None` is an absent signal, never zero.
//! Adding, removing or redefining a field is a change of schema: raise [`SCHEMA_VERSION`](super::SCHEMA_VERSION).

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::{
    ByCategory, Category, Detail, DeviceFacts, EvidenceLevel, Moment, Phase, ReferenceRates, RunStatus,
    SpanKind, Trace,
};

/// `run.parquet`: the one row that says what ran, where, and how it ended.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRow {
    pub schema_version: i32,
    pub run_id: String,
    pub rank: i32,
    /// The program that was instrumented: `gpt`, `mlp`, or the name an embedding program gave.
    pub program: String,
    pub status: RunStatus,
    /// Why the run ended as it did, when it did not complete.
    pub reason: Option<String>,
    pub started_at: DateTime<Utc>,
    pub finished_at: Option<DateTime<Utc>>,
    /// The whole configuration, a JSON object.
    pub config: serde_json::Map<String, serde_json::Value>,
    pub device: String,
    /// Scalars of parameters, frozen ones too, tied ones once. `None` when no `VarStore` was watched.
    pub parameters: Option<i64>,
    pub trace: Trace,
    /// The limit that was put on the allocator; `None` where there was none but the device's memory.
    pub capacity_bytes: Option<i64>,
    /// The allocation that ended the run, where one did.
    pub out_of_memory: Option<FailedAllocation>,
    pub machine: Machine,
    pub device_facts: DeviceFacts,
    /// What the device can do at most, where that is known.
    pub reference_rates: Option<ReferenceRates>,
    pub stepledger_version: String,
    pub torch_version: Option<String>,
    /// Steps recorded, warm-up included; `None` while it goes on, of one that was killed, and in runs of earlier versions.
    pub steps: Option<i64>,
    /// Allocator events seen and, of those, lost because the buffer was full.
    pub events: i64,
    pub dropped_events: i64,
    /// Nanoseconds that recording one allocator event costs, measured when the run starts.
    pub hook_ns_per_event: Option<f64>,
    /// Signals this run could not give, each with its reason.
    pub missing: Vec<String>,
}

/// An allocation that could not be made.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct FailedAllocation {
    /// Nanoseconds since the run started.
    pub at_ns: i64,
    pub asked_bytes: i64,
    pub step: Option<i64>,
    pub phase: Option<Phase>,
    pub scope: Option<Arc<str>>,
    pub op: Option<Arc<str>>,
}

/// The machine a run was made on.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize)]
pub struct Machine {
    pub host: Option<String>,
    pub os: Option<String>,
    pub cpu: Option<String>,
    pub logical_cpus: Option<i64>,
    pub memory_bytes: Option<i64>,
    /// Threads libtorch computes with.
    pub torch_threads: Option<i64>,
}

impl Machine {
    /// All of its memory in bytes, as `/proc/meminfo` has it (in KiB).
    pub fn memory_in(meminfo: &str) -> Option<i64> {
        bytes_in(meminfo, "MemTotal:")
    }

    /// What of it programs can take without anything else being swapped out, in bytes, likewise.
    pub fn available_in(meminfo: &str) -> Option<i64> {
        bytes_in(meminfo, "MemAvailable:")
    }

    /// Its logical processors, as `/proc/cpuinfo` lists them: those too that a process may not run on (`taskset`), as they
    /// tell machines from each other.
    pub fn processors_in(cpuinfo: &str) -> Option<i64> {
        let names = cpuinfo.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim());
        Some(names.filter(|name| *name == "processor").count() as i64).filter(|count| *count > 0)
    }
}

fn bytes_in(meminfo: &str, field: &str) -> Option<i64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(field))?;
    let kib: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// `steps-NNNN.parquet`: one row a step.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StepRow {
    pub step: i64,
    /// Warm-up steps come before the measured ones and are left out of every statistic.
    pub warmup: bool,
    pub started_at: DateTime<Utc>,
    /// From the step's first instant to its last; its phases and `other` add up to it exactly.
    pub wall_ns: i64,
    pub loss: Option<f64>,
    pub tokens: Option<i64>,
    /// The share of `wall_ns` that the device computed. On a CPU: that of forward, backward and optimizer. On a GPU an
    /// upper bound, since gaps between the kernels of a phase are not seen; `None` where the device was not timed.
    pub device_busy_pct: Option<f64>,
    /// What the training thread waited for data or synchronisation. On a CPU: the dataloader phase.
    pub cpu_wait_ns: Option<i64>,
    /// Allocator events of the step and of the time before it, and those lost.
    pub events: i64,
    pub dropped_events: i64,
    /// The step's highest total. `None` when memory was not traced.
    pub peak_bytes: Option<i64>,
    pub peak_phase: Option<Phase>,
    /// The largest difference, at any event of the step, between the allocator's own total and the
    /// sum of the categories without `unattributed`. 0 is the proof that nothing was lost.
    pub difference_bytes: Option<i64>,
    /// What the observer spent on the training thread: within this step (in its `other`) looking up gradients after each
    /// backward, where many events come making room for more, and after its end reading events, filing them.
    /// Small steps are filed several at a time, and the last of them has the cost of all.
    pub observer_ns: i64,
    /// What a caching allocator's blocks were larger than was asked for, at the step's end. It is in the
    /// ledger too, as workspace. This and the two below are `None` on a CPU, which has no such allocator.
    pub rounding_bytes: Option<i64>,
    /// Reserved by the caching allocator, but in no block that is in use.
    pub cached_bytes: Option<i64>,
    /// Of the device's memory, what the caching allocator has not reserved and is not free either: the
    /// context, communication libraries, other processes. Asked for after the first step and before each flush,
    /// `None` after the others: the driver takes its time to tell.
    pub non_torch_bytes: Option<i64>,
    /// Exposed times: the parts of the step in which a batch was copied while the device did not compute, in which
    /// the training thread waited for a device that neither computed nor copied, and in which the device had got
    /// through one phase and was not given the next, and none of these went on: the last one a lower bound, and
    /// the ends of each interval known to 0.1 ms. `None` on a CPU, and where it cannot be known.
    pub transfer_ns: Option<i64>,
    pub sync_ns: Option<i64>,
    pub launch_ns: Option<i64>,
    /// How far the host had run ahead of the device as the step ended: until the device was through with all that it had been
    /// given in it, to 0.1 ms; 0 where it was through before. `None` on a CPU, and where it cannot be known.
    pub lead_ns: Option<i64>,
    /// How often the optimizer phase was entered: 0 in a step that only accumulates gradients. `None` in runs of earlier
    /// versions.
    pub optimizer_calls: Option<i64>,
}

/// `phases-NNNN.parquet`: one row for each phase and scope of a step, and of what ran between steps: that has
/// the number of the step that comes next.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseRow {
    pub step: i64,
    pub kind: SpanKind,
    /// The phase itself, or the one the scope ran in.
    pub phase: Phase,
    /// The phase's own name, or the scope's dotted path such as `h.0.attn`.
    pub name: Arc<str>,
    /// The enclosing scope, for a nested one.
    pub parent: Option<Arc<str>>,
    pub calls: i64,
    /// When a phase began, its first call, in nanoseconds since the run started; `None` for what is no phase.
    pub begin_ns: Option<i64>,
    pub total_ns: i64,
    /// On the device's own clock; `None` where there is none.
    pub device_ns: Option<i64>,
    /// How far the host had run ahead when the last call ended: until the device got there, to 0.1 ms, which is how exactly
    /// the two clocks are laid on each other. `None` for what is nested in a phase, and where there is no such clock.
    pub lead_ns: Option<i64>,
}

/// `allocations-….parquet`: one row a lifetime.
#[derive(Debug, Clone, PartialEq)]
pub struct AllocationRow {
    /// Unique within a run, in order of birth.
    pub id: i64,
    /// The step it was made in; `None` before, between and after the steps.
    pub step: Option<i64>,
    /// Bytes asked for.
    pub bytes: i64,
    pub category: Category,
    pub detail: Option<Detail>,
    /// The variable it belongs to, where it is known.
    pub name: Option<Arc<str>>,
    pub phase: Option<Phase>,
    pub scope: Option<Arc<str>>,
    /// The outermost operator it was made in, or the node of the backward graph; `None` where operators were
    /// not traced.
    pub op: Option<Arc<str>>,
    /// A small number for the thread that made it; 0 is the training thread.
    pub thread: i32,
    /// Nanoseconds since the run started.
    pub at_ns: i64,
    /// `None` while it lives.
    pub freed_ns: Option<i64>,
    pub freed_step: Option<i64>,
    pub freed_phase: Option<Phase>,
}

/// One moment of one step: `ledger-NNNN.parquet` has a row of it for each category.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LedgerMoment {
    pub step: i64,
    pub moment: Moment,
    /// Nanoseconds since the run started.
    pub at_ns: i64,
    pub bytes: ByCategory,
    /// The allocator's own total at that instant.
    pub allocator_bytes: i64,
}

impl LedgerMoment {
    /// What of the allocator's total the categories do not explain. `unattributed` is no explanation, though it makes
    /// the sum of all categories come out even.
    pub fn difference_bytes(&self) -> i64 {
        self.allocator_bytes - self.bytes.attributed()
    }
}

/// `experiments-NNNN.parquet`: one row for each result of an experiment of one variable. The run it lies with
/// (`run_id`) is the one with the change.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ExperimentRow {
    #[serde(serialize_with = "rfc3339")]
    pub recorded_at: DateTime<Utc>,
    pub baseline_run_id: String,
    /// The whole configuration before the change, a JSON object.
    pub baseline_config: String,
    /// The one field that was changed, and its two values as JSON; `None` where a configuration lacks it.
    pub variable: String,
    pub baseline_value: Option<String>,
    pub changed_value: Option<String>,
    /// The result's name with its unit, such as `step_ms`.
    pub result: String,
    pub baseline: f64,
    pub changed: f64,
    pub change: f64,
    /// Of the baseline's size; `None` where that is 0.
    pub change_pct: Option<f64>,
    pub evidence: EvidenceLevel,
    /// Why the evidence is worth that much and no more.
    pub why: String,
}

/// `sweep-NNNN.parquet`, in a sweep's folder: one row a cell of its grid. `run_id` is that of the sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepRow {
    /// From 1, in the order of the grid.
    pub cell: i64,
    /// The settings that a grid can vary, varied or not; `None` where no run of the cell could say.
    pub batch: Option<i64>,
    pub checkpoint: Option<String>,
    pub accumulate: Option<i64>,
    pub dtype: Option<String>,
    pub attention: Option<String>,
    pub adamw: Option<String>,
    pub seq: Option<i64>,
    pub status: RunStatus,
    /// Why it has no measurement, or not as many as asked for.
    pub reason: Option<String>,
    /// How many runs were asked for, and the ids of those that were measured.
    pub repeats: i64,
    pub runs: Vec<String>,
    /// The geometric mean over its runs, with Student's 95 % interval; one run has none.
    pub step_ms: Option<f64>,
    pub step_ms_low: Option<f64>,
    pub step_ms_high: Option<f64>,
    pub tokens_per_s: Option<f64>,
    pub tokens_per_s_low: Option<f64>,
    pub tokens_per_s_high: Option<f64>,
    pub peak_bytes: Option<i64>,
    pub activation_bytes: Option<i64>,
    /// Of the step's time.
    pub recompute_pct: Option<f64>,
    pub capacity_bytes: Option<i64>,
    pub fits: Option<bool>,
    /// No other cell has more tokens/s at no higher a peak.
    pub pareto: bool,
    pub evidence: Option<EvidenceLevel>,
    pub why: Option<String>,
}

/// An instant as JSON has it: `2026-01-31T12:00:00Z`.
fn rfc3339<S: serde::Serializer>(instant: &DateTime<Utc>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&instant.to_rfc3339_opts(chrono::SecondsFormat::Secs, true))
}
