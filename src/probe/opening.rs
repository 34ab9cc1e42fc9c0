//! What is known of a run before its first step.

use chrono::{DateTime, Utc};
use tch::Device;

use super::hook;
use super::machine::machine;
use super::options::Options;
use super::timing::device_facts;
use crate::record::{DeviceFacts, RunRow, RunStatus, SCHEMA_VERSION, Trace, id_tail, id_time};

/// The run's row as it begins.
pub fn opening_row(options: &Options, hook_ns_per_event: Option<f64>) -> RunRow {
    let started_at = Utc::now();
    let (device_facts, untold) = facts(options.device);
    RunRow {
        schema_version: SCHEMA_VERSION,
        run_id: options.run_id.clone().unwrap_or_else(|| new_run_id(&options.program, started_at)),
        rank: 0,
        program: options.program.clone(),
        status: RunStatus::Running,
        reason: None,
        started_at,
        finished_at: None,
        config: options.config.clone(),
        device: device_name(options.device),
        parameters: None,
        trace: options.trace,
        capacity_bytes: options.limit_bytes,
        out_of_memory: None,
        machine: machine(),
        device_facts,
        reference_rates: options.reference_rates.clone(),
        stepledger_version: env!("CARGO_PKG_VERSION").to_owned(),
        torch_version: Some(hook::torch_version()),
        steps: None,
        events: 0,
        dropped_events: 0,
        hook_ns_per_event,
        missing: missing_from_the_start(options).into_iter().chain(untold).collect(),
    }
}

/// What is known of the device, and what of it is missing.
fn facts(device: Device) -> (DeviceFacts, Vec<String>) {
    let Device::Cuda(ordinal) = device else { return Default::default() };
    device_facts(ordinal as i32)
        .unwrap_or_else(|error| (DeviceFacts::default(), vec![format!("facts of the device: {error}")]))
}

fn missing_from_the_start(options: &Options) -> Vec<String> {
    let mut missing = Vec::new();
    if options.trace == Trace::Phases {
        missing.push("memory: not traced (trace depth `phases`)".to_owned());
    }
    match options.device {
        Device::Cpu => missing.push(ON_A_CPU.to_owned()),
        _ => missing.extend(ON_A_GPU.map(str::to_owned)),
    }
    if options.trace == Trace::Allocations {
        missing.push("operators, and backward by scope: not traced (trace depth `ops` does)".to_owned());
    }
    missing
}

const ON_A_CPU: &str =
    "device_ns, lead_ns, transfer_ns, sync_ns, launch_ns: a CPU has no clock beside the host's";

const ON_A_GPU: [&str; 3] = [
    "host memory: the account is that of the device",
    "launch_ns: without CUPTI it is a lower bound: the device waiting for the host between two phases is seen, between \
     the kernels of one it is not",
    "device_busy_pct: without CUPTI it is an upper bound: forward, backward and optimizer from their first instant on the \
     device to their last, with the gaps between kernels",
];

/// Sorts by time; the tail tells apart runs that start in the same second.
fn new_run_id(program: &str, started_at: DateTime<Utc>) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let program: String = program.chars().map(plain).collect();
    let tail = id_tail(started_at, std::process::id());
    format!("{}-{program}-{tail}", id_time(started_at))
}

fn device_name(device: Device) -> String {
    match device {
        Device::Cuda(ordinal) => format!("cuda:{ordinal}"),
        _ => "cpu".to_owned(),
    }
}
