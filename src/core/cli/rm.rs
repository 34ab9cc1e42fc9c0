//! `stepledger rm`: runs removed, after a look at what they are.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use super::exit::{DONE, Exit, FAILED, Outcome};
use super::list::is_here;
use super::machine;
use crate::record::RunStatus;
use crate::report::file_bytes;
use crate::store::{Contents, Dataset, find_run, removable, remove};

const AFTER_HELP: &str = "\
Removes only folders that a run wrote and that hold nothing else: what else lies in one is named, and the folder left \
as it is. A run that is still being written is left alone. If any of the runs cannot be removed, none is.

Examples:
  stepledger rm 20260131-120000
  stepledger rm --yes $(stepledger list --where status=interrupted --json | jq -r '.runs[].dir')";

#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub struct RmArgs {
    /// The runs: their ids, the beginnings of them, or their folders
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,
    /// The folder of runs to look in
    #[arg(long, value_name = "DIR", default_value = "runs")]
    out: PathBuf,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub fn run(args: &RmArgs) -> Outcome {
    let found: Result<BTreeSet<PathBuf>, _> = args.runs.iter().map(|run| find_run(&args.out, run)).collect();
    let found = found.map_err(Exit::input)?;
    let looked_at =
        found.into_iter().map(|dir| Ok((look(&dir)?, dir))).collect::<anyhow::Result<Vec<_>>>()?;
    if !args.yes && !confirmed(&looked_at)? {
        eprintln!("nothing was removed");
        return Ok(FAILED);
    }
    for (_, dir) in &looked_at {
        let removed = remove(dir)?;
        eprintln!("removed {}", told(&removed, dir));
    }
    Ok(DONE)
}

/// What removing a run would remove, if it may be.
fn look(dir: &Path) -> anyhow::Result<Contents> {
    let contents = removable(dir).map_err(Exit::input)?;
    // A lock is not seen from another machine.
    let run = Dataset::open(dir).ok().map(|dataset| dataset.run().clone());
    match run.filter(|run| run.status == RunStatus::Running && !is_here(run, machine::host().as_deref())) {
        Some(run) => Err(Exit::input(format!(
            "{} says that it is running on {}, and whether it is cannot be seen from here; remove it there",
            dir.display(),
            run.machine.host.as_deref().unwrap_or("another machine")
        ))),
        None => Ok(contents),
    }
}

fn told(contents: &Contents, dir: &Path) -> String {
    format!("{} ({} files, {})", dir.display(), contents.ours.len(), file_bytes(contents.bytes()))
}

/// Asks on a terminal; elsewhere nobody can answer.
fn confirmed(runs: &[(Contents, PathBuf)]) -> anyhow::Result<bool> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        let list: String =
            runs.iter().map(|(contents, dir)| format!("\n  {}", told(contents, dir))).collect();
        return Err(Exit::input(format!("say --yes to remove, as there is no terminal to ask on:{list}")));
    }
    let mut stderr = std::io::stderr().lock();
    writeln!(stderr, "Remove for good:")?;
    for (contents, dir) in runs {
        writeln!(stderr, "  {}", told(contents, dir))?;
    }
    write!(stderr, "Remove {}? [y/N] ", if runs.len() == 1 { "it" } else { "them" })?;
    stderr.flush()?;
    let mut answer = String::new();
    stdin.read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
