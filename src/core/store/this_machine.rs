//! What tells this machine from others.

use std::fs;

use crate::record::Machine;

/// This machine's name and processors, as runs record them: calibrations are kept for it, and a sweep goes on upon it.
/// Its processors are all that it has, whatever this process may run on.
pub fn this_machine() -> Machine {
    let facts = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = facts.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == "model name").then(|| value.trim().to_owned())
    });
    Machine { host: host(), cpu, logical_cpus: Machine::processors_in(&facts), ..Machine::default() }
}

fn host() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}
