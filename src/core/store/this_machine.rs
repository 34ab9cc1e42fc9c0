//! What tells this machine from others.

use std::fs;
use std::thread;

use crate::record::Machine;

/// This machine's name and processors, as runs record them: calibrations are kept for it, and a sweep goes on upon it.
pub fn this_machine() -> Machine {
    Machine {
        host: host(),
        cpu: cpu(),
        logical_cpus: thread::available_parallelism().ok().map(|count| count.get() as i64),
        ..Machine::default()
    }
}

fn host() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

fn cpu() -> Option<String> {
    let facts = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = facts.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
