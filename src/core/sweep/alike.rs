//! Whether a run was made as the others of its sweep were: only such runs can stand beside each other.

use serde_json::{Map, Value};

use super::grid::Grid;
use super::measure::Measure;
use crate::compare::differing;
use crate::record::{Machine, RunStatus};

/// How the runs of a sweep are made; its first ones say so.
#[derive(Debug, Default)]
pub(super) struct Alike {
    /// The flags that may differ.
    grid: Vec<String>,
    machine: Option<Machine>,
    setting: Option<Map<String, Value>>,
}

impl Alike {
    /// Of runs over this grid.
    pub fn over(grid: &Grid) -> Self {
        let grid = grid.axes().iter().map(|axis| axis.flag.clone()).collect();
        Alike { grid, machine: None, setting: None }
    }

    /// The machine that the runs were made on.
    pub fn machine(&self) -> Option<&Machine> {
        self.machine.as_ref()
    }

    /// Why a run does not belong to those before it.
    pub fn stranger(&mut self, run: &Measure) -> Option<String> {
        let ours = self.machine.get_or_insert_with(|| run.machine.clone());
        if !is_same(ours, &run.machine) {
            let (theirs, ours) = (named(&run.machine), named(ours));
            return Some(format!("it was made on {theirs}, and the runs before it on {ours}"));
        }
        // One that failed may not have come as far as to know all of it.
        if run.status != RunStatus::Complete {
            return None;
        }
        let ours = self.setting.get_or_insert_with(|| run.setting.clone());
        other_setting(ours, &run.setting, &self.grid)
    }
}

/// In what a run differs that `compare` would call another configuration, beside the flags of the grid. How many
/// parameters there are follows from the other fields.
fn other_setting(ours: &Map<String, Value>, theirs: &Map<String, Value>, grid: &[String]) -> Option<String> {
    let differs = differing(ours, theirs);
    let strange = |field: &str| field != "parameters" && !grid.iter().any(|flag| flag == field);
    let strange = differs.iter().filter(|found| found.kind.has_effects() && strange(&found.field));
    let (before, made): (Vec<String>, Vec<String>) = strange
        .map(|found| (part(&found.field, found.base.as_ref()), part(&found.field, found.candidate.as_ref())))
        .unzip();
    let (made, before) = (made.join(", "), before.join(", "));
    (!made.is_empty()).then(|| format!("it was made with {made}, and the runs before it with {before}"))
}

/// A field in words: `threads 2`.
fn part(field: &str, value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => format!("no {field}"),
        Some(Value::String(text)) => format!("{field} {text}"),
        Some(value) => format!("{field} {value}"),
    }
}

/// Whether what was measured on the one can stand beside what was measured on the other.
pub(super) fn is_same(one: &Machine, other: &Machine) -> bool {
    (&one.host, &one.cpu) == (&other.host, &other.cpu)
}

pub(super) fn named(machine: &Machine) -> String {
    let host = machine.host.as_deref().unwrap_or("a machine without a name");
    machine.cpu.as_ref().map_or_else(|| host.to_owned(), |cpu| format!("{host} ({cpu})"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_grid_does_not_vary_must_be_the_same() {
        let grid = ["seq".to_owned()];
        let ours = json!({"seq": 8, "threads": 2, "torch_version": "2.11.0", "driver_version": null,
            "steps": 60, "parameters": 750});
        let told = |field: &str, value: Value| {
            let mut theirs = ours.clone();
            theirs[field] = value;
            other_setting(ours.as_object().unwrap(), theirs.as_object().unwrap(), &grid)
        };
        for (field, value) in [("seq", 16), ("parameters", 900), ("steps", 30), ("threads", 2)] {
            assert_eq!(told(field, value.into()), None, "{field}");
        }
        let threads = told("threads", 1.into()).unwrap();
        assert_eq!(threads, "it was made with threads 1, and the runs before it with threads 2");
        let torch = told("torch_version", "2.12.0".into()).unwrap();
        assert!(
            torch.contains("with torch_version 2.12.0, and the runs before it with torch_version 2.11.0")
        );
        let driver = told("driver_version", "595".into()).unwrap();
        assert!(driver.contains("the runs before it with no driver_version"), "{driver}");
        assert!(told("batch", 4.into()).is_some(), "a flag that the grid has one value of");
    }
}
