//! `stepledger plan --verify`: the plan put to the test, by runs of this very program.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde_json::{Map, Value};

use super::exit::Exit;
use crate::plan::{Measured, Plan, Trial, Verified, run_flags, trials};
use crate::store::Dataset;
use crate::theory::ModelKind;

/// Enough for a median, few enough to wait for.
const STEPS: &str = "20";
const WARMUP: &str = "3";

/// Runs the best setting, and the first batch of it that is predicted not to fit, within the plan's capacity.
///
/// # Errors
/// For a program that is no toy model, and where a run leaves nothing to read. One that runs out of memory is a
/// result.
pub fn verify(plan: &Plan, defaults: &Map<String, Value>, out: &Path) -> anyhow::Result<Vec<Verified>> {
    if let Some(program) = plan.base.program.as_ref().filter(|name| name.parse::<ModelKind>().is_err()) {
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
    eprintln!(
        "running batch {} with checkpoint {}",
        trial.batch,
        trial.checkpoint.as_deref().unwrap_or("none")
    );
    let dir = run(&flags(plan, defaults, &trial), out)?;
    let dataset = Dataset::open(&dir)?;
    Ok(Verified::of(trial, &Measured::of(dataset.run(), &dataset.steps()?), plan.capacity_bytes))
}

fn flags(plan: &Plan, defaults: &Map<String, Value>, trial: &Trial) -> Vec<String> {
    let mut flags = run_flags(&plan.base.config, defaults, trial.batch, trial.checkpoint.as_deref());
    // In MiB every number of bytes is a finite binary fraction, so that nothing is lost here.
    let capacity_mb = plan.capacity_bytes as f64 / f64::from(1 << 20);
    let limit = ["--capacity-mb", &capacity_mb.to_string(), "--enforce", "--device", &plan.base.device]
        .map(str::to_owned);
    flags.extend(limit);
    flags.extend(["--steps", STEPS, "--warmup", WARMUP].map(str::to_owned));
    flags
}

/// Trains in a process of its own; returns the run's folder.
fn run(flags: &[String], out: &Path) -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("this program's own path is not known")?;
    let mut command = Command::new(&program);
    command.arg("run").args(flags).args(["--quiet", "--json", "--out"]).arg(out).stdin(Stdio::null());
    let output = command.output().with_context(|| format!("{} cannot be run", program.display()))?;
    let account: Option<Value> = serde_json::from_slice(&output.stdout).ok();
    match account.as_ref().and_then(|account| account.get("run_id")?.as_str()) {
        Some(run_id) => Ok(out.join(run_id)),
        None => {
            let told = String::from_utf8_lossy(&output.stderr);
            bail!("stepledger run {} gave no account: {}", flags.join(" "), told.trim())
        }
    }
}
