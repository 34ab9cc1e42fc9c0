//! The `stepledger` program: reads the command, and opens the engine for commands that need libtorch.

use std::process::ExitCode;

fn main() -> ExitCode {
    stepledger::cli::main()
}
