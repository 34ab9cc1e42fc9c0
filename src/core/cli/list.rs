//! `stepledger list`: the runs of a folder, a line each.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use super::exit::{DONE, Exit, Outcome};
use super::machine;
use super::note::note;
use super::show::write_json;
use super::standing::as_it_stands;
use super::terminal;
use super::words::at_least;
use crate::report::{
    Condition, ListedRun, Listing, RatedStep, Selection, StepRates, UNREADABLE, render_runs,
};
use crate::store::{Glance, StepGlance, StoreError, began, glance, is_being_written, run_folders};

const AFTER_HELP: &str = "\
Lists the runs in the folder and in its sweeps (sweep-*), the newest first. A run whose process ended without closing \
it is `interrupted`, a complete one whose steps are partly gone `incomplete`, one that cannot be read `unreadable`; \
--json says why.

Fields for --where and --sort: id, started, program, status, device, host, trace, steps, step_ms, tokens_per_s, \
peak_mib, peak_bytes, parameters and more, and every field of the configuration, dotted where it is nested \
(config.NAME where a fact has the same name). Numbers are compared as numbers, times (UTC) as far as they are given, versions (torch, \
stepledger) part by part; other texts are equal or not; `null` is an absent value.

Examples:
  stepledger list --where batch=8 --where 'peak_mib<64'
  stepledger list --where status!=complete --where started=2026-01-31
  stepledger list --sort tokens_per_s --reverse --limit 5
  stepledger list --json | jq -r '.runs[].run_id'";

#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub struct ListArgs {
    /// The folder of runs
    #[arg(long, value_name = "DIR", default_value = "runs")]
    out: PathBuf,
    /// Only runs for which this holds: FIELD=VALUE, or != < <= > >=; may be given several times
    #[arg(long = "where", value_name = "CONDITION")]
    conditions: Vec<Condition>,
    /// Sort by this field, the least first [default: by start, the newest first]
    #[arg(long, value_name = "FIELD")]
    sort: Option<String>,
    /// The other way round
    #[arg(long)]
    reverse: bool,
    /// At most so many runs
    #[arg(long, value_name = "N", value_parser = at_least(0_usize), allow_negative_numbers = true)]
    limit: Option<usize>,
    /// Print one JSON object (documented in the README)
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct List {
    runs: Vec<ListedRun>,
}

pub fn run(args: &ListArgs) -> Outcome {
    if !args.out.exists() {
        return Err(Exit::input(StoreError::NoRuns(args.out.clone())));
    }
    let folders = run_folders(&args.out).map_err(Exit::input)?;
    let host = machine::host();
    let selection = Selection {
        conditions: args.conditions.clone(),
        sort: args.sort.clone(),
        reverse: args.reverse,
        limit: args.limit,
    };
    let mut listing = Listing::new(selection, args.json);
    folders.iter().for_each(|dir| listing.take(listed(dir, host.as_deref())));
    let runs = listing.finish().map_err(Exit::input)?;
    let mut stdout = std::io::stdout().lock();
    if args.json {
        write_json(&mut stdout, &List { runs })?;
    } else if !runs.is_empty() {
        stdout.write_all(render_runs(&runs, terminal::width(usize::MAX)).as_bytes())?;
    } else if folders.is_empty() {
        note(format_args!("there is no run in {}; make one with `stepledger run`", args.out.display()));
    } else {
        note(format_args!("no run in {} is as asked for", args.out.display()));
    }
    stdout.flush()?;
    Ok(DONE)
}

/// One run's line. Its steps are let go before the next run is read.
fn listed(dir: &Path, host: Option<&str>) -> ListedRun {
    let shown = dir.display().to_string();
    match glance(dir) {
        Ok(glance) => {
            let there = glance.steps.len();
            let rates = StepRates::of(&rated(&glance));
            ListedRun::of(shown, &as_it_stands(glance.run, dir, host), there, &rates)
        }
        Err(error) => {
            let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            match error {
                // What a process leaves that ends before it writes its row.
                StoreError::NotARun(_) if is_being_written(dir) => {
                    ListedRun::without_row(name, shown, "running", None)
                }
                StoreError::NotARun(_) => {
                    let why = "there is no run.parquet: its process ended before it wrote one".to_owned();
                    ListedRun::without_row(name, shown, "interrupted", Some(why))
                }
                error => ListedRun {
                    began: began(dir),
                    ..ListedRun::without_row(name, shown, UNREADABLE, Some(error.to_string()))
                },
            }
        }
    }
}

fn rated(glance: &Glance) -> Vec<RatedStep> {
    let Glance { run, steps, phases } = glance;
    let rated = |step: &StepGlance| RatedStep {
        span: run.step_span(step.into(), phases),
        tokens: step.tokens,
        peak_bytes: step.peak_bytes,
    };
    steps.iter().map(rated).collect()
}
