//! `stepledger plan`: the largest batch that fits, and the best way to train with it.

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, FromArgMatches};
use serde::Serialize;
use serde_json::{Map, Value};

use super::calibrate::calibrated;
use super::exit::{DONE, Exit, FAILED, Outcome};
use super::given::Given;
use super::grid_args::checked;
use super::machine;
use super::plan_verify::verify;
use super::run_args::{ModelArgs, TrainingArgs};
use super::run_setup::setup;
use super::settings::{KERNEL_SIZES, settings};
use super::show::write_json;
use super::terminal;
use super::words::{bytes_of, mebibytes, one_of};
use crate::plan::{
    CapacityFrom, Measured, NotUsed, Plan, Request, Verified, first_used, is_toy, plan as make, run_flags,
    some_of,
};
use crate::record::{Machine, ReferenceRates, StepTiming, Trace, file_of};
use crate::report::{render_plan, render_verified};
use crate::store::{Dataset, StoreError, is_run_folder, run_folders};

const AFTER_HELP: &str = "\
Without --from the answer comes from the toy models' closed forms alone: what fits is exact; how fast it is is not \
known, but after `stepledger calibrate` it is bounded by the rate of the device's matrix products. With measured runs, \
peak and step time are lines over the batch, one for each checkpointing policy; two batches a policy are enough, three \
or more give intervals. The runs must be of one workload on one machine, traced alike, and may differ in batch and \
checkpoint; where they differ in more, flags such as --width 128 or --trace ops choose among them.

Exit code 1 means that nothing fits, or that --verify found otherwise than predicted.

Examples:
  stepledger plan --capacity-mb 64                from theory: the default GPT
  stepledger plan --capacity-mb 256 --layers 48   which blocks to recompute
  stepledger plan --capacity-mb 64 --from runs    from all runs in a folder
  stepledger plan --capacity-mb 64 --from runs/sweep-1 runs/20260131-gpt --json
  stepledger plan --capacity-mb 64 --from runs --verify";

#[derive(Debug, Args)]
// --batch is what is planned: it is known, so that it can be refused with the reason, but not offered.
#[command(allow_negative_numbers = true, after_long_help = AFTER_HELP, mut_arg("batch", |arg| arg.hide(true)))]
pub struct PlanArgs {
    /// The memory to fit into, in MiB [default: what is available now, within the cgroup's limit, for the CPU]
    #[arg(long, value_name = "N", value_parser = mebibytes)]
    capacity_mb: Option<f64>,
    /// Measured runs to plan from: their folders, or folders of runs
    #[arg(long, value_name = "FOLDER", num_args = 1..)]
    from: Vec<PathBuf>,
    /// Of the runs of --from, only those that were traced so deep
    #[arg(long, requires = "from", value_parser = one_of::<Trace>(Trace::WORDS))]
    trace: Option<Trace>,
    /// Run the best setting, and the first batch predicted not to fit, within --capacity-mb, and compare
    #[arg(long, requires = "capacity_mb")]
    verify: bool,
    /// Where the runs of --verify are kept
    #[arg(long, value_name = "DIR", default_value = "runs")]
    out: PathBuf,
    /// Print one JSON object (documented in the README)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    base: Given<BaseArgs>,
}

/// The setting to plan for. Its batch is what is planned; a --checkpoint that is given is the only one considered.
#[derive(Debug, Args)]
struct BaseArgs {
    #[command(flatten, next_help_heading = "Model")]
    model: ModelArgs,
    #[command(flatten, next_help_heading = "Training")]
    training: TrainingArgs,
}

/// A plan and what came of it, as one object.
#[derive(Serialize)]
struct Planned<'a> {
    #[serde(flatten)]
    plan: &'a Plan,
    verified: &'a [Verified],
}

pub fn run(args: &PlanArgs) -> Outcome {
    let (request, unreadable) = request(args)?;
    let mut plan = make(&request).map_err(Exit::input)?;
    plan.not_used.extend(unreadable);
    let width = terminal::width(terminal::USUAL);
    if !args.json {
        write_out(|out| out.write_all(render_plan(&plan, width).as_bytes()))?;
    }
    let verified = if args.verify { verify(&plan, &request.defaults, &args.out)? } else { Vec::new() };
    if args.json {
        write_out(|out| write_json(out, &Planned { plan: &plan, verified: &verified }))?;
    } else if args.verify {
        write_out(|out| write!(out, "\n{}", render_verified(&verified, width)))?;
    }
    let good = plan.best.is_some() && verified.iter().all(|one| one.agrees);
    Ok(if good { DONE } else { FAILED })
}

