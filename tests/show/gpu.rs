//! A step of a GPU, whose device goes on when it has ended on the host: what it took, and what did not belong to it.

use std::process::Command;

use serde_json::{Value, json};
use stepledger::record::Trace;

use super::Shown;
use super::made_up::Plan;
use super::program::{Runs, program, stderr};

const GPU: Plan = Plan { trace: Trace::Phases, waits_every: Some(1), ..Plan::USUAL };

/// What a command tells as JSON.
fn answer(mut command: Command) -> Value {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// A pass of 50 ms after each step that has waited; and whether it is known when the device was through.
#[test]
fn a_validation_pass_between_two_steps_is_no_steps_time() {
    for (every, leads) in [(1, true), (1, false), (4, true), (4, false)] {
        let plan = Plan { steps: 18, waits_every: Some(every), pass_ms: 50, leads, ..GPU };
        let shown = Shown::new(plan);
        let account = shown.json("");
        let step = &account["step"];
        assert_eq!(step["median_ms"], 10.0, "{every} {leads}");
        assert_eq!(step["tokens_per_s"], 10_000.0);
        // 8 of 10 ms, a fifth of which was busy, and 2 at the optimizer.
        if every == 1 {
            assert_eq!(step["device_busy_pct"], 36.0, "{leads}");
        }
        let mut list = program();
        list.args(["list", "--json", "--out"]).arg(shown.runs.file("runs"));
        let listed = &answer(list)["runs"][0];
        assert_eq!((&listed["step_ms"], &listed["tokens_per_s"]), (&json!(10.0), &json!(10_000.0)));
    }
}

#[test]
fn the_last_step_lasts_until_the_device_is_through_with_it() {
    let step = |plan, flags| Shown::new(plan).json(flags)["step"]["median_ms"].clone();
    assert_eq!(step(GPU, "--step 13"), 10.0);
    assert_eq!(step(Plan { leads: false, ..GPU }, "--step 13"), 8.0, "not known");
    assert_eq!(step(Plan { leads: false, ..GPU }, "--step 12"), 10.0, "at most until the next one");
}

/// Steps 6 to 8 are not in the tables: nor are they in the time of step 5.
#[test]
fn a_step_that_is_missing_is_not_charged_to_the_one_before() {
    for (leads, of_its_own) in [(true, 10.0), (false, 8.0)] {
        let shown = Shown::new(Plan { gone: (6, 9), leads, ..GPU });
        assert_eq!(shown.json("--step 5")["step"]["median_ms"], of_its_own);
        assert_eq!(shown.json("")["step"]["max_ms"], 10.0);
        let text = shown.text("--step 9");
        assert!(text.contains("step 9 alone; the host's time: no wait"), "{text}");
    }
    let cycles =
        |gone| Shown::new(Plan { steps: 18, waits_every: Some(4), gone, ..GPU }).json("")["step"].clone();
    let (whole, torn) = (cycles((0, 0)), cycles((9, 10)));
    assert_eq!((&whole["cycles"], &torn["cycles"]), (&json!(3), &json!(2)));
    assert_eq!((&whole["median_ms"], &torn["median_ms"]), (&json!(10.0), &json!(10.0)));
}

/// The rows of "Where the time went", and their sums.
#[test]
fn the_rows_of_the_table_add_up_to_the_step() {
    let cpu = Plan { trace: Trace::Phases, ..Plan::USUAL };
    let cycles = Plan { steps: 18, waits_every: Some(4), ..GPU };
    for plan in [cpu, GPU, Plan { pass_ms: 50, ..GPU }, Plan { leads: false, ..GPU }, cycles] {
        for flags in ["", "--step 7"] {
            let shown = Shown::new(plan);
            let account = shown.json(flags);
            let goes_on = &account["device_goes_on"];
            assert_eq!(
                goes_on.is_null(),
                account["device"] == "cpu" || account["step"]["cycle_steps"].is_null()
            );
            let rows: Vec<&Value> = account["phases"]
                .as_array()
                .unwrap()
                .iter()
                .chain([goes_on])
                .filter(|row| !row.is_null())
                .collect();
            let sum = |field: &str| rows.iter().map(|row| number(&row[field])).sum::<f64>();
            let is = |sum: f64, whole: f64| assert!((sum - whole).abs() < 1e-6, "{plan:?} {flags}: {rows:?}");
            is(sum("total_ms"), number(&account["step"]["total_ms"]));
            is(sum("median_ms"), number(&account["step"]["median_ms"]));
            is(sum("share_pct"), 100.0);
            let in_findings = account["findings"]["hotspots"].as_array().unwrap();
            let first = rows.iter().find(|row| row["name"] == in_findings[0]["name"]).unwrap();
            assert!(in_findings.len() < rows.len() || in_findings[0]["share_pct"] == first["share_pct"]);
            printed_rows_add_up(&shown.text(flags));
        }
    }
    let account = Shown::new(GPU).json("");
    let goes_on = &account["device_goes_on"];
    assert_eq!(
        [&goes_on["median_ms"], &goes_on["total_ms"], &goes_on["share_pct"], &goes_on["calls"]],
        [&json!(2.0), &json!(24.0), &json!(20.0), &json!(12)]
    );
    assert_eq!(account["step"]["total_ms"], 120.0);
}

/// Each printed with three digits.
fn printed_rows_add_up(text: &str) {
    let table = text.split("Where the time went\n").nth(1).unwrap_or_else(|| panic!("{text}"));
    let cells = |line: &str| -> Option<[f64; 3]> {
        let cells: Vec<&str> = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        let cell = |place: usize| printed(cells.get(place)?);
        Some([cell(1)?, cell(2)?, cell(3)?])
    };
    let rows: Vec<[f64; 3]> = table.lines().skip(1).map_while(cells).collect();
    let (step, parts) = rows.split_last().unwrap();
    assert!(parts.len() >= 5, "{text}");
    for column in 0..3 {
        let sum: f64 = parts.iter().map(|row| row[column]).sum();
        assert!((sum / step[column] - 1.0).abs() < 0.01, "column {column}: {text}");
    }
}

/// A share or a time as it is printed.
fn printed(cell: &str) -> Option<f64> {
    let (value, unit) = cell.split_once(' ')?;
    let factor = match unit {
        "%" | "ms" => 1.0,
        "µs" => 1e-3,
        "s" => 1e3,
        _ => return None,
    };
    Some(factor * value.parse::<f64>().ok()?)
}

/// The same step, in loops that do different things between their steps.
#[test]
fn compare_and_plan_take_no_account_of_what_lies_between_steps() {
    let runs = Runs::new();
    let plan = Plan { steps: 62, ..GPU };
    plan.write(&runs.file("runs"), "plain");
    for (name, leads) in [("passes", true), ("unknown", false)] {
        Plan { pass_ms: 50, leads, ..plan }.write(&runs.file("runs"), name);
        let mut compare = program();
        compare.args(["compare", "plain", name, "--json", "--out"]).arg(runs.file("runs"));
        let told = answer(compare);
        let metrics = told["metrics"].as_array().unwrap();
        let step = metrics.iter().find(|metric| metric["name"] == "step").unwrap();
        for side in ["base", "candidate"] {
            assert!((number(&step[side]) - 10.0).abs() < 0.05, "{name}: {step}");
        }
    }
    let runs = Runs::new();
    for (name, batch) in [("small", 8), ("large", 16)] {
        let plan = Plan { trace: Trace::Allocations, pass_ms: 50, leads: batch == 8, batch, ..plan };
        plan.write(&runs.file("runs"), name);
    }
    let mut plan = program();
    plan.args(["plan", "--json", "--capacity-mb", "64", "--from"]).arg(runs.file("runs"));
    let told = answer(plan);
    assert_eq!(told["not_used"], json!([]));
    assert_eq!(told["best"]["predicted_step_ms"], 10.0);
}
