//! `stepledger show`: one run's account.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::exit::{DONE, Exit, Outcome};
use super::words::{mebibytes, one_of};
use crate::report::{
    Account, Asked, Findings, Summary, find, peak_instant, render, render_findings, summarize,
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
  stepledger show --json | jq '.ledger.peak'";

#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub struct ShowArgs {
    /// The run: its id, the beginning of it, or its folder [default: the newest in --out]
    run: Option<String>,
    /// The folder of runs to look in
    #[arg(long, value_name = "DIR", default_value = "runs")]
    out: PathBuf,
    /// Look at this step alone instead of all measured ones
    #[arg(long, value_name = "N")]
    step: Option<i64>,
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

pub fn show(args: &ShowArgs) -> Outcome {
    let dir = resolve(&args.out, args.run.as_deref()).map_err(Exit::input)?;
    let account = read(&Dataset::open(&dir).map_err(Exit::input)?, args.step)?;
    let summary = summarize(&account, args.step).map_err(Exit::input)?;
    print(&summary, &Asked { capacity_mb: args.capacity_mb, lang: args.lang }, args.json)?;
    Ok(DONE)
}

/// Reads what the account of one run, or of its step `only`, is made of.
pub fn read(dataset: &Dataset, only: Option<i64>) -> Result<Account, StoreError> {
    let (steps, ledger) = (dataset.steps()?, dataset.ledger()?);
    let peak = peak_instant(&steps, &ledger, only);
    let alive_at_peak = peak.map(|at_ns| dataset.alive_at(at_ns)).transpose()?.unwrap_or_default();
    let (phases, experiments) = (dataset.phases()?, dataset.experiments()?);
    Ok(Account { run: dataset.run().clone(), steps, phases, ledger, alive_at_peak, experiments })
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
        write!(stdout, "{}\n{}", render(summary), render_findings(&findings))?;
    }
    Ok(stdout.flush()?)
}

/// Writes a value as indented JSON and ends the line.
pub fn write_json(out: &mut impl Write, value: &impl Serialize) -> std::io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}
