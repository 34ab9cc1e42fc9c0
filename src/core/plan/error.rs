//! What a plan cannot be made from, and the way out.

use super::measured::NotUsed;
use crate::record::count;

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error("a capacity of {0} bytes holds nothing; allowed: any number above 0")]
    Capacity(i64),

    #[error(
        "a capacity of {} bytes is less than the parameters alone take ({}); the floor, one sequence with --checkpoint \
         {checkpoint}, is {} bytes ({floor_mb} MiB): give that or more with --capacity-mb, or plan for a smaller model",
        count(*capacity_bytes),
        count(*parameter_bytes),
        count(*floor_bytes)
    )]
    BelowParameters {
        capacity_bytes: i64,
        parameter_bytes: i64,
        checkpoint: String,
        floor_bytes: i64,
        /// Rounded up, so that it can be given as it stands.
        floor_mb: i64,
    },

    #[error(
        "there is no theory of this setting: it covers the toy models without dropout only; measure it at two \
         batches and name the runs with --from"
    )]
    NoTheory,

    #[error("no run can be used:{}", list(.0))]
    NoRun(Vec<NotUsed>),

    #[error(
        "the runs are not of one workload: they differ in {fields}; name runs of one of them with --from{choose}"
    )]
    Mixed { fields: String, choose: String },

    #[error(
        "one batch is not enough to plan from, and there is no theory of this program: measure each policy at a \
         second batch:{}{}",
        lines(commands),
        unless_empty("\nNot used:", not_used)
    )]
    OneBatch { commands: Vec<String>, not_used: Vec<NotUsed> },

    #[error(
        "{}{}",
        no_peak(*traced),
        unless_empty("\nNot used:", not_used)
    )]
    NoPeak {
        /// Memory was traced, and yet no step has a peak.
        traced: bool,
        not_used: Vec<NotUsed>,
    },

    #[error(
        "the peak does not grow with the batch in these runs, so that they tell no largest batch, and there is no \
         theory of this program: measure larger batches:{}{}",
        lines(commands),
        unless_empty("\nNot used:", not_used)
    )]
    FlatPeak { commands: Vec<String>, not_used: Vec<NotUsed> },

    #[error("checkpointing policy {asked:?} is none of those there are to plan with: {known}")]
    NoSuchPolicy { asked: String, known: String },
}

fn no_peak(traced: bool) -> &'static str {
    match traced {
        false => {
            "memory was not traced in these runs, so that nothing tells what fits, and there is no theory of this \
             program: run them again with --trace allocations, a loop of your own with `Options::trace`"
        }
        true => {
            "no measured step of these runs has a peak, though their memory was traced, so that nothing tells what \
             fits, and there is no theory of this program: `stepledger show` of one says what it is missing; run \
             them again"
        }
    }
}

/// How many runs are told of one by one: a folder of a thousand may have a thousand that are not used.
pub const RUNS_TOLD: usize = 5;

/// How many of so many runs that leaves.
pub fn more_than_told(runs: usize) -> Option<usize> {
    runs.checked_sub(RUNS_TOLD).filter(|&more| more > 0)
}

/// The first of the lines, each on a line of its own, and how many more there are.
pub fn some_of(lines: impl ExactSizeIterator<Item = String>) -> String {
    let more = more_than_told(lines.len()).map(|more| format!("\n  and {more} more"));
    lines.take(RUNS_TOLD).map(|line| format!("\n  {line}")).chain(more).collect()
}

fn lines(commands: &[String]) -> String {
    commands.iter().map(|command| format!("\n  {command}")).collect()
}

fn list(runs: &[NotUsed]) -> String {
    some_of(runs.iter().map(|NotUsed { run, why }| format!("{run}: {why}")))
}

fn unless_empty(heading: &str, runs: &[NotUsed]) -> String {
    if runs.is_empty() { String::new() } else { format!("{heading}{}", list(runs)) }
}
