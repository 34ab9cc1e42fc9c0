//! `stepledger experiment`: two runs that differ in one variable, compared and kept.

use std::io::Write;
use std::path::{Path, PathBuf};

use chrono::Utc;
use clap::Args;

use super::exit::{DONE, Exit, Outcome};
use super::note::note;
use super::show::{read, write_json};
use super::terminal;
use crate::report::{Summary, experiment, render_experiment, summarize};
use crate::store::{Dataset, resolve};

const AFTER_HELP: &str = "\
The two must differ in exactly one field of their configuration, and have run on the same machine and versions; what they \
differ in is named where it is more. One run a side is a smoke test: `stepledger compare` judges repeated runs.

Examples:
  stepledger run --run-id sdpa --attention sdpa
  stepledger run --run-id math --attention math
  stepledger experiment sdpa math
  stepledger experiment sdpa math --json | jq .results
  stepledger show math                    tells its experiments, too";

#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub struct ExperimentArgs {
    /// The run before the change: its id, the beginning of it, or its folder
    baseline: String,
    /// The run with the change; the record is kept in its folder
    changed: String,
    /// The folder of runs to look in
    #[arg(long, value_name = "DIR", default_value = "runs")]
    out: PathBuf,
    /// Print the record as one JSON object (documented in the README)
    #[arg(long)]
    json: bool,
}

pub fn run(args: &ExperimentArgs) -> Outcome {
    let (_, baseline) = open(&args.out, &args.baseline)?;
    let (dataset, changed) = open(&args.out, &args.changed)?;
    let record = experiment(&baseline, &changed).map_err(Exit::input)?;
    let dir = dataset.keep_experiment(record.rows(&baseline.run_id, Utc::now())).map_err(Exit::input)?;
    let mut stdout = std::io::stdout().lock();
    if args.json {
        write_json(&mut stdout, &record)?;
    } else {
        stdout.write_all(render_experiment(&record, terminal::width(terminal::USUAL)).as_bytes())?;
    }
    stdout.flush()?;
    note(format_args!("kept in {}", dir.display()));
    Ok(DONE)
}

fn open(out: &Path, run: &str) -> anyhow::Result<(Dataset, Summary)> {
    let dataset = resolve(out, Some(run)).and_then(|dir| Dataset::open(&dir)).map_err(Exit::input)?;
    let summary = summarize(&read(&dataset, None)?, None).map_err(Exit::input)?;
    if summary.step.n == 0 {
        return Err(Exit::input(format!("run {} has no measured step to compare", summary.run_id)));
    }
    Ok((dataset, summary))
}
