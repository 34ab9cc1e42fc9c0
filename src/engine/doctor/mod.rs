//! The checks of `stepledger doctor` that need libtorch: printed as JSON for the program, which asked in a process of
//! its own.

mod cuda;
mod libtorch;
mod tools;

use std::io::Write;

use stepledger_core::cli::{DONE, Outcome};

/// Looks at everything, in the order of what rests on what.
pub fn examine() -> Outcome {
    let mut checks = vec![libtorch::version(), libtorch::hook()];
    checks.extend(cuda::checks());
    checks.extend(tools::checks());
    writeln!(std::io::stdout(), "{}", serde_json::to_string(&checks)?)?;
    Ok(DONE)
}
