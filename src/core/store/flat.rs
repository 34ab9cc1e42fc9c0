//! The two records that are not flat, as the rows that are kept of them.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::Damage;
use super::schema::Stamp;
use crate::record::{
    ByCategory, Category, DeviceFacts, FailedAllocation, LedgerMoment, Machine, Moment, Phase, RunRow,
    RunStatus, SpanKind, StepPhases, Trace,
};

/// [`RunRow`] without the stamp's columns, the machine's and the device's fields beside the others, `config` and
/// `reference_rates` as text.
#[derive(Debug)]
pub(super) struct RunColumns {
    pub schema_version: i32,
    pub program: String,
    pub status: RunStatus,
    pub reason: Option<String>,
    pub started_at: DateTime<Utc>,
    pub finished_at: Option<DateTime<Utc>>,
    pub config: String,
    pub device: String,
    pub parameters: Option<i64>,
    pub trace: Trace,
    pub capacity_bytes: Option<i64>,
    pub oom_at_ns: Option<i64>,
    pub oom_asked_bytes: Option<i64>,
    pub oom_step: Option<i64>,
    pub oom_phase: Option<Phase>,
    pub oom_scope: Option<String>,
    pub oom_op: Option<String>,
    pub host: Option<String>,
    pub os: Option<String>,
    pub cpu: Option<String>,
    pub logical_cpus: Option<i64>,
    pub memory_bytes: Option<i64>,
    pub torch_threads: Option<i64>,
    pub device_name: Option<String>,
    pub compute_capability: Option<String>,
    pub multiprocessors: Option<i64>,
    pub device_memory_bytes: Option<i64>,
    pub device_free_bytes: Option<i64>,
    pub driver_version: Option<String>,
    pub cuda_driver_version: Option<String>,
    pub cuda_runtime_version: Option<String>,
    pub sm_clock_mhz: Option<i64>,
    pub memory_clock_mhz: Option<i64>,
    pub power_w: Option<f64>,
    pub power_limit_w: Option<f64>,
    pub allocator_settings: Option<String>,
    pub reference_rates: Option<String>,
    pub stepledger_version: String,
    pub torch_version: Option<String>,
    pub steps: Option<i64>,
    pub events: i64,
    pub dropped_events: i64,
    pub hook_ns_per_event: Option<f64>,
    pub missing: Vec<String>,
}

impl From<RunRow> for RunColumns {
    fn from(run: RunRow) -> Self {
        let Machine { host, os, cpu, logical_cpus, memory_bytes, torch_threads } = run.machine;
        let DeviceFacts {
            device_name,
            compute_capability,
            multiprocessors,
            device_memory_bytes,
            device_free_bytes,
            driver_version,
            cuda_driver_version,
            cuda_runtime_version,
            sm_clock_mhz,
            memory_clock_mhz,
            power_w,
            power_limit_w,
            allocator_settings,
        } = run.device_facts;
        let failed = run.out_of_memory;
        let failed = failed.as_ref();
        let text = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
        RunColumns {
            schema_version: run.schema_version,
            program: run.program,
            status: run.status,
            reason: run.reason,
            started_at: run.started_at,
            finished_at: run.finished_at,
            config: serde_json::Value::Object(run.config).to_string(),
            device: run.device,
            parameters: run.parameters,
            trace: run.trace,
            capacity_bytes: run.capacity_bytes,
            oom_at_ns: failed.map(|failed| failed.at_ns),
            oom_asked_bytes: failed.map(|failed| failed.asked_bytes),
            oom_step: failed.and_then(|failed| failed.step),
            oom_phase: failed.and_then(|failed| failed.phase),
            oom_scope: failed.and_then(|failed| text(&failed.scope)),
            oom_op: failed.and_then(|failed| text(&failed.op)),
            host,
            os,
            cpu,
            logical_cpus,
            memory_bytes,
            torch_threads,
            device_name,
            compute_capability,
            multiprocessors,
            device_memory_bytes,
            device_free_bytes,
            driver_version,
            cuda_driver_version,
            cuda_runtime_version,
            sm_clock_mhz,
            memory_clock_mhz,
            power_w,
            power_limit_w,
            allocator_settings,
            reference_rates: run.reference_rates.and_then(|rates| serde_json::to_string(&rates).ok()),
            stepledger_version: run.stepledger_version,
            torch_version: run.torch_version,
            steps: run.steps,
            events: run.events,
            dropped_events: run.dropped_events,
            hook_ns_per_event: run.hook_ns_per_event,
            missing: run.missing,
        }
    }
}

