//! Where no verdict is possible, and what is said then.

use serde_json::{Value, json};

use super::made_up::Made;
use super::{compare, compared, repeated};

#[track_caller]
fn abstains(base: &Made, candidate: &Made, why: &[&str]) -> Value {
    let found = compared(5, base, candidate);
    assert_eq!((&found["verdict"], &found["abstained"]), (&json!("cannot_tell"), &json!(true)), "{found}");
    let reason = found["reason"].as_str().unwrap();
    assert!(why.iter().all(|part| reason.contains(part)), "{reason}");
    found
}

#[test]
fn other_work_other_machines_and_other_builds_are_not_judged() {
    let usual = Made::usual();
    let layers = abstains(&usual, &usual.clone().with("layers", json!(8)), &["workloads differ (layers)"]);
    assert_eq!(
        (&layers["differs"], &layers["differences"][0]["kind"]),
        (&json!(["layers"]), &json!("workload"))
    );
    abstains(&usual, &Made { program: "mlp", ..usual.clone() }, &["workloads differ (program)"]);
    abstains(
        &usual,
        &Made { host: "elsewhere", ..usual.clone() },
        &["machines differ (host)", "one machine"],
    );
    abstains(&usual, &Made { torch: "2.12.0", ..usual.clone() }, &["versions differ (torch_version)"]);
}

#[test]
fn steps_of_other_sizes_need_a_count_of_their_tokens() {
    let base = Made { tokens: None, ..Made::usual() };
    abstains(&base, &base.clone().with("batch", json!(16)), &["(batch)", "tokens"]);
}

#[test]
fn runs_that_are_too_short_say_nothing() {
    let short = Made { steps: 29, ..Made::usual() };
    abstains(&short, &short, &["29 steps are left", "30 is the least", "run more steps"]);
}

#[test]
fn runs_that_never_settle_say_nothing() {
    let drifting = Made { slope: 0.3, ..Made::usual() };
    abstains(&Made::usual(), &drifting, &["run c-"]);
}

#[test]
fn instruments_that_cost_too_much_say_nothing_about_the_program() {
    // 400 events of 2 µs in a step of 10 ms: 8 %.
    let heavy = Made { hook_ns_per_event: Some(2_000.0), ..Made::usual() };
    abstains(&heavy, &Made::usual(), &["instruments cost 8.2 %", "5 % is the most", "--trace phases"]);
    let slow_filing = Made { observer_ns: 600_000, ..Made::usual() };
    abstains(&Made::usual(), &slow_filing, &["instruments cost 6."]);
}

#[test]
fn what_the_instruments_cost_may_be_unknown_and_is_then_noted() {
    let unknown = Made { hook_ns_per_event: None, ..Made::usual() };
    let found = compared(5, &unknown, &unknown);
    assert_eq!(found["verdict"], "same", "{found}");
    assert!(found["notes"].to_string().contains("instruments cost is not known"), "{found}");
}

#[test]
fn two_pairs_are_too_few() {
    let found = compared(2, &Made::usual(), &Made { step_ms: 20.0, ..Made::usual() });
    assert_eq!((&found["verdict"], &found["pairs_needed"]), (&json!("cannot_tell"), &json!(5)), "{found}");
}

#[test]
fn sides_that_did_not_take_turns_are_noted() {
    let runs = repeated(0, &Made::usual(), &Made::usual());
    for repeat in 0..5 {
        Made { minute: repeat, ..Made::usual() }.write(&runs.file("base"), &format!("b{repeat}"));
        Made { minute: 10 + repeat, ..Made::usual() }.write(&runs.file("candidate"), &format!("c{repeat}"));
    }
    let found = compare(&runs, &["--json"]).json();
    assert_eq!(found["verdict"], "same", "{found}");
    assert!(found["notes"].to_string().contains("did not take turns"), "{found}");
    assert_eq!(found["base"]["runs"], json!(["b0", "b1", "b2", "b3", "b4"]));
}

#[test]
fn runs_at_the_same_time_are_noted() {
    let runs = repeated(5, &Made::usual(), &Made::usual());
    Made { minute: 9, ..Made::usual() }.write(&runs.file("candidate"), "also-then");
    Made { minute: 9, ..Made::usual() }.write(&runs.file("base"), "then");
    let found = compare(&runs, &["--json"]).json();
    assert!(found["notes"].to_string().contains("at the same time"), "{found}");
}
