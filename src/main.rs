use std::process::ExitCode;

use clap::Parser;
use stepledger::cli::Cli;

fn main() -> ExitCode {
    Cli::parse().run()
}
