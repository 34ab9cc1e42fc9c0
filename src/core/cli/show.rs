//! `stepledger show`: one run's account.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::exit::{DONE, Exit, Outcome};
use crate::report::{Account, Summary, render, summarize};
use crate::store::{Dataset, StoreError, resolve};

#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The run: its id, the beginning of it, or its folder [default: the newest in --out]
    run: Option<String>,
    /// The folder of runs to look in
    #[arg(long, value_name = "DIR", default_value = "runs")]
    out: PathBuf,
    /// Look at this step alone instead of all measured ones
    #[arg(long, value_name = "N")]
    step: Option<i64>,
    /// Print one JSON object (documented in the README)
    #[arg(long)]
    json: bool,
}

pub fn show(args: &ShowArgs) -> Outcome {
    let dir = resolve(&args.out, args.run.as_deref()).map_err(Exit::input)?;
    let account = read(&Dataset::open(&dir).map_err(Exit::input)?)?;
    let summary = summarize(&account, args.step).map_err(Exit::input)?;
    print(&summary, args.json)?;
    Ok(DONE)
}

/// Reads all tables of one run.
pub fn read(dataset: &Dataset) -> Result<Account, StoreError> {
    Ok(Account {
        run: dataset.run().clone(),
        steps: dataset.steps()?,
        phases: dataset.phases()?,
        ledger: dataset.ledger()?,
        allocations: dataset.allocations()?,
    })
}

/// Writes a summary to stdout, as JSON or as text.
pub fn print(summary: &Summary, json: bool) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    if json {
        serde_json::to_writer_pretty(&mut stdout, summary).map_err(std::io::Error::from)?;
        writeln!(stdout)?;
    } else {
        stdout.write_all(render(summary).as_bytes())?;
    }
    Ok(stdout.flush()?)
}
