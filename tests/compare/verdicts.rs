//! Each verdict, and what it is about.

use serde_json::json;
use stepledger::record::Trace;

use super::made_up::Made;
use super::{compare, compared, metric, near, repeated};

fn slower(factor: f64) -> Made {
    Made { step_ms: 10.0 * factor, ..Made::usual() }
}

#[test]
fn every_verdict_has_its_interval() {
    for (factor, verdict) in [(1.05, "slower"), (0.95, "faster"), (1.0, "same"), (1.01, "cannot_tell")] {
        let found = compared(5, &Made::usual(), &slower(factor));
        assert_eq!(found["verdict"], verdict, "{factor}: {found}");
        assert_eq!((&found["evidence"], &found["pairs"]), (&json!("repeated_benchmark"), &json!(5)));
        assert_eq!((&found["provisional"], &found["abstained"]), (&json!(false), &json!(false)));
        let step = metric(&found, "step");
        near(&step["change_pct"], 100.0 * (factor - 1.0), 0.3);
        let (low, high) = (step["low_pct"].as_f64().unwrap(), step["high_pct"].as_f64().unwrap());
        assert!(low < step["change_pct"].as_f64().unwrap() && high > low && high - low < 2.5, "{step}");
    }
}

#[test]
fn what_cannot_be_told_yet_says_how_many_pairs_would() {
    let found = compared(5, &Made::usual(), &slower(1.013));
    assert_eq!(found["verdict"], "cannot_tell", "{found}");
    let needed = found["pairs_needed"].as_i64().unwrap();
    assert!(needed > 5, "{needed}");
    assert!(found["reason"].as_str().unwrap().contains(&format!("about {needed} pairs")), "{found}");
}

#[test]
fn three_pairs_are_provisional() {
    let found = compared(3, &Made::usual(), &slower(1.2));
    assert_eq!((&found["verdict"], &found["provisional"]), (&json!("slower"), &json!(true)), "{found}");
    assert_eq!(found["evidence"], "smoke_test");
    let text = compare(&repeated(3, &Made::usual(), &slower(1.2)), &[]).stdout;
    assert!(text.contains("slower, provisionally") && text.contains("5 pairs would be enough"), "{text}");
}

#[test]
fn one_run_a_side_has_an_interval_within_the_runs_and_no_verdict() {
    let found = compared(1, &Made::usual(), &slower(1.2));
    assert_eq!((&found["verdict"], &found["evidence"]), (&json!("cannot_tell"), &json!("smoke_test")));
    assert!(found["reason"].as_str().unwrap().contains("one run a side"), "{found}");
    assert_eq!(found["pairs_needed"], 5);
    let step = metric(&found, "step");
    near(&step["low_pct"], 20.0, 1.5);
    near(&step["high_pct"], 20.0, 1.5);
    assert!(metric(&found, "forward")["low_pct"].is_null());
    // The bootstrap is seeded.
    assert_eq!(found["metrics"], compared(1, &Made::usual(), &slower(1.2))["metrics"]);
}

#[test]
fn another_batch_is_judged_by_the_time_a_token() {
    // Twice the tokens in 1.6 times the time: 20 % less a token.
    let candidate = Made { tokens: Some(1024), step_ms: 16.0, ..Made::usual() }.with("batch", json!(16));
    let found = compared(5, &Made::usual(), &candidate);
    assert_eq!((&found["verdict"], &found["quantity"]), (&json!("faster"), &json!("token")), "{found}");
    assert_eq!((&found["differs"], &found["cause"]), (&json!(["batch"]), &json!("batch")));
    near(&metric(&found, "token")["change_pct"], -20.0, 0.5);
    near(&metric(&found, "step")["change_pct"], 60.0, 0.7);
    near(&metric(&found, "tokens_per_s")["change_pct"], 25.0, 0.7);
    near(&metric(&found, "tokens_per_s")["base"], 51_200.0, 200.0);
    let text = compare(&repeated(5, &Made::usual(), &candidate), &[]).stdout;
    assert!(text.contains("time a token") && text.contains("batch: 8 → 16"), "{text}");
}

#[test]
fn several_variables_are_shown_and_none_is_blamed() {
    let candidate = slower(1.05).with("checkpoint", json!("full")).with("seed", json!(2));
    let found = compared(5, &Made::usual(), &candidate);
    assert_eq!((&found["verdict"], &found["cause"]), (&json!("slower"), &json!(null)));
    assert_eq!(found["differs"], json!(["seed", "checkpoint"]));
    let text = compare(&repeated(5, &Made::usual(), &candidate), &[]).stdout;
    assert!(text.contains("several variables"), "{text}");
}

#[test]
fn how_long_was_measured_is_no_variable() {
    let candidate = Made { steps: 80, ..slower(1.05) }.with("steps", json!(80)).with("batch", json!(9));
    let found = compared(5, &Made::usual(), &candidate);
    assert_eq!(
        (&found["cause"], &found["differs"]),
        (&json!("batch"), &json!(["batch", "steps"])),
        "{found}"
    );
}

#[test]
fn the_trace_depth_can_be_the_variable_and_takes_the_bytes_with_it() {
    let candidate = Made { trace: Trace::Phases, ..slower(0.9) };
    let found = compared(5, &Made::usual(), &candidate);
    assert_eq!((&found["verdict"], &found["cause"]), (&json!("faster"), &json!("trace")), "{found}");
    let activation = &found["bytes"]["activation"];
    assert_eq!((&activation["base"], &activation["candidate"]), (&json!(10_000), &json!(null)));
}

#[test]
fn spikes_move_the_tails_alone() {
    let spiky = Made { spikes: true, ..Made::usual() };
    let found = compared(5, &Made::usual(), &spiky);
    assert_eq!(found["verdict"], "same", "{found}");
    let (base, candidate) = (&found["tails"]["base"], &found["tails"]["candidate"]);
    near(&candidate["p50_ms"], 10.0, 0.1);
    near(&candidate["max_ms"], 30.0, 0.5);
    near(&base["max_ms"], 10.1, 0.1);
    assert_eq!(base["slow_steps"], 0);
    assert!(candidate["slow_steps"].as_i64() >= Some(5), "{candidate}");
}