fn write_out(write: impl FnOnce(&mut std::io::StdoutLock) -> std::io::Result<()>) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    write(&mut stdout)?;
    Ok(stdout.flush()?)
}

fn request(args: &PlanArgs) -> anyhow::Result<(Request, Vec<NotUsed>)> {
    let BaseArgs { model, training } = &args.base.args;
    if args.base.named.contains("batch") {
        return Err(Exit::input("--batch is what `plan` finds: leave it out, and give --capacity-mb"));
    }
    if args.from.is_empty() {
        setup(model, training).and_then(|setup| setup.check(None)).map_err(Exit::input)?;
    }
    model.check_attention().map_err(Exit::input)?;
    let config = settings(model, training);
    let (runs, unreadable) = measured(&args.from)?;
    let is_named = |name: &str| args.base.named.contains(file_of(name).unwrap_or(name));
    let mut given: Map<String, Value> = config.iter().filter(|(name, _)| is_named(name)).map(owned).collect();
    if args.base.named.contains("device") {
        given.insert("device".to_owned(), training.device.clone().into());
    }
    given.extend(args.trace.map(|trace| ("trace".to_owned(), trace.as_str().into())));
    let (device, defaults) = (training.device.clone(), defaults()?);
    // Another run may be of another machine.
    let used = first_used(&runs, &given, &defaults).map_err(Exit::input)?;
    used.map_or(Ok(()), |run| check_beside(run, &given, &defaults)).map_err(Exit::input)?;
    let (capacity_bytes, capacity_from) = capacity(args.capacity_mb, &device, used)?;
    let rates = match used {
        Some(run) => rates(&run.machine, &run.device, run.machine.torch_threads),
        None => rates(&machine::identity(), &device, config.get("threads").and_then(Value::as_i64)),
    };
    Ok((Request { capacity_bytes, capacity_from, config, device, given, defaults, rates, runs }, unreadable))
}

/// Refuses what no run can be told together with the setting that this one, of a toy model, was made with. Where
/// nothing of that was asked for there is nothing to refuse.
fn check_beside(
    run: &Measured,
    given: &Map<String, Value>,
    defaults: &Map<String, Value>,
) -> Result<(), String> {
    let names_a_field = given.keys().any(|field| run.config.contains_key(field));
    if !names_a_field || !is_toy(&run.program, &run.config) {
        return Ok(());
    }
    let mut config = run.config.clone();
    config.extend(given.iter().filter(|(field, _)| run.config.contains_key(*field)).map(owned));
    let checkpoint = given.get("checkpoint").and_then(Value::as_str);
    let mut flags = run_flags(&config, defaults, 1, checkpoint);
    flags.extend(["--device".to_owned(), run.device.clone()]);
    checked(&flags).map(|_| ())
}

/// What this device of the machine was measured to do.
fn rates(machine: &Machine, device: &str, threads: Option<i64>) -> Option<ReferenceRates> {
    let (device, threads) = match device {
        "cpu" => ("cpu", threads),
        "cuda" => ("cuda:0", None),
        device => (device, None),
    };
    calibrated(machine, device, threads).map(ReferenceRates::Calibrated)
}

