//! The command line: flags in, results to stdout, everything else to stderr.
//!
//! Exit codes: 0 done, 1 the work failed, 2 the input or the flags were wrong, 3 out of memory,
//! 130 interrupted.

#[cfg(feature = "torch")]
mod engine;
#[cfg(feature = "torch")]
mod progress;
#[cfg(feature = "torch")]
mod run;
mod rules;
mod show;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Puts a training step under instruments: where did time and memory go?
#[derive(Debug, Parser)]
#[command(name = "stepledger", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Train a toy model under instruments and keep its account
    #[cfg(feature = "torch")]
    Run(Box<run::RunArgs>),
    /// Print a run's account: time by phase, memory by category
    Show(show::ShowArgs),
    Rules(rules::RulesArgs),
}

/// What a command comes to: its exit code, or an error to tell.
type Outcome = anyhow::Result<u8>;

const DONE: u8 = 0;
const FAILED: u8 = 1;
const BAD_INPUT: u8 = 2;
#[cfg(feature = "torch")]
const INTERRUPTED: u8 = 130;

/// The program's entry. Commands that need libtorch are passed on to the engine, so that the others start
/// at once and load no CUDA library.
pub fn main() -> ExitCode {
    let code = conclude(match Cli::parse().command {
        #[cfg(feature = "torch")]
        Command::Run(_) => engine::call(),
        Command::Show(args) => show::show(&args),
        Command::Rules(args) => rules::rules(&args),
    });
    ExitCode::from(code)
}

/// What the engine does with the same arguments.
#[cfg(feature = "torch")]
fn main_in_engine() -> u8 {
    conclude(match Cli::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Show(args) => show::show(&args),
        Command::Rules(args) => rules::rules(&args),
    })
}

/// Tells an error on stderr, with its causes, and turns it into an exit code.
fn conclude(outcome: Outcome) -> u8 {
    match outcome {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => DONE,
        Err(error) => {
            eprintln!("stepledger: {error:#}");
            error.downcast_ref::<Exit>().map_or(FAILED, |exit| exit.code)
        }
    }
}

/// Whoever read our output (`head`, say) has seen enough.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>());
    io.is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
}

/// An error that wants an exit code of its own.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct Exit {
    code: u8,
    message: String,
}

impl Exit {
    /// The input or the flags were wrong.
    fn input(error: impl std::fmt::Display) -> anyhow::Error {
        Exit { code: BAD_INPUT, message: error.to_string() }.into()
    }
}