impl RunColumns {
    pub fn into_run(self, stamp: &Stamp) -> Result<RunRow, Damage> {
        let machine = Machine {
            host: self.host,
            os: self.os,
            cpu: self.cpu,
            logical_cpus: self.logical_cpus,
            memory_bytes: self.memory_bytes,
            torch_threads: self.torch_threads,
        };
        let device_facts = DeviceFacts {
            device_name: self.device_name,
            compute_capability: self.compute_capability,
            multiprocessors: self.multiprocessors,
            device_memory_bytes: self.device_memory_bytes,
            device_free_bytes: self.device_free_bytes,
            driver_version: self.driver_version,
            cuda_driver_version: self.cuda_driver_version,
            cuda_runtime_version: self.cuda_runtime_version,
            sm_clock_mhz: self.sm_clock_mhz,
            memory_clock_mhz: self.memory_clock_mhz,
            power_w: self.power_w,
            power_limit_w: self.power_limit_w,
            allocator_settings: self.allocator_settings,
        };
        let text = |text: Option<String>| text.map(Arc::from);
        let out_of_memory = self.oom_at_ns.zip(self.oom_asked_bytes).map(|(at_ns, asked_bytes)| {
            let (scope, op) = (text(self.oom_scope), text(self.oom_op));
            FailedAllocation { at_ns, asked_bytes, step: self.oom_step, phase: self.oom_phase, scope, op }
        });
        Ok(RunRow {
            schema_version: self.schema_version,
            run_id: stamp.run_id.to_string(),
            rank: stamp.rank,
            program: self.program,
            status: self.status,
            reason: self.reason,
            started_at: self.started_at,
            finished_at: self.finished_at,
            config: serde_json::from_str(&self.config)?,
            device: self.device,
            parameters: self.parameters,
            trace: self.trace,
            capacity_bytes: self.capacity_bytes,
            out_of_memory,
            machine,
            device_facts,
            reference_rates: self.reference_rates.as_deref().map(serde_json::from_str).transpose()?,
            stepledger_version: self.stepledger_version,
            torch_version: self.torch_version,
            steps: self.steps,
            events: self.events,
            dropped_events: self.dropped_events,
            hook_ns_per_event: self.hook_ns_per_event,
            missing: self.missing,
        })
    }
}

/// What a row of the `phases` table says of time alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhaseTime {
    pub step: i64,
    pub kind: SpanKind,
    pub phase: Phase,
    pub total_ns: i64,
}

impl<'a> FromIterator<&'a PhaseTime> for StepPhases {
    fn from_iter<T: IntoIterator<Item = &'a PhaseTime>>(rows: T) -> Self {
        StepPhases::of(rows.into_iter().map(|row| (row.step, row.kind, row.phase, row.total_ns)))
    }
}

/// One category of a [`LedgerMoment`].
#[derive(Debug, Clone)]
pub(super) struct LedgerRow {
    pub step: i64,
    pub moment: Moment,
    pub category: Category,
    pub bytes: i64,
    pub at_ns: i64,
    pub allocator_bytes: i64,
}

/// A row for each category of `moment`, zero bytes included.
pub(super) fn spread(moment: LedgerMoment) -> impl Iterator<Item = LedgerRow> {
    let LedgerMoment { step, moment, at_ns, bytes, allocator_bytes } = moment;
    Category::ALL.iter().map(move |&category| LedgerRow {
        step,
        moment,
        category,
        bytes: bytes[category],
        at_ns,
        allocator_bytes,
    })
}

/// The inverse of [`spread`], for rows in any order: other tools may have sorted them.
pub(super) fn gather(rows: Vec<LedgerRow>) -> Vec<LedgerMoment> {
    let mut moments: Vec<LedgerMoment> = Vec::with_capacity(rows.len() / Category::ALL.len());
    let mut places = HashMap::new();
    for row in rows {
        let place = *places.entry((row.step, row.moment)).or_insert(moments.len());
        if place == moments.len() {
            moments.push(empty_moment(&row));
        }
        moments[place].bytes[row.category] = row.bytes;
    }
    moments
}

fn empty_moment(row: &LedgerRow) -> LedgerMoment {
    LedgerMoment {
        step: row.step,
        moment: row.moment,
        at_ns: row.at_ns,
        bytes: ByCategory::default(),
        allocator_bytes: row.allocator_bytes,
    }
}
