//! `stepledger plan --verify`: the plan put to the test, by runs of this very program.

use std::path::Path;
use std::process;

use anyhow::anyhow;
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::exit::Exit;
use super::note::note;
use super::plan::measured_of;
use crate::plan::{Plan, Trial, Verified, run_flags, trials};
use crate::record::{Trace, count, id_tail, id_time};
use crate::store::Dataset;
use crate::sweep::Program;

/// Enough for a median, few enough to wait for.
const STEPS: &str = "20";
const WARMUP: &str = "3";

/// Runs the best setting, and the first batch of it that is predicted not to fit, within the plan's capacity.
///
/// # Errors
/// For a program that is no toy model, and where a run leaves nothing to read. One that runs out of memory is a
/// result.
pub fn verify(plan: &Plan, defaults: &Map<String, Value>, out: &Path) -> anyhow::Result<Vec<Verified>> {
    if let Some(program) = plan.base.program.as_ref().filter(|_| !plan.base.is_toy()) {
        return Err(Exit::input(format!(
            "--verify can run the toy models only: run {program} yourself with what the plan says, and plan again \
             with that run too"
        )));
    }
    trials(plan).into_iter().map(|trial| put_to_the_test(plan, defaults, out, trial)).collect()
}

fn put_to_the_test(
    plan: &Plan,
    defaults: &Map<String, Value>,
    out: &Path,
    trial: Trial,
) -> anyhow::Result<Verified> {
    note(format_args!(
        "running batch {} with checkpoint {}",
        count(trial.batch),
        trial.checkpoint.as_deref().unwrap_or("none")
    ));
    let run_id = run_id(trial.batch, Utc::now(), process::id());
    let flags = flags(plan, defaults, &trial);
    let ran = Program::this()?.run(out, &run_id, &flags)?;
    let dataset = Dataset::open(&ran.dir).map_err(|error| {
        let told = ran.reason.unwrap_or_else(|| error.to_string());
        anyhow!("stepledger run {} left no account: {told}", flags.join(" "))
    })?;
    Ok(Verified::of(trial, &measured_of(&dataset)?, plan.capacity_bytes))
}

/// Sorts by time; the tail tells apart verifications that begin in the same second.
fn run_id(batch: i64, at: DateTime<Utc>, process: u32) -> String {
    format!("plan-{}-b{batch}-{}", id_time(at), id_tail(at, process))
}

fn flags(plan: &Plan, defaults: &Map<String, Value>, trial: &Trial) -> Vec<String> {
    let mut flags = run_flags(&plan.base.config, defaults, trial.batch, trial.checkpoint.as_deref());
    // In MiB every number of bytes is a finite binary fraction, so that nothing is lost here.
    let capacity_mb = plan.capacity_bytes as f64 / f64::from(1 << 20);
    let limit = ["--capacity-mb", &capacity_mb.to_string(), "--enforce", "--device", &plan.base.device]
        .map(str::to_owned);
    flags.extend(limit);
    flags.extend(["--steps", STEPS, "--warmup", WARMUP].map(str::to_owned));
    // A deeper trace costs time, which the plan's runs had to pay too; a shallower one would not tell the peak.
    if plan.base.trace == Some(Trace::Ops) {
        flags.extend(["--trace", Trace::Ops.as_str()].map(str::to_owned));
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verifications_of_one_second_have_runs_of_their_own() {
        let at = |millis: i64| DateTime::from_timestamp_millis(1_769_860_800_000 + millis).unwrap();
        let one = run_id(24, at(1), 7);
        assert!(one.starts_with("plan-20260131-120000-b24-"), "{one}");
        assert!(one != run_id(24, at(2), 7) && one != run_id(24, at(1), 8) && one != run_id(25, at(1), 7));
    }
}
