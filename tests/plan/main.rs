//! `stepledger plan`, from outside.

#[path = "../list/made_up.rs"]
#[allow(dead_code)] // this file uses its own part of it
mod made_up;
#[path = "../common/program.rs"]
mod program;

mod input;
#[cfg(feature = "torch")]
mod measured;

use program::{Runs, program, stderr, stdout};
use serde_json::Value;

/// Runs `stepledger plan` with these flags, in the folder of these runs. What was measured of the machine is theirs too.
fn outcome(runs: &Runs, flags: &str) -> (Option<i32>, String, String) {
    let mut program = program();
    program.arg("plan").args(flags.split_whitespace()).current_dir(runs.path());
    program.env("STEPLEDGER_HOME", runs.file("home")).env_remove("COLUMNS");
    let output = program.stdin(std::process::Stdio::null()).output().unwrap();
    (output.status.code(), stdout(&output), stderr(&output))
}

/// `plan --json` with these flags, and that something fits.
fn plan(runs: &Runs, flags: &str) -> Value {
    let (code, text, errors) = outcome(runs, &format!("--json {flags}"));
    assert_eq!(code, Some(0), "plan {flags}: {errors}");
    serde_json::from_str(&text).unwrap()
}

/// The plan of one policy.
fn policy<'p>(plan: &'p Value, checkpoint: &str) -> &'p Value {
    let policies = plan["policies"].as_array().unwrap();
    let found = policies.iter().find(|policy| policy["checkpoint"] == checkpoint);
    found.unwrap_or_else(|| panic!("no policy {checkpoint} in {plan}"))
}
