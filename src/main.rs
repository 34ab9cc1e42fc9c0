//! The `stepledger` program. It names stepledger-core only: whatever is named here is linked, and libtorch
//! must not be.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(stepledger_core::cli::main(&stepledger_core::cli::Launcher))
}
