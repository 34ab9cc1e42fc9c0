//! `stepledger compare`: is one side of runs faster than another, and what else became of it?

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::exit::{CANNOT_TELL, DONE, Exit, FAILED, Outcome};
use super::show::write_json;
use super::terminal;
use crate::compare::{Comparison, Condition, GateOutcome, Side, compare, judge, read_sides};
use crate::report::render_comparison;
use crate::store::{Calibrations, Noise, StoreError, home};

const AFTER_HELP: &str = "\
A side is a run, a folder of repeated runs of one configuration, or a baseline (`stepledger baseline`). The unit is \
the run of a process, not the step: repeats are paired in the order in which they started, so let both sides take \
turns, five times or more, each run with 60 measured steps or more (at most half are cut off as warm-up, and 30 must be \
left). Then the verdict is `faster` or `slower` where the 95 % interval of the pairs' ratios lies \
wholly beyond the margin (1 %, or this machine's own noise), `same` where it lies wholly within, and `cannot_tell` \
otherwise, with roughly the number of pairs that would settle it. Runs that change their level on the way, or ran at the \
same time, are not judged; sides that did not take turns are, on less evidence.

A name is looked up in --out first (a run, a folder of runs), then among the baselines, then as a path.

A condition is METRIC>+N% or METRIC<-N%. METRIC: step, token (time a token), tokens_per_s, peak, a phase (forward, \
backward, …) or a category (activation, …). With conditions the exit code is 0 if all pass, 1 if one holds, 3 if \
none holds and one cannot be told; 2 means that the input or the flags were wrong.

Examples:
  stepledger compare main-runs patch-runs
  stepledger compare main patch-runs --fail-if 'step>+5%' --fail-if 'peak>+1%'
  stepledger compare 20260131-1 20260131-2 --json | jq .verdict";

#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub struct CompareArgs {
    /// The side to compare against: a run, a folder of runs, or a baseline
    base: String,
    /// The side that is judged
    candidate: String,
    /// The folder of runs to look in
    #[arg(long, value_name = "DIR", default_value = "runs")]
    out: PathBuf,
    /// Print one JSON object (documented in the README)
    #[arg(long)]
    json: bool,
    /// Exit with 1 where this holds, such as 'step>+5%'; may be given several times
    #[arg(long, value_name = "CONDITION")]
    fail_if: Vec<Condition>,
}

pub fn run(args: &CompareArgs) -> Outcome {
    let (base, candidate) = read_sides(&args.out, &args.base, &args.candidate).map_err(Exit::input)?;
    let noise = known_noise(&base).map_err(Exit::input)?;
    let mut comparison = compare(&base, &candidate, noise.as_ref()).map_err(Exit::input)?;
    comparison.gate = judge(&comparison, &args.fail_if);
    print(&comparison, args.json)?;
    Ok(exit_code(&comparison))
}

/// What `stepledger calibrate --noise` found on the machine that the runs were made on, with such a device.
fn known_noise(side: &Side) -> Result<Option<Noise>, StoreError> {
    let Some(home) = home() else { return Ok(None) };
    let known = Calibrations::load(&home)?;
    Ok(known.of(&side.machine).and_then(|known| known.noise_of(&side.device)).cloned())
}

fn print(comparison: &Comparison, json: bool) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    match json {
        true => write_json(&mut stdout, comparison)?,
        false => {
            let width = terminal::width(terminal::USUAL);
            stdout.write_all(render_comparison(comparison, width).as_bytes())?;
        }
    }
    Ok(stdout.flush()?)
}

fn exit_code(comparison: &Comparison) -> u8 {
    let any = |outcome| comparison.gate.iter().any(|judged| judged.outcome == outcome);
    match (any(GateOutcome::Holds), any(GateOutcome::CannotTell)) {
        (true, _) => FAILED,
        (false, true) => CANNOT_TELL,
        (false, false) => DONE,
    }
}
