//! What this machine says of itself, as far as commands that only read files ask.

use std::fs;

use super::cgroup::{Group, groups_of};
use crate::record::Machine;
pub use crate::store::this_machine as identity;

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

/// Its name; runs record it.
pub fn host() -> Option<String> {
    identity().host
}

/// What a program can take now: of the machine's memory, and within its control groups' limit.
pub fn memory_left_bytes() -> Option<i64> {
    [memory().available_bytes, left_in_cgroup()].into_iter().flatten().min()
}
