//! The command line: flags in, results to stdout, everything else to stderr.
//!
//! Exit codes: 0 done, 1 the work failed, 2 the input or the flags were wrong, 3 out of memory, 130 interrupted.
//! Of `compare --fail-if`: 0 passed, 1 a condition holds, 2 as above, 3 cannot be told.

mod baseline;
mod calibrate;
mod calibrate_noise;
mod cgroup;
mod compare;
mod contents;
mod doctor;
mod doctor_answers;
mod doctor_ask;
mod doctor_engine;
mod doctor_machine;
mod doctor_python;
mod engine;
mod exit;
mod experiment;
mod given;
mod grid_args;
mod interrupt;
mod launch;
mod list;
mod machine;
mod note;
mod patience;
mod plan;
mod plan_verify;
mod rm;
mod rules;
mod rules_reference;
mod run_args;
mod run_setup;
mod settings;
mod show;
mod show_views;
mod standing;
mod sweep;
mod sweep_folder;
mod sweep_progress;
mod terminal;
mod words;

pub use calibrate::{CalibrateArgs, calibrated, check_calibration_home, keep_rates};
pub use contents::contents;
pub use doctor::DoctorArgs;
pub use doctor_answers::{Line, Looking, Teller};
pub use doctor_ask::{NVTX_TOOL, NVTX_VARIABLE, UNSET_NVTX_TOOL};
pub use engine::{Engine, Launcher};
pub use exit::{DONE, Exit, FAILED, INTERRUPTED, OUT_OF_MEMORY, Outcome};
pub use interrupt::stop_flag;
pub use machine::memory_left_bytes;
pub use note::note;
pub use run_args::RunArgs;
pub use settings::all_cores;
pub use show::{print, read};

use clap::{Parser, Subcommand};

use crate::sweep::follow;
use given::Given;
use grid_args::with_lists_below_zero;

/// Puts a training step under instruments: where did time and memory go?
#[derive(Debug, Parser)]
#[command(name = "stepledger", version, arg_required_else_help = true, after_long_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Examples:
  stepledger run                       train the toy GPT and print its account
  stepledger show                      the account of the newest run again
  stepledger show --json | jq .ledger  ... for programs
  stepledger show --timeline           a picture of the step's memory
  stepledger experiment RUN_A RUN_B    what one change did
  stepledger compare RUNS_A RUNS_B     is it faster? from repeated runs
  stepledger plan --capacity-mb 64     the largest batch that fits, by policy
  stepledger list --where batch=8      the runs of a folder
  stepledger doctor                    what works on this machine
  stepledger rules --list              the rules, their inputs and thresholds

Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 the work failed, 2 the input or the \
flags were wrong, 3 out of memory (of `compare --fail-if`: it cannot be told), 130 interrupted.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Train a toy model under instruments and keep its account
    Run(Box<RunArgs>),
    /// Print a run's account: time by phase, memory by category
    Show(show::ShowArgs),
    Rules(rules::RulesArgs),
    /// Record what one change did, from two runs that differ in nothing else
    Experiment(experiment::ExperimentArgs),
    /// Judge repeated runs: faster, slower, the same, or not to be told
    Compare(compare::CompareArgs),
    Baseline(baseline::BaselineArgs),
    /// Measure what is true of this machine, whatever is run on it
    Calibrate(calibrate::CalibrateArgs),
    /// Run a grid of settings, and say which is fastest in the memory there is
    #[command(after_long_help = sweep::AFTER_HELP)]
    Sweep(Box<Given<sweep::SweepArgs>>),
    /// Find the largest batch that fits a memory, and the best way to train with it
    Plan(Box<plan::PlanArgs>),
    /// List the runs of a folder, filtered and sorted
    List(list::ListArgs),
    /// Remove runs and sweeps
    Rm(rm::RmArgs),
    /// Say what works on this machine, what does not, and what to do about it
    Doctor(doctor::DoctorArgs),
}

/// Reads this process's command line and does what it says; returns the exit code. What needs libtorch is left to
/// `engine`.
pub fn main(engine: &impl Engine) -> u8 {
    if !follow() {
        return INTERRUPTED;
    }
    let words = with_lists_below_zero(std::env::args_os());
    exit::conclude(match Cli::parse_from(words).command {
        Command::Run(args) => engine.run(&args),
        Command::Show(args) => show::show(&args),
        Command::Rules(args) => rules::rules(&args),
        Command::Experiment(args) => experiment::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Baseline(args) => baseline::run(&args),
        Command::Calibrate(args) => calibrate::run(&args, engine),
        Command::Sweep(args) => sweep::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::List(args) => list::run(&args),
        Command::Rm(args) => rm::run(&args),
        Command::Doctor(args) => doctor::run(&args, engine),
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// A line that is broken by hand would be broken again by a narrow terminal.
    #[test]
    fn what_follows_the_flags_in_help_suits_any_terminal() {
        let command = Cli::command();
        let told = |command: &clap::Command| {
            let text = command.get_after_long_help().or(command.get_after_help());
            text.map(ToString::to_string).unwrap_or_default()
        };
        for command in command.get_subcommands().chain([&command]) {
            for line in told(command).lines().filter(|line| !line.is_empty()) {
                let is_whole = match line.starts_with("  ") {
                    // A command may be long; what is said beside it may not.
                    true => !line.trim_start().contains("   ") || line.chars().count() <= 80,
                    false => line.ends_with(['.', ':']),
                };
                assert!(is_whole, "{}: {line:?}", command.get_name());
            }
        }
    }
}
