//! `stepledger baseline`: names for what later runs are compared against.

use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};

use super::exit::{DONE, Exit, Outcome};
use super::note::note;
use super::show::write_json;
use crate::compare::{Found, find, read_side};
use crate::store::{Baseline, Baselines};

const AFTER_HELP: &str = "\
`compare` takes a name where it takes a run or a folder of runs.

Examples:
  stepledger baseline set main 20260131-12    a run, by how its id begins
  stepledger baseline set main sdpa-runs      a folder of repeats
  stepledger compare main patch-runs
  stepledger baseline list";

/// Name runs to compare against
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct BaselineArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Let a name stand for a run, or for a folder of its repeats
    Set {
        /// The name, of letters, digits, `-`, `_` and `.`; what it stood for before is told and forgotten
        name: String,
        /// The run: its id, the beginning of it, or its folder; or a folder of runs
        run: String,
        #[command(flatten)]
        out: OutArgs,
    },
    /// Print all names and what they stand for
    List {
        #[command(flatten)]
        out: OutArgs,
        /// Print one JSON object (documented in the README)
        #[arg(long)]
        json: bool,
    },
    /// Forget a name; the runs stay
    Rm {
        /// The name
        name: String,
        #[command(flatten)]
        out: OutArgs,
    },
}

#[derive(Debug, Args)]
struct OutArgs {
    /// The folder of runs, where the names are kept (`baselines.json`)
    #[arg(long, value_name = "DIR", default_value = "runs")]
    out: PathBuf,
}

pub fn run(args: &BaselineArgs) -> Outcome {
    match &args.action {
        Action::Set { name, run, out } => set(&out.out, name, run),
        Action::List { out, json } => list(&out.out, *json),
        Action::Rm { name, out } => remove(&out.out, name),
    }
}

fn set(out: &Path, name: &str, run: &str) -> Outcome {
    Baselines::check_name(out, name).map_err(Exit::input)?;
    let found = find(out, run).map_err(Exit::input)?;
    // What cannot be compared with anything is no baseline.
    read_side(run, &found).map_err(Exit::input)?;
    let (Found::Run(place) | Found::Folder(place)) = found;
    let mut baselines = Baselines::load(out).map_err(Exit::input)?;
    let before = baselines.set(out, name, &place, Utc::now());
    baselines.save(out)?;
    let before = before.map(|before| format!("; before it stood for {}", told(out, &before)));
    note(format_args!("{name} stands for {}{}", place.display(), before.unwrap_or_default()));
    Ok(DONE)
}

/// Where a name points, and since when.
fn told(out: &Path, baseline: &Baseline) -> String {
    format!("{} (set {} UTC)", out.join(&baseline.place).display(), minute(baseline.set_at))
}

fn minute(at: DateTime<Utc>) -> impl Display {
    at.format("%Y-%m-%d %H:%M")
}

fn list(out: &Path, json: bool) -> Outcome {
    if !out.is_dir() {
        let message = format!("there is no folder {}; name the folder of runs with --out", out.display());
        return Err(Exit::input(message));
    }
    let baselines = Baselines::load(out).map_err(Exit::input)?;
    let mut stdout = std::io::stdout().lock();
    if json {
        write_json(&mut stdout, &baselines)?;
    } else {
        for (name, baseline) in baselines.iter() {
            let Baseline { place, set_at } = baseline;
            writeln!(stdout, "{name}  {}  (set {} UTC)", place.display(), minute(*set_at))?;
        }
    }
    stdout.flush()?;
    if !json && baselines.iter().next().is_none() {
        note(format_args!("no baseline in {}; `stepledger baseline set NAME RUN` makes one", out.display()));
    }
    Ok(DONE)
}

fn remove(out: &Path, name: &str) -> Outcome {
    let mut baselines = Baselines::load(out).map_err(Exit::input)?;
    let removed = baselines.remove(name).map_err(Exit::input)?;
    baselines.save(out)?;
    note(format_args!("forgot {name}, which stood for {}", told(out, &removed)));
    Ok(DONE)
}
