//! What this machine says of itself, as far as commands that only read files ask.

use std::fs;

use super::cgroup::{least_limit, limit_files};
use crate::record::Machine;
pub use crate::store::this_machine as identity;

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

/// Its name; runs record it.
pub fn host() -> Option<String> {
    identity().host
}

/// What a program can take now: of the machine's memory, and within its control groups' limit.
pub fn memory_left_bytes() -> Option<i64> {
    [available_bytes(), cgroup_limit_bytes()].into_iter().flatten().min()
}
