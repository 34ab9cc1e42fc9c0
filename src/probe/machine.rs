//! What machine this is, as far as it tells.

use std::fs;

use crate::record::Machine;

/// Reads the machine's facts; what it does not tell stays `None`.
pub fn machine() -> Machine {
    Machine {
        host: read("/proc/sys/kernel/hostname"),
        os: os(),
        cpu: field("/proc/cpuinfo", "model name"),
        logical_cpus: read("/proc/cpuinfo").and_then(|facts| Machine::processors_in(&facts)),
        memory_bytes: read("/proc/meminfo").and_then(|facts| Machine::memory_in(&facts)),
        torch_threads: Some(i64::from(tch::get_num_threads())),
    }
}

fn os() -> Option<String> {
    let name = fs::read_to_string("/etc/os-release").ok().and_then(|text| {
        text.lines()
            .find_map(|line| line.strip_prefix("PRETTY_NAME=").map(|name| name.trim_matches('"').to_owned()))
    });
    match (name, read("/proc/sys/kernel/osrelease")) {
        (Some(name), Some(kernel)) => Some(format!("{name}, Linux {kernel}")),
        (name, kernel) => name.or(kernel),
    }
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// The value of the first `key : value` line of a file.
fn field(path: &str, key: &str) -> Option<String> {
    fs::read_to_string(path).ok()?.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim().to_owned())
    })
}
