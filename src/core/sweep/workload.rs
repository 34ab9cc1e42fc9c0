//! What all runs of a sweep have in common.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::record::RunRow;

/// What was run, and on what, as the runs recorded it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Workload {
    /// The model, or the name that an embedding program gave.
    pub program: String,
    /// `cpu`, `cuda:0`.
    pub device: String,
    /// The GPU's name, or on a CPU the processor's.
    pub device_name: Option<String>,
    /// Of a sweep: what its grid does not vary.
    pub config: Map<String, Value>,
}

impl Workload {
    pub(super) fn of(run: &RunRow) -> Self {
        let processor = run.machine.cpu.as_ref().filter(|_| run.device == "cpu");
        Workload {
            program: run.program.clone(),
            device: run.device.clone(),
            device_name: run.device_facts.device_name.as_ref().or(processor).cloned(),
            config: run.config.clone(),
        }
    }

    /// Of runs over a grid of these flags; `None` without any run.
    pub(super) fn common<'a>(mut all: impl Iterator<Item = &'a Workload>, grid: &[String]) -> Option<Self> {
        let mut common = all.next()?.clone();
        // One cell alone may have been measured so far.
        common.config.retain(|name, _| !grid.contains(name));
        for Workload { config, .. } in all {
            common.config.retain(|name, value| config.get(name) == Some(value));
        }
        Some(common)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn workload(config: Value) -> Workload {
        let (program, device) = ("gpt".to_owned(), "cpu".to_owned());
        Workload { program, device, device_name: None, config: config.as_object().unwrap().clone() }
    }

    #[test]
    fn what_varies_is_not_common() {
        let grid = ["batch".to_owned()];
        let one = workload(json!({"batch": 4, "width": 32, "threads": 1}));
        let other = workload(json!({"batch": 8, "width": 32, "threads": 2}));
        let config = |all: &[Workload]| Value::from(Workload::common(all.iter(), &grid).unwrap().config);
        assert_eq!(config(&[one.clone(), other]), json!({"width": 32}));
        assert_eq!(config(&[one]), json!({"width": 32, "threads": 1}));
        assert_eq!(Workload::common([].iter(), &grid), None);
    }
}
