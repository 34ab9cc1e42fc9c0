//! `--fail-if`: four exit codes.

use serde_json::json;

use super::made_up::Made;
use super::program::Runs;
use super::{Said, compare, repeated};

fn slower(factor: f64) -> Made {
    Made { step_ms: 10.0 * factor, ..Made::usual() }
}

fn gate(candidate: &Made, pairs: usize, conditions: &[&str]) -> Said {
    let flags: Vec<&str> = conditions.iter().flat_map(|condition| ["--fail-if", condition]).collect();
    compare(&repeated(pairs, &Made::usual(), candidate), &[&["--json"], flags.as_slice()].concat())
}

#[test]
fn each_condition_holds_passes_or_cannot_be_told() {
    let hungry = Made { activation_bytes: 10_300, ..slower(1.05) };
    for (candidate, pairs, condition, code, outcome) in [
        (&slower(1.1), 5, "step>+5%", 1, "holds"),
        (&slower(1.02), 5, "step>+5%", 0, "passes"),
        (&slower(1.05), 5, "step>+5%", 3, "cannot_tell"),
        (&slower(1.1), 5, "tokens_per_s<-3%", 1, "holds"),
        (&slower(1.0), 5, "tokens_per_s<-3%", 0, "passes"),
        (&slower(1.1), 5, "backward>+5%", 1, "holds"),
        (&slower(1.1), 5, "token>+5%", 1, "holds"),
        (&hungry, 5, "peak>+1%", 1, "holds"),
        (&hungry, 5, "peak>+2%", 0, "passes"),
        (&hungry, 5, "activation>2.9%", 1, "holds"),
        (&hungry, 5, "activation>3%", 0, "passes"),
        (&hungry, 5, "adam_state>0%", 0, "passes"),
        (&hungry, 5, "communication>0%", 3, "cannot_tell"),
        (&slower(2.0), 1, "step>+5%", 3, "cannot_tell"),
        (&slower(1.2), 3, "step>+5%", 1, "holds"),
        (&hungry, 1, "peak>+1%", 1, "holds"),
        (&slower(2.0).with("layers", json!(8)), 5, "step>+5%", 3, "cannot_tell"),
    ] {
        let said = gate(candidate, pairs, &[condition]);
        assert_eq!(said.code, Some(code), "{condition}: {}{}", said.stdout, said.stderr);
        let judged = &said.json()["gate"][0];
        assert_eq!((&judged["condition"], &judged["outcome"]), (&json!(condition), &json!(outcome)));
        assert!(!judged["why"].as_str().unwrap().is_empty());
    }
}

#[test]
fn of_several_conditions_one_that_holds_outweighs_one_that_cannot_be_told() {
    let code = |conditions: &[&str]| gate(&slower(1.1), 5, conditions).code;
    assert_eq!(code(&["step>+5%", "step>+10%"]), Some(1));
    assert_eq!(code(&["step>+10%", "step>+50%"]), Some(3));
    assert_eq!(code(&["step>+50%", "peak>+1%"]), Some(0));
    assert_eq!(code(&[]), Some(0));
}

#[test]
fn a_category_that_was_not_there_is_beyond_any_limit() {
    let base = Made { activation_bytes: 0, ..Made::usual() };
    let said = compare(&repeated(1, &base, &Made::usual()), &["--fail-if", "activation>+500%"]);
    assert_eq!(said.code, Some(1), "{}", said.stdout);
    assert!(said.stdout.contains("activation>+500%: holds"), "{}", said.stdout);
}

#[test]
fn what_is_no_condition_is_refused_with_the_grammar() {
    for condition in ["step", "stepp>5%", "step>5", "peak>+x%"] {
        let said = gate(&Made::usual(), 1, &[condition]);
        assert_eq!((said.code, said.stdout.as_str()), (Some(2), ""), "{condition}");
        for part in [condition, "METRIC>+N%", "tokens_per_s"] {
            assert!(said.stderr.contains(part), "{condition}: {}", said.stderr);
        }
    }
}

#[test]
fn without_memory_on_both_sides_a_condition_on_bytes_cannot_be_told() {
    let candidate = Made { trace: stepledger::record::Trace::Phases, ..Made::usual() };
    let said = gate(&candidate, 5, &["peak>+1%"]);
    assert_eq!(said.code, Some(3), "{}", said.stdout);
    let why = said.json()["gate"][0]["why"].clone();
    assert_eq!(why, "memory was not traced on the candidate; run it with --trace allocations");
}

/// Takes the parts of a table away from the runs of a side.
fn rob(runs: &Runs, side: &str, table: &str) {
    for run in std::fs::read_dir(runs.file(side)).unwrap() {
        std::fs::remove_file(run.unwrap().path().join(format!("{table}-0001.parquet"))).unwrap();
    }
}

#[test]
fn parts_that_are_gone_are_told_for_what_they_are() {
    let flags =
        ["--json", "--fail-if", "activation>+1%", "--fail-if", "optimizer>+1%", "--fail-if", "peak>+1%"];
    let runs = repeated(3, &Made::usual(), &Made::usual());
    rob(&runs, "candidate", "ledger");
    rob(&runs, "base", "phases");
    let found = compare(&runs, &flags).json();
    let [activation, optimizer, peak] = [0, 1, 2].map(|at| &found["gate"][at]);
    assert_eq!(
        activation["why"],
        "no run of the candidate has a ledger at forward_end, though memory was traced"
    );
    assert_eq!(optimizer["why"], "not every run of the base has optimizer");
    assert_eq!(peak["outcome"], "passes", "{peak}");
    let notes = found["notes"].to_string();
    for part in [
        "not all phases of 3 of 6 runs (",
        "the ledger of the step with the peak is not there of 3 of 6 runs",
    ] {
        assert!(notes.contains(part), "{notes}");
    }
    rob(&runs, "base", "ledger");
    let text = compare(&runs, &[]).stdout;
    assert!(text.contains("no run's ledger is there") && !text.contains("not traced"), "{text}");
}
