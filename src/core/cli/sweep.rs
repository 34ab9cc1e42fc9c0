//! `stepledger sweep`: which setting is fastest in the memory there is?

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use chrono::Utc;
use clap::{Args, value_parser};

use super::exit::{DONE, Exit, FAILED, INTERRUPTED, Outcome};
use super::grid_args::{GridArgs, check};
use super::interrupt::stop_flag;
use super::show::write_json;
use super::sweep_progress::Teller;
use crate::report::{render_sweep, sweep_chart};
use crate::sweep::{AXES, Axis, Folder, Grid, Program, Spec, Sweep, SweepError, sweep};

/// Given where the command is named: the flags of `run` among its own bring a text for this place with them.
pub const AFTER_HELP: &str = "\
Each cell of the grid is run in a process of its own, --repeats times; the cells take turns, in an order that turns \
around each time, so that a machine that drifts does so for all alike. A run that fails or is out of memory is a result, \
and the others go on. Everything is kept in <OUT>/sweep-<time>/: the runs, and sweep-0001.parquet with a row a cell. \
Ctrl-C ends the run in progress; --resume goes on and repeats nothing that is complete.

Exit codes: 0 there is an answer, 1 no cell was measured or none fits, 2 the flags were wrong, 130 interrupted.

Examples:
  stepledger sweep --batch 4,8,16,32 --checkpoint none,full,every:2
  stepledger sweep --batch 8,16 --dtype f32,amp-bf16 --steps 60 --repeats 3
  stepledger sweep --batch 16,32,64 --checkpoint none,full --capacity-mb 64 --enforce --svg sweep.svg
  stepledger sweep --resume runs/sweep-20260131-120000";

#[derive(Debug, Args)]
pub struct SweepArgs {
    /// How often each cell is run; it takes 5 for an answer that is more than a smoke test
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = value_parser!(u32).range(1..=1000), help_heading = "Sweep")]
    repeats: u32,
    /// Of the order in which the cells take turns
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Sweep")]
    order_seed: u64,
    /// Go on with the sweep in this folder, with the flags it was begun with
    #[arg(long, value_name = "DIR", help_heading = "Sweep")]
    resume: Option<PathBuf>,
    /// Draw peak memory against tokens/s into this file, a line for each checkpointing policy
    #[arg(long, value_name = "FILE", help_heading = "Sweep")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    grid: GridArgs,
}

pub fn run(args: &SweepArgs) -> Outcome {
    let program = Program::this().map_err(told)?;
    let folder = match &args.resume {
        Some(dir) => resume(args, dir)?,
        None => begin(args)?,
    };
    let stop = stop_flag()?;
    let mut teller = Teller::new(args.grid.quiet);
    let made =
        sweep(&folder, &program, &mut |progress| teller.tell(&progress), &|| stop.load(Ordering::Relaxed));
    teller.finish();
    let made = made.map_err(told)?;
    print(args, &made)?;
    if !made.complete {
        eprintln!("go on with `stepledger sweep --resume {}`", folder.dir().display());
        return Ok(INTERRUPTED);
    }
    Ok(if made.answer.best.is_some() { DONE } else { FAILED })
}

fn begin(args: &SweepArgs) -> anyhow::Result<Folder> {
    let GridArgs { axes, base, out, capacity_bytes, refused, .. } = &args.grid;
    if let Some(flag) = refused {
        return Err(Exit::input(format!(
            "{flag} is for a single run: the runs of a sweep would write over each other's"
        )));
    }
    if axes.is_empty() {
        let flags = AXES.map(|flag| format!("--{flag}")).join(", ");
        return Err(Exit::input(format!(
            "the grid is empty: give several values to one or more of {flags}, such as --batch 4,8,16"
        )));
    }
    let axes = axes.iter().map(|(flag, given)| Axis::parse(flag, given)).collect::<Result<_, _>>();
    let (axes, fixed) = several_and_one(axes.map_err(Exit::input)?);
    let base: Vec<String> = base.iter().cloned().chain(fixed).collect();
    let grid = Grid::new(axes).map_err(Exit::input)?;
    let name = Utc::now().format("%Y%m%d-%H%M%S").to_string();
    let spec = Spec {
        seed: args.order_seed,
        capacity_bytes: *capacity_bytes,
        ..Spec::new(&name, grid, base, args.repeats as usize)
    };
    for cell in spec.grid.cells() {
        check(&spec.args(&cell)).map_err(|problem| Exit::input(format!("cell {cell}: {problem}")))?;
    }
    Folder::create(out, spec).map_err(told)
}

/// What has one value among others that have several is not what the grid is about, but a flag like the others.
fn several_and_one(axes: Vec<Axis>) -> (Vec<Axis>, Vec<String>) {
    let (several, one): (Vec<Axis>, Vec<Axis>) = axes.into_iter().partition(|axis| axis.values.len() > 1);
    if several.is_empty() {
        return (one, Vec::new());
    }
    (several, one.iter().map(|axis| format!("--{}={}", axis.flag, axis.values[0])).collect())
}

fn resume(args: &SweepArgs, dir: &Path) -> anyhow::Result<Folder> {
    let given =
        args.grid.axes.iter().map(|(flag, _)| format!("--{flag}")).chain(args.grid.base.iter().cloned());
    let given: Vec<String> = given.collect();
    if !given.is_empty() {
        return Err(Exit::input(format!(
            "--resume goes on with the flags that the sweep was begun with; leave out {}",
            given.join(" ")
        )));
    }
    Folder::open(dir).map_err(told)
}

fn told(error: SweepError) -> anyhow::Error {
    if error.is_input() { Exit::input(error) } else { error.into() }
}

fn print(args: &SweepArgs, made: &Sweep) -> anyhow::Result<()> {
    if let Some(path) = &args.svg {
        let chart = sweep_chart(made)?;
        fs::write(path, chart)
            .map_err(|error| Exit::input(format!("--svg {}: {error}; name another file", path.display())))?;
    }
    let mut stdout = std::io::stdout().lock();
    if args.grid.json {
        write_json(&mut stdout, made)?;
    } else {
        stdout.write_all(render_sweep(made).as_bytes())?;
    }
    stdout.flush()?;
    if !args.grid.quiet {
        eprintln!("kept in {}", made.dir.display());
    }
    Ok(())
}
