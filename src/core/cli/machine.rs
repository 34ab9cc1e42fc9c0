//! What this machine says of itself, as far as commands that only read files ask.

use std::fs;
use std::thread;

use super::cgroup::{Group, groups_of};
use crate::record::Machine;

/// Its name; runs record it.
pub fn host() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// Its memory; null where the kernel does not say.
#[derive(Debug, Clone, Copy, Default)]
pub struct Memory {
    pub all_bytes: Option<i64>,
    /// What of it is free for a program now.
    pub available_bytes: Option<i64>,
}

pub fn memory() -> Memory {
    let Ok(meminfo) = fs::read_to_string("/proc/meminfo") else { return Memory::default() };
    Memory { all_bytes: Machine::memory_in(&meminfo), available_bytes: Machine::available_in(&meminfo) }
}

/// What control groups leave to this process now, where they set a limit.
pub fn left_in_cgroup() -> Option<i64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    groups_of(&groups).iter().filter_map(Group::left).min()
}

/// What tells this machine from others: calibrations are kept for it.
pub fn identity() -> Machine {
    let cpu = fs::read_to_string("/proc/cpuinfo").ok().and_then(|facts| {
        let line = facts.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let logical_cpus = thread::available_parallelism().ok().map(|count| count.get() as i64);
    Machine { host: host(), cpu, logical_cpus, ..Machine::default() }
}
