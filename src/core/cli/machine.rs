//! What this machine says of itself, as far as commands that only read files ask.

use std::fs;

use super::cgroup::{least_limit, limit_files};
use crate::record::Machine;

/// Its name; runs record it.
pub fn host() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// All of its memory.
pub fn memory_bytes() -> Option<i64> {
    Machine::memory_in(&fs::read_to_string("/proc/meminfo").ok()?)
}

/// What of it is free for a program now.
pub fn available_bytes() -> Option<i64> {
    Machine::available_in(&fs::read_to_string("/proc/meminfo").ok()?)
}

/// What control groups leave to this process, where they set a limit.
pub fn cgroup_limit_bytes() -> Option<i64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    least_limit(limit_files(&groups).into_iter().filter_map(|file| fs::read_to_string(file).ok()))
}

/// What a program can take now: of the machine's memory, and within its control groups' limit.
pub fn memory_left_bytes() -> Option<i64> {
    [available_bytes(), cgroup_limit_bytes()].into_iter().flatten().min()
}

/// What tells this machine from others: calibrations are kept for it.
pub fn identity() -> Machine {
    let facts = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = facts.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == "model name").then(|| value.trim().to_owned())
    });
    Machine { host: host(), cpu, logical_cpus: Machine::processors_in(&facts), ..Machine::default() }
}
