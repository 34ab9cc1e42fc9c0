//! `stepledger compare` and `stepledger baseline`, from outside, on made-up runs.

#[path = "../common/program.rs"]
mod program;

mod abstentions;
mod bad_input;
mod baselines;
mod calibrations;
mod gate;
mod made_up;
mod shape;
mod verdicts;

use made_up::{Made, sides};
use program::{Runs, program, stderr, stdout};
use serde_json::Value;

/// What the program said.
struct Said {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Said {
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|_| panic!("{}{}", self.stdout, self.stderr))
    }
}

/// Runs the program on the folder `runs`.
fn stepledger(runs: &Runs, arguments: &[&str]) -> Said {
    let mut command = program();
    command.args(arguments).arg("--out").arg(runs.path()).env("STEPLEDGER_HOME", runs.file("home"));
    let output = command.output().unwrap();
    Said { code: output.status.code(), stdout: stdout(&output), stderr: stderr(&output) }
}

/// Two sides of so many repeats, in folders `base` and `candidate`.
fn repeated(pairs: usize, base: &Made, candidate: &Made) -> Runs {
    let runs = Runs::new();
    sides(runs.path(), pairs, base, candidate);
    runs
}

fn compare(runs: &Runs, flags: &[&str]) -> Said {
    stepledger(runs, &[&["compare", "base", "candidate"], flags].concat())
}

/// `compare --json` of both folders, which succeeds.
fn compared(pairs: usize, base: &Made, candidate: &Made) -> Value {
    let said = compare(&repeated(pairs, base, candidate), &["--json"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    said.json()
}

/// The metric called `name`.
fn metric<'a>(comparison: &'a Value, name: &str) -> &'a Value {
    let metrics = comparison["metrics"].as_array().unwrap();
    metrics
        .iter()
        .find(|metric| metric["name"] == name)
        .unwrap_or_else(|| panic!("no {name} in {comparison}"))
}

#[track_caller]
fn near(value: &Value, expected: f64, by: f64) {
    let found = value.as_f64().unwrap_or_else(|| panic!("{value} is no number"));
    assert!((found - expected).abs() <= by, "{found} is not {expected} to ±{by}");
}
