//! What a run's results depend on, and what kind of thing each field of it is.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::record::{ReferenceRates, RunRow, StepRow, by_content, words};
use crate::rules::{Variable, differences};

words! {
    /// What a field says.
    FieldKind, "kind of field" {
        /// What is computed: another workload is another experiment.
        Workload = "workload",
        /// Where it was computed.
        Machine = "machine",
        /// By which builds.
        Version = "version",
        /// How it was computed: a choice that can be tested.
        Choice = "choice",
        /// How long it was measured.
        Length = "length",
        /// What the machine had been measured to do before.
        Calibration = "calibration",
    }
}

/// Fields of a configuration that say what is computed: the model, its sizes and its data. What a program of
/// one's own calls otherwise is a choice, and changes the workload where it changes the number of parameters.
const WORKLOAD: &[&str] =
    &["program", "model", "layers", "width", "heads", "seq", "data", "dropout", "parameters"];
const MACHINE: &[&str] = &[
    "host",
    "os",
    "cpu",
    "logical_cpus",
    "memory_gib",
    "device",
    "device_name",
    "compute_capability",
    "multiprocessors",
    "device_memory_bytes",
    "power_limit_w",
];
const VERSION: &[&str] =
    &["stepledger_version", "torch_version", "driver_version", "cuda_driver_version", "cuda_runtime_version"];
const LENGTH: &[&str] = &["steps", "warmup"];

/// A field in which the two sides differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// Its dotted path.
    pub field: String,
    pub kind: FieldKind,
    /// `None` where that side lacks the field.
    pub base: Option<Value>,
    pub candidate: Option<Value>,
}

impl FieldKind {
    /// By the first part of a dotted path: `model.width` is part of the model.
    pub fn of(field: &str) -> Self {
        let head = field.split('.').next().unwrap_or(field);
        let kinds = [
            (WORKLOAD, FieldKind::Workload),
            (MACHINE, FieldKind::Machine),
            (VERSION, FieldKind::Version),
            (LENGTH, FieldKind::Length),
        ];
        kinds.iter().find(|(fields, _)| fields.contains(&head)).map_or(FieldKind::Choice, |(_, kind)| *kind)
    }

    /// Whether results depend on it.
    pub fn has_effects(self) -> bool {
        !matches!(self, FieldKind::Length | FieldKind::Calibration)
    }

    /// Whether two sides that differ in this are not to be judged.
    pub fn forbids_a_verdict(self) -> bool {
        matches!(self, FieldKind::Workload | FieldKind::Machine | FieldKind::Version)
    }
}

/// Everything that a run's results may depend on: the configuration, what ran, and where it ran. What varies from run
/// to run by itself (clocks, free memory) is no part of it.
///
/// Where the configuration uses one of our names for something else, that field is called `config.NAME`: a `warmup` that
/// is not the number of warm-up steps is the learning rate's, or whatever the program means by it.
pub fn setting(run: &RunRow, steps: &[StepRow]) -> Map<String, Value> {
    let mut fields = Map::new();
    let facts = facts(run);
    let warmup = steps.iter().filter(|step| step.warmup).count();
    for (name, value) in &run.config {
        let ours = match name.as_str() {
            "warmup" => Some(Value::from(warmup)),
            _ => facts.iter().find(|(fact, _)| fact == name).map(|(_, value)| value.clone()),
        };
        let other = ours.is_some_and(|ours| ours != *value);
        fields.insert(if other { format!("config.{name}") } else { name.clone() }, value.clone());
    }
    fields.extend(facts.into_iter().map(|(name, value)| (name.to_owned(), value)));
    fields
}

