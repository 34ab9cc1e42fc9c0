//! The documented object, and the text.

use serde_json::{Value, json};

use super::made_up::Made;
use super::{compare, compared, metric, near, repeated};

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn the_object_begins_with_what_was_promised() {
    let found = compared(5, &Made::usual(), &Made { activation_bytes: 12_000, ..Made::usual() });
    let promised = ["verdict", "reason", "differs", "metrics", "bytes", "evidence", "pairs"];
    assert_eq!(keys(&found)[..promised.len()], promised);
    for metric in found["metrics"].as_array().unwrap() {
        assert_eq!(keys(metric)[..6], ["name", "base", "candidate", "change_pct", "low_pct", "high_pct"]);
    }
    let names: Vec<&str> =
        found["metrics"].as_array().unwrap().iter().map(|metric| metric["name"].as_str().unwrap()).collect();
    let phases = ["dataloader", "forward", "backward", "optimizer", "other"];
    assert_eq!(names, [&["step", "token", "tokens_per_s"], phases.as_slice(), &["peak"]].concat());
}

#[test]
fn bytes_are_exact_at_their_moments() {
    let found = compared(5, &Made::usual(), &Made { activation_bytes: 12_000, ..Made::usual() });
    for (category, base, candidate, moment) in [
        ("parameter", 3_000, 3_000, "optimizer_end"),
        ("gradient", 3_000, 3_000, "backward_end"),
        ("activation", 10_000, 12_000, "forward_end"),
        ("workspace", 2_000, 2_000, "peak"),
        ("unattributed", 0, 0, "peak"),
    ] {
        let expected = json!({ "base": base, "candidate": candidate, "moment": moment, "varies": false });
        assert_eq!(found["bytes"][category], expected, "{category}");
    }
    let peak = metric(&found, "peak");
    assert_eq!((&peak["base"], &peak["candidate"]), (&json!(15_000.0), &json!(17_000.0)));
    near(&peak["change_pct"], 13.333, 0.001);
    assert_eq!((&peak["low_pct"], &peak["high_pct"]), (&peak["change_pct"], &peak["change_pct"]));
    assert_eq!(found["moments"]["peak"]["activation"]["candidate"], 12_000);
    assert_eq!(found["moments"]["backward_end"]["activation"]["candidate"], 0);
}

#[test]
fn phases_are_those_of_the_step_alone() {
    let found = compared(5, &Made::usual(), &Made::usual());
    near(&metric(&found, "forward")["base"], 3.0, 0.05);
    near(&metric(&found, "backward")["base"], 6.0, 0.1);
    near(&metric(&found, "step")["base"], 10.0, 0.1);
}

#[test]
fn losses_are_compared_step_by_step() {
    let same = compared(1, &Made::usual(), &Made::usual());
    assert_eq!((&same["losses"]["same"], &same["losses"]["steps"]), (&json!(true), &json!(64)));
    let apart =
        Made { loss: |step| 5.0 / (step as f64 + 1.0) + if step >= 7 { 0.25 } else { 0.0 }, ..Made::usual() };
    let losses = &compared(1, &Made::usual(), &apart)["losses"];
    assert_eq!((&losses["same"], &losses["first_difference_step"]), (&json!(false), &json!(7)));
    near(&losses["largest_difference"], 0.25, 1e-12);
    let broken =
        Made { loss: |step| if step < 9 { 5.0 / (step as f64 + 1.0) } else { f64::NAN }, ..Made::usual() };
    let found = compared(5, &Made::usual(), &broken);
    let losses = &found["losses"];
    assert_eq!((&losses["candidate_not_finite_from"], &losses["candidate_last"]), (&json!(9), &json!(null)));
    assert_eq!((&losses["first_difference_step"], &found["verdict"]), (&json!(9), &json!("same")));
    let text = compare(&repeated(1, &Made::usual(), &broken), &[]).stdout;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("the candidate's is no finite number in step 9 of run c-0"), "{text}");
}

#[test]
fn a_broken_loss_counts_in_any_repeat_and_the_first_run_is_the_one_that_started_first() {
    let runs = repeated(5, &Made::usual(), &Made::usual());
    let usual = Made::usual().loss;
    let breaks = |step: i64| if step == 20 { f64::NAN } else { 5.0 / (step as f64 + 1.0) };
    // By name it is the first of its side, and by its start the last.
    Made { minute: 100, loss: breaks, ..Made::usual() }.write(&runs.file("candidate"), "a-late-one");
    Made { minute: 99, loss: usual, ..Made::usual() }.write(&runs.file("base"), "partner");
    let losses = &compare(&runs, &["--json"]).json()["losses"];
    assert_eq!((&losses["same"], &losses["repeats_differ"]), (&json!(true), &json!(true)), "{losses}");
    assert_eq!(losses["candidate_not_finite_from"], 20);
    assert_eq!(losses["candidate_not_finite_run"], "a-late-one");
}

#[test]
fn the_text_fits_into_80_columns() {
    let candidates = [
        Made { step_ms: 11.0, activation_bytes: 12_000_000_000, ..Made::usual() },
        Made { tokens: Some(1024), ..Made::usual() }.with("batch", json!(16)).with("seed", json!(2)),
        Made { host: "elsewhere", slope: 0.5, ..Made::usual() },
    ];
    for candidate in candidates {
        for pairs in [1, 3, 5] {
            let text =
                compare(&repeated(pairs, &Made::usual(), &candidate), &["--fail-if", "step>+5%"]).stdout;
            let long: Vec<&str> = text.lines().filter(|line| line.chars().count() > 80).collect();
            assert!(long.is_empty(), "{long:?}");
            for part in ["base", "Differs", "Verdict:", "95 %", "Losses:", "Gate"] {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
    }
}