fn owned((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

/// What `stepledger run` is without flags.
fn defaults() -> anyhow::Result<Map<String, Value>> {
    let command = BaseArgs::augment_args(clap::Command::new("run"));
    let BaseArgs { model, training } = BaseArgs::from_arg_matches(&command.get_matches_from(["run"]))?;
    let mut defaults = settings(&model, &training);
    // As many threads as there are cores, wherever that is: a command names them.
    defaults.insert("threads".to_owned(), Value::Null);
    defaults.extend(KERNEL_SIZES.map(|name| (name.to_owned(), Value::Null)));
    Ok(defaults)
}

/// What was asked for, or what this machine has left, or all of the one that the runs were made on, such as `run`.
fn capacity(
    asked_mb: Option<f64>,
    device: &str,
    run: Option<&Measured>,
) -> anyhow::Result<(i64, CapacityFrom)> {
    if let Some(mb) = asked_mb {
        return Ok((bytes_of(mb), CapacityFrom::Asked));
    }
    let device = run.map_or(device, |run| run.device.as_str());
    // What another machine has left, and what its groups limit, is not known here.
    let is_here = device == "cpu" && run.is_none_or(|run| run.machine.host == machine::host());
    let (memory, group) = match is_here {
        true => (machine::memory(), machine::left_in_cgroup()),
        false => Default::default(),
    };
    let all = run.map_or(memory.all_bytes, |run| run.device_memory_bytes);
    least(all, memory.available_bytes, group).ok_or_else(|| {
        Exit::input(format!(
            "the memory of {device} is not known here: say what to fit into with --capacity-mb"
        ))
    })
}

/// What is left now rather than all; what is left of a container's share may be less than either.
fn least(all: Option<i64>, available: Option<i64>, group: Option<i64>) -> Option<(i64, CapacityFrom)> {
    let left = available.map(|bytes| (bytes, CapacityFrom::Available));
    let machine = left.or(all.map(|bytes| (bytes, CapacityFrom::Machine)))?;
    Some(match group {
        Some(group) if group < machine.0 => (group, CapacityFrom::Cgroup),
        _ => machine,
    })
}

/// All runs in these folders, and those that cannot be read.
fn measured(folders: &[PathBuf]) -> anyhow::Result<(Vec<Measured>, Vec<NotUsed>)> {
    let mut runs = Vec::new();
    let mut unreadable = Vec::new();
    for dir in run_dirs(folders)? {
        match read(&dir) {
            Ok(run) => runs.push(run),
            Err(error) => unreadable.push(NotUsed { run: dir.display().to_string(), why: error.to_string() }),
        }
    }
    if runs.is_empty() && !folders.is_empty() {
        let why = some_of(unreadable.iter().map(|run| run.why.clone()));
        return Err(Exit::input(format!("no run in the folders given with --from can be read:{why}")));
    }
    runs.sort_by(|one, other| (&one.run_id, one.started_at).cmp(&(&other.run_id, other.started_at)));
    Ok((runs, unreadable))
}

/// The folders of all runs, each once: folders that hold each other name a run twice.
fn run_dirs(folders: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut seen = HashSet::new();
    let mut dirs = Vec::new();
    for folder in folders {
        dirs.extend(runs_of(folder)?);
    }
    dirs.retain(|dir| seen.insert(dir.canonicalize().unwrap_or_else(|_| dir.clone())));
    Ok(dirs)
}

fn runs_of(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if is_run_folder(folder) {
        return Ok(vec![folder.to_owned()]);
    }
    let runs = run_folders(folder).map_err(Exit::input)?;
    if runs.is_empty() {
        let told = "make some with `stepledger run`, or name another folder with --from";
        return Err(Exit::input(format!("there is no run in {}; {told}", folder.display())));
    }
    Ok(runs)
}

fn read(dir: &Path) -> Result<Measured, StoreError> {
    measured_of(&Dataset::open(dir)?)
}

/// What a plan takes from this run.
pub fn measured_of(dataset: &Dataset) -> Result<Measured, StoreError> {
    let steps = dataset.steps()?;
    let phases = dataset.step_phases(steps.iter().map(StepTiming::from))?;
    Ok(Measured::of(dataset.run(), &steps, &phases))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_available_and_within_what_the_cgroup_leaves_is_planned_for() {
        let gib = |n: i64| Some(n << 30);
        let from = |n: i64, from| Some((n << 30, from));
        for limit in [None, gib(16), Some(i64::MAX)] {
            assert_eq!(least(gib(16), gib(9), limit), from(9, CapacityFrom::Available));
        }
        assert_eq!(least(gib(16), gib(9), gib(2)), from(2, CapacityFrom::Cgroup));
        assert_eq!(least(gib(16), None, None), from(16, CapacityFrom::Machine));
        assert_eq!(least(None, None, gib(2)), None);
    }
}
