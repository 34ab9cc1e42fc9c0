//! `stepledger list` and `stepledger rm`, from outside.

#[path = "../common/program.rs"]
mod program;

mod listing;
mod made_up;
mod removing;

use made_up::MadeUp;
use program::{Runs, program, stderr, stdout};
use serde_json::Value;

/// Runs `stepledger COMMAND --out <folder>` with these words after it.
fn outcome(runs: &Runs, command: &str, words: &[&str]) -> (Option<i32>, String, String) {
    let mut program = program();
    program.arg(command).arg("--out").arg(runs.file("runs")).args(words).stdin(std::process::Stdio::null());
    let output = program.output().unwrap();
    (output.status.code(), stdout(&output), stderr(&output))
}

/// `list --json` with these words, and that it succeeds.
fn listed(runs: &Runs, words: &[&str]) -> Vec<Value> {
    let (code, text, errors) = outcome(runs, "list", &[&["--json"], words].concat());
    assert_eq!(code, Some(0), "list {words:?}: {errors}");
    let list: Value = serde_json::from_str(&text).unwrap();
    list["runs"].as_array().unwrap().clone()
}

fn ids(list: &[Value]) -> Vec<&str> {
    list.iter().map(|run| run["run_id"].as_str().unwrap()).collect()
}
