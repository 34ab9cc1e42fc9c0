//! `stepledger rm`: runs and sweeps removed, after a look at what they are.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use super::exit::{DONE, Exit, FAILED, Outcome};
use super::machine;
use super::note::note;
use super::standing::is_here;
use crate::record::RunStatus;
use crate::report::file_bytes;
use crate::store::{
    Dataset, SweepContents, find_run, is_sweep_folder, refuse_link, removable, removable_sweep, remove,
    remove_sweep,
};

const AFTER_HELP: &str = "\
Removes only folders that a run or a sweep wrote and that hold nothing else: what else lies in one is named, and the \
folder left as it is. A sweep goes with all of its runs. What is still being written is left alone. If anything of what \
is named cannot be removed, nothing is.

Examples:
  stepledger rm 20260131-120000
  stepledger rm sweep-20260131-120000
  stepledger rm --yes $(stepledger list --where status=interrupted --json | jq -r '.runs[].dir')";

#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub struct RmArgs {
    /// The runs: their ids, the beginnings of them, or their folders; of a sweep its whole name or its folder
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,
    /// The folder of runs to look in
    #[arg(long, value_name = "DIR", default_value = "runs")]
    out: PathBuf,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

/// What is to go: a run, or a sweep with all of its runs.
struct Target {
    dir: PathBuf,
    /// Of a sweep.
    runs: Option<usize>,
    files: usize,
    bytes: u64,
}

pub fn run(args: &RmArgs) -> Outcome {
    let targets = named(args)?.iter().map(|dir| look(dir)).collect::<anyhow::Result<Vec<_>>>()?;
    if !args.yes && !confirmed(&targets)? {
        note("nothing was removed");
        return Ok(FAILED);
    }
    for target in &targets {
        match target.runs {
            None => drop(remove(&target.dir)?),
            Some(_) => drop(remove_sweep(&target.dir)?),
        }
        note(format_args!("removed {target}"));
    }
    Ok(DONE)
}

/// The folders that are named, each once however it is spelt, and none that goes with a sweep that is named too.
fn named(args: &RmArgs) -> anyhow::Result<Vec<PathBuf>> {
    let mut found: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
    for run in &args.runs {
        let dir = find_run(&args.out, run).map_err(Exit::input)?;
        // Before a link is taken for what it leads to.
        refuse_link(&dir).map_err(Exit::input)?;
        let place = dir.canonicalize().map_err(|error| Exit::input(format!("{}: {error}", dir.display())))?;
        found.entry(place).or_insert(dir);
    }
    let goes_with_a_sweep = |place: &Path| place.parent().is_some_and(|sweep| found.contains_key(sweep));
    let alone = found.iter().filter(|(place, _)| !goes_with_a_sweep(place));
    Ok(alone.map(|(_, dir)| dir.clone()).collect())
}

/// What removing a run or a sweep would remove, if it may be.
fn look(dir: &Path) -> anyhow::Result<Target> {
    if is_sweep_folder(dir) {
        let SweepContents { runs, files, bytes } = removable_sweep(dir).map_err(Exit::input)?;
        runs.iter().try_for_each(|run| refuse_elsewhere(run))?;
        return Ok(Target { dir: dir.to_owned(), runs: Some(runs.len()), files, bytes });
    }
    let contents = removable(dir).map_err(Exit::input)?;
    refuse_elsewhere(dir)?;
    Ok(Target { dir: dir.to_owned(), runs: None, files: contents.ours.len(), bytes: contents.bytes() })
}

/// Refuses a run that another machine may be writing: a lock is not seen from here.
fn refuse_elsewhere(dir: &Path) -> anyhow::Result<()> {
    let run = Dataset::open(dir).ok().map(|dataset| dataset.run().clone());
    match run.filter(|run| run.status == RunStatus::Running && !is_here(run, machine::host().as_deref())) {
        Some(run) => Err(Exit::input(format!(
            "{} says that it is running on {}, and whether it is cannot be seen from here; remove it there",
            dir.display(),
            run.machine.host.as_deref().unwrap_or("another machine")
        ))),
        None => Ok(()),
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self
            .runs
            .map(|runs| format!("a sweep with {runs} run{}, ", if runs == 1 { "" } else { "s" }))
            .unwrap_or_default();
        write!(f, "{} ({runs}{} files, {})", self.dir.display(), self.files, file_bytes(self.bytes))
    }
}

/// Asks on a terminal; elsewhere nobody can answer.
fn confirmed(targets: &[Target]) -> anyhow::Result<bool> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        let list: String = targets.iter().map(|target| format!("\n  {target}")).collect();
        return Err(Exit::input(format!("say --yes to remove, as there is no terminal to ask on:{list}")));
    }
    let mut stderr = std::io::stderr().lock();
    writeln!(stderr, "Remove for good:")?;
    for target in targets {
        writeln!(stderr, "  {target}")?;
    }
    write!(stderr, "Remove {}? [y/N] ", if targets.len() == 1 { "it" } else { "them" })?;
    stderr.flush()?;
    let mut answer = String::new();
    stdin.read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
