//! The command line.

mod rules;

use std::process::ExitCode;

use clap::Parser;

pub use rules::RulesArgs;

/// Puts a training step under instruments
#[derive(Debug, Parser)]
#[command(version)]
pub enum Cli {
    /// Apply one of the rules to numbers of your own
    Rules(RulesArgs),
}

impl Cli {
    pub fn run(&self) -> ExitCode {
        let Cli::Rules(args) = self;
        rules::run(args).unwrap_or_else(|error| {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        })
    }
}