/// What is known of a run beside its configuration.
fn facts(run: &RunRow) -> Vec<(&'static str, Value)> {
    let (machine, device) = (&run.machine, &run.device_facts);
    // A configuration that names its threads says it already.
    let threads = machine.torch_threads.filter(|_| !run.config.contains_key("threads"));
    // A kernel that was updated takes a little more or less of it for itself.
    let memory_gib = machine.memory_bytes.map(|bytes| (bytes as f64 / f64::from(1 << 30)).round() as i64);
    vec![
        ("program", run.program.clone().into()),
        ("parameters", run.parameters.into()),
        ("capacity_bytes", run.capacity_bytes.into()),
        ("torch_threads", threads.into()),
        ("device", run.device.clone().into()),
        ("trace", run.trace.as_str().into()),
        ("host", machine.host.clone().into()),
        ("os", machine.os.clone().into()),
        ("cpu", machine.cpu.clone().into()),
        ("logical_cpus", machine.logical_cpus.into()),
        ("memory_gib", memory_gib.into()),
        ("device_name", device.device_name.clone().into()),
        ("compute_capability", device.compute_capability.clone().into()),
        ("multiprocessors", device.multiprocessors.into()),
        ("device_memory_bytes", device.device_memory_bytes.into()),
        ("power_limit_w", device.power_limit_w.into()),
        ("allocator_settings", device.allocator_settings.clone().into()),
        ("stepledger_version", run.stepledger_version.clone().into()),
        ("torch_version", run.torch_version.clone().into()),
        ("driver_version", device.driver_version.clone().into()),
        ("cuda_driver_version", device.cuda_driver_version.clone().into()),
        ("cuda_runtime_version", device.cuda_runtime_version.clone().into()),
    ]
}

/// Under which calibration of its device a run was made: the instant of it; null where there was none.
pub fn calibration(run: &RunRow) -> Value {
    match &run.reference_rates {
        Some(ReferenceRates::Calibrated(rates)) => rates.measured_at.to_rfc3339().into(),
        Some(ReferenceRates::Datasheet(_)) | None => Value::Null,
    }
}

/// Two sides whose runs were made under different calibrations.
pub fn differing_calibration(base: &[Value], candidate: &[Value]) -> Option<Difference> {
    let all = |calibrations: &[Value]| match calibrations {
        [one] => one.clone(),
        several => several.to_vec().into(),
    };
    (base != candidate).then(|| Difference {
        field: "calibration".to_owned(),
        kind: FieldKind::Calibration,
        base: Some(all(base)),
        candidate: Some(all(candidate)),
    })
}

/// The fields in which two settings differ, each with its kind; of files it is what they hold that counts.
pub fn differing(base: &Map<String, Value>, candidate: &Map<String, Value>) -> Vec<Difference> {
    let difference = |variable: Variable| Difference {
        kind: FieldKind::of(&variable.field),
        field: variable.field,
        base: variable.baseline,
        candidate: variable.changed,
    };
    let mut sides = [base.clone(), candidate.clone()];
    by_content(&mut sides);
    let [base, candidate] = &sides;
    differences(base, candidate).into_iter().map(difference).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_calibration_is_told_and_changes_nothing() {
        let (first, second) = (Value::from("2026-01-31T12:00:00+00:00"), Value::Null);
        let (one, both) = ([first.clone()], [first.clone(), second.clone()]);
        assert_eq!(differing_calibration(&one, &one), None);
        let difference = differing_calibration(&one, &both).unwrap();
        assert_eq!(
            (difference.base, difference.candidate),
            (Some(first.clone()), Some(vec![first, second].into()))
        );
        assert!(!difference.kind.has_effects() && !difference.kind.forbids_a_verdict());
    }

    #[test]
    fn a_file_is_another_workload_by_what_it_holds() {
        let differing = |one: (&str, &str), other: (&str, &str)| {
            let of = |(data, content): (&str, &str)| {
                let value = serde_json::json!({"program": "gpt", "data": data, "data_content": content});
                value.as_object().unwrap().clone()
            };
            let found = differing(&of(one), &of(other));
            found.into_iter().map(|found| (found.field, found.kind)).collect::<Vec<_>>()
        };
        assert_eq!(differing(("/job1/book.txt", "3 bytes"), ("/job2/book.txt", "3 bytes")), []);
        let other = differing(("/job/book.txt", "3 bytes"), ("/job/book.txt", "4 bytes"));
        assert_eq!(other, [("data".to_owned(), FieldKind::Workload)]);
    }

    #[test]
    fn a_field_is_of_the_kind_of_its_first_part() {
        for (field, kind) in [
            ("layers", FieldKind::Workload),
            ("model.hidden", FieldKind::Workload),
            ("batch", FieldKind::Choice),
            ("checkpoint", FieldKind::Choice),
            ("optimizer.layers", FieldKind::Choice),
            ("host", FieldKind::Machine),
            ("power_limit_w", FieldKind::Machine),
            ("driver_version", FieldKind::Version),
            ("allocator_settings", FieldKind::Choice),
            ("config.warmup", FieldKind::Choice),
            ("torch_version", FieldKind::Version),
            ("steps", FieldKind::Length),
        ] {
            assert_eq!(FieldKind::of(field), kind, "{field}");
        }
    }
}
