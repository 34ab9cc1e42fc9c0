//! The views of `stepledger show`, from outside: every number against the rows they come from.

#[path = "../common/program.rs"]
mod program;

mod by_scope;
mod creep;
mod findings;
mod flags;
mod gpu;
mod made_up;
mod peak;
mod step;
mod timeline;

use made_up::Plan;
use program::{Runs, program, stderr, stdout};
use serde_json::Value;
use stepledger::record::AllocationRow;

/// A folder with one made-up run in it.
struct Shown {
    runs: Runs,
    lifetimes: Vec<AllocationRow>,
}

impl Shown {
    fn new(plan: Plan) -> Self {
        let runs = Runs::new();
        let lifetimes = plan.write(&runs.file("runs"), "made-up");
        Shown { runs, lifetimes }
    }

    fn json(&self, flags: &str) -> Value {
        self.runs.show(flags)
    }

    /// What `show` prints, and that it succeeds.
    fn text(&self, flags: &str) -> String {
        let (code, text, errors) = self.outcome(flags);
        assert_eq!(code, Some(0), "show {flags}: {errors}");
        text
    }

    fn outcome(&self, flags: &str) -> (Option<i32>, String, String) {
        let mut command = program();
        command.arg("show").arg("--out").arg(self.runs.file("runs")).args(flags.split_whitespace());
        let output = command.env_remove("COLUMNS").output().unwrap();
        (output.status.code(), stdout(&output), stderr(&output))
    }
}

fn int(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value} is no whole number"))
}

/// The sum of a field over a list of objects.
fn sum(list: &Value, field: &str) -> i64 {
    list.as_array().unwrap().iter().map(|item| int(&item[field])).sum()
}
