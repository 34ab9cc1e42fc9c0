//! `stepledger show`: one run's account.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::exit::{DONE, Exit, Outcome};
use super::machine;
use super::show_views::show_view;
use super::standing::as_it_stands;
use super::terminal;
use super::words::{at_least, between, mebibytes, one_of, whole};
use crate::report::{
    Account, Asked, Findings, Summary, creep_instant, find, peak_instant, render, render_findings, summarize,
};
use crate::rules::Lang;
use crate::store::{Dataset, StoreError, resolve};

const AFTER_HELP: &str = "\
Times are over the measured steps, warm-up left out; the ledger is that of the last one. The findings come \
from the rules (`stepledger rules --list`); on a CPU the device's busy share is the share of the step in \
forward, backward and optimizer.

Examples:
  stepledger show 20260131 --step 42
  stepledger show --capacity-mb 16000
  stepledger show --json | jq '.ledger.peak'
  stepledger show --peak --top 5     what was alive at the peak, by scope
  stepledger show --by scope         a line for each module
  stepledger show --timeline         a picture of the step's memory
  stepledger show --timeline --csv > step.csv";

/// The widths that a picture can have.
pub const NARROWEST: usize = 40;
pub const WIDEST: usize = 1000;

#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub struct ShowArgs {
    /// The run: its id, the beginning of it, or its folder [default: the newest in --out]
    run: Option<String>,
    /// The folder of runs to look in
    #[arg(long, value_name = "DIR", default_value = "runs")]
    out: PathBuf,
    /// Look at this step alone instead of all measured ones
    #[arg(long, value_name = "N", value_parser = whole::<i64>)]
    step: Option<i64>,
    /// Show what was alive at the step's peak: by category, by scope, and the largest blocks
    #[arg(long, group = "view")]
    peak: bool,
    /// How many of the largest blocks to list
    #[arg(long, value_name = "N", default_value = "20", requires = "peak", value_parser = at_least(1_usize), allow_negative_numbers = true)]
    top: usize,
    /// Show one table of parts: parameters, gradients, states, activations, forward and backward time of each
    #[arg(long, value_name = "PART", group = "view")]
    by: Option<Part>,
    /// Show the step's memory over time as a picture in text
    #[arg(long, group = "view")]
    timeline: bool,
    /// Print the timeline as CSV: a row for each instant at which memory changed
    #[arg(long, requires = "timeline", conflicts_with = "json")]
    csv: bool,
    /// The picture's width in columns [default: COLUMNS, or the terminal's, or 100]
    #[arg(long, value_name = "W", requires = "timeline", value_parser = between(NARROWEST, WIDEST), allow_negative_numbers = true)]
    width: Option<usize>,
    /// The memory to fit into, in MiB, for the finding of what to try next [default: the device's]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = mebibytes)]
    capacity_mb: Option<f64>,
    /// The language of the sentences among the findings
    #[arg(long, default_value = "en", value_parser = one_of::<Lang>(Lang::WORDS))]
    lang: Lang,
    /// Print one JSON object (documented in the README)
    #[arg(long)]
    json: bool,
}

/// What `--by` can be.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Part {
    /// Each module and scope
    Scope,
}

/// A view in place of the whole account.
pub enum View {
    Peak { top: usize },
    ByScope,
    Timeline { csv: bool, width: Option<usize> },
}

impl ShowArgs {
    fn view(&self) -> Option<View> {
        let timeline = || View::Timeline { csv: self.csv, width: self.width };
        let peak = self.peak.then_some(View::Peak { top: self.top });
        peak.or(self.by.map(|Part::Scope| View::ByScope)).or_else(|| self.timeline.then(timeline))
    }
}

pub fn show(args: &ShowArgs) -> Outcome {
    let dir = resolve(&args.out, args.run.as_deref()).map_err(Exit::input)?;
    let dataset = Dataset::open(&dir).map_err(Exit::input)?;
    if let Some(view) = args.view() {
        return show_view(&dataset, &view, args.step, args.json);
    }
    let account = read(&dataset, args.step)?;
    let summary = summarize(&account, args.step).map_err(Exit::input)?;
    print(&summary, &Asked { capacity_mb: args.capacity_mb, lang: args.lang }, args.json)?;
    Ok(DONE)
}

/// Reads what the account of one run, or of its step `only`, is made of.
pub fn read(dataset: &Dataset, only: Option<i64>) -> Result<Account, StoreError> {
    let (steps, ledger) = (dataset.steps()?, dataset.ledger()?);
    let peak = peak_instant(&steps, &ledger, only);
    let alive_at_peak = peak.map(|at_ns| dataset.alive_at(at_ns)).transpose()?.unwrap_or_default();
    let creep = creep_instant(dataset.run(), &steps, &ledger);
    let survivors = creep.map(|at_ns| dataset.alive_at(at_ns)).transpose()?.unwrap_or_default();
    let (phases, experiments) = (dataset.phases()?, dataset.experiments()?);
    let run = as_it_stands(dataset.run().clone(), dataset.dir(), machine::host().as_deref());
    let failure = run.out_of_memory.as_ref().map(|failed| dataset.alive_at(failed.at_ns));
    let alive_at_failure = failure.transpose()?.unwrap_or_default();
    Ok(Account { run, steps, phases, ledger, alive_at_peak, alive_at_failure, survivors, experiments })
}

/// A summary with its findings, as one object.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    findings: Findings,
}

/// Writes a summary and what the rules find in it to stdout, as JSON or as text.
pub fn print(summary: &Summary, asked: &Asked, json: bool) -> anyhow::Result<()> {
    let findings = find(summary, asked);
    let mut stdout = std::io::stdout().lock();
    if json {
        write_json(&mut stdout, &Shown { summary, findings })?;
    } else {
        let width = terminal::width(terminal::USUAL);
        write!(stdout, "{}\n{}", render(summary, width), render_findings(&findings, width))?;
    }
    Ok(stdout.flush()?)
}

/// Writes a value as indented JSON and ends the line.
pub fn write_json(out: &mut impl Write, value: &impl Serialize) -> std::io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}
