//! Which runs a plan can rest on: those that ended well, and all of one workload on one machine.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Map, Value};

use super::error::PlanError;
use super::measured::{Measured, NotUsed};
use crate::record::{FILES, RunStatus, by_content};

/// What runs of one workload may differ in: what is planned, and what costs neither time nor memory.
const FREE: &[&str] = &["batch", "checkpoint", "seed", "steps", "warmup", "init"];

/// The first run that a plan of these would rest on, asked for what was `given`: it is of the machine that they are all
/// of. `None` without runs.
///
/// # Errors
/// Where [`plan`](super::plan) refuses them.
pub fn first_used<'r>(
    runs: &'r [Measured],
    given: &Map<String, Value>,
    defaults: &Map<String, Value>,
) -> Result<Option<&'r Measured>, PlanError> {
    Ok(select(runs, given, defaults)?.0.first().copied())
}

/// The runs to use, and the others with the reason; nothing of nothing.
pub fn select<'r>(
    runs: &'r [Measured],
    given: &Map<String, Value>,
    defaults: &Map<String, Value>,
) -> Result<(Vec<&'r Measured>, Vec<NotUsed>), PlanError> {
    let mut not_used = Vec::new();
    let mut usable = Vec::new();
    let mut seen = HashSet::new();
    for run in runs {
        let copy = || (!seen.insert((&run.run_id, run.started_at))).then(|| copy_of(run));
        match unusable(run).or_else(|| other_than_asked(run, given)).or_else(copy) {
            Some(why) => not_used.push(NotUsed { run: run.run_id.clone(), why }),
            None => usable.push(run),
        }
    }
    if usable.is_empty() && !runs.is_empty() {
        return Err(PlanError::NoRun(not_used));
    }
    of_one_workload(&usable, defaults)?;
    Ok((usable, not_used))
}

fn unusable(run: &Measured) -> Option<String> {
    if run.status != RunStatus::Complete {
        let reason = run.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
        return Some(format!("it did not complete ({}{reason})", run.status));
    }
    if run.steps == 0 {
        return Some("it has no measured step; run it with --steps 1 or more".to_owned());
    }
    if let Some(lacks) = run.lacks {
        return Some(format!("{lacks}; bring the files of the others back to it, or run it again"));
    }
    let no_batch = "its configuration says no `batch`; a loop of your own says it with `Options::config`";
    run.batch().is_none().then(|| no_batch.to_owned())
}

/// Counted twice it would pass for a repeat.
fn copy_of(run: &Measured) -> String {
    format!(
        "it is a copy of run {}, which is counted already; run it again to have another repeat",
        run.run_id
    )
}

fn other_than_asked(run: &Measured, given: &Map<String, Value>) -> Option<String> {
    let of_it = |name: &str| run.config.get(name).map(|value| (name.to_owned(), value.clone()));
    let mut sides = [run.config.clone(), given.clone()];
    for side in &mut sides {
        side.extend([("program".to_owned(), run.program.clone().into())]);
        side.extend(of_it("model"));
    }
    by_content(&mut sides);
    let [config, asked] = sides;
    let asked =
        asked.iter().filter(|(field, _)| given.contains_key(*field) && !FREE.contains(&field.as_str()));
    let other = asked.filter_map(|(field, asked)| {
        let has = match field.as_str() {
            "device" => run.device.clone().into(),
            "trace" => run.trace.as_str().into(),
            field => config.get(field)?.clone(),
        };
        (!same(&has, asked)).then(|| format!("{field} is {}, not {}", plain(&has), plain(asked)))
    });
    let other: Vec<String> = other.collect();
    (!other.is_empty()).then(|| other.join(", "))
}

fn same(one: &Value, other: &Value) -> bool {
    one == other || one.as_f64().is_some_and(|one| other.as_f64() == Some(one))
}

/// Refuses runs that differ in more than is planned, naming the fields with their values.
fn of_one_workload(runs: &[&Measured], defaults: &Map<String, Value>) -> Result<(), PlanError> {
    let mut workloads: Vec<Map<String, Value>> = runs.iter().map(|run| workload(run)).collect();
    by_content(&mut workloads);
    let names: BTreeSet<&String> = workloads.iter().flat_map(|workload| workload.keys()).collect();
    let values = |name: &String| -> BTreeSet<String> {
        workloads.iter().map(|workload| workload.get(name).map_or("absent".to_owned(), plain)).collect()
    };
    let differ: Vec<(&String, BTreeSet<String>)> =
        names.into_iter().map(|name| (name, values(name))).filter(|(_, values)| values.len() > 1).collect();
    if differ.is_empty() {
        return Ok(());
    }
    let told = differ.iter().map(|(name, values)| format!("{name} ({})", few(values)));
    let one = |value: &Value| !value.is_object() && !value.is_array();
    let has_flag = |name: &str| ["device", "trace"].contains(&name) || defaults.get(name).is_some_and(one);
    let flag = differ.iter().find(|(name, _)| has_flag(name)).and_then(|(name, values)| {
        let path = || runs.iter().find_map(|run| run.config.get(*name)?.as_str().map(str::to_owned));
        let is_file = FILES.contains(&name.as_str());
        let value = if is_file { path()? } else { values.first()?.clone() };
        Some(format!(", or choose one by its flag, as with --{} {value}", name.replace('_', "-")))
    });
    Err(PlanError::Mixed { fields: told.collect::<Vec<_>>().join(", "), choose: flag.unwrap_or_default() })
}

/// The first of the values; a folder of many runs may have as many.
fn few(values: &BTreeSet<String>) -> String {
    const FEW: usize = 4;
    let first: Vec<&str> = values.iter().take(FEW).map(String::as_str).collect();
    let more = values.len().saturating_sub(FEW);
    first.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
}

/// Everything that a run's time and memory may depend on, but for what is planned.
fn workload(run: &Measured) -> Map<String, Value> {
    let mut fields: Map<String, Value> = run.config.clone();
    fields.retain(|name, _| !FREE.contains(&name.as_str()));
    let text = |text: &Option<String>| text.clone().map_or(Value::Null, Value::from);
    let machine = &run.machine;
    fields.insert("program".to_owned(), run.program.clone().into());
    fields.insert("device".to_owned(), run.device.clone().into());
    fields.insert("machine.host".to_owned(), text(&machine.host));
    fields.insert("machine.cpu".to_owned(), text(&machine.cpu));
    fields.insert("machine.torch_threads".to_owned(), machine.torch_threads.map_or(Value::Null, Value::from));
    fields.insert("trace".to_owned(), run.trace.as_str().into());
    fields.insert("stepledger".to_owned(), run.stepledger_version.clone().into());
    fields.insert("libtorch".to_owned(), text(&run.torch_version));
    fields
}

/// A value as a flag has it.
pub fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
