//! Where no verdict is possible, and what is said then.

use serde_json::{Value, json};

use stepledger::record::DeviceFacts;

use super::made_up::Made;
use super::{Runs, compare, compared, repeated, stepledger};

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
    // Nothing is put down to what forbids a verdict, and nothing is proven.
    assert_eq!((&layers["cause"], &layers["evidence"]), (&json!(null), &json!("smoke_test")));
}

#[test]
fn other_cards_other_drivers_and_other_limits_are_not_judged() {
    let on = |facts: DeviceFacts| Made { device: "cuda:0", device_facts: facts, ..Made::usual() };
    let card = DeviceFacts {
        device_name: Some("one".to_owned()),
        driver_version: Some("580.65.06".to_owned()),
        power_limit_w: Some(700.0),
        sm_clock_mhz: Some(1_980),
        device_free_bytes: Some(1),
        ..DeviceFacts::default()
    };
    let usual = on(card.clone());
    let other = DeviceFacts { device_name: Some("other".to_owned()), ..card.clone() };
    abstains(&usual, &on(other), &["machines differ (device_name)"]);
    abstains(&usual, &on(DeviceFacts { power_limit_w: Some(350.0), ..card.clone() }), &["(power_limit_w)"]);
    let driver = DeviceFacts { driver_version: Some("590.1".to_owned()), ..card.clone() };
    abstains(&usual, &on(driver), &["versions differ (driver_version)"]);
    let (small, large) =
        [16_i64, 32].map(|gib| Made { memory_bytes: Some(gib << 30), ..Made::usual() }).into();
    abstains(&small, &large, &["machines differ (memory_gib)"]);
    // Clocks and free memory are never twice the same, nor is all of a machine's memory to the byte.
    let now = DeviceFacts { sm_clock_mhz: Some(1_200), device_free_bytes: Some(2), ..card };
    assert_eq!(compared(5, &usual, &on(now))["verdict"], "same");
    let updated = Made { memory_bytes: Some((16 << 30) - 4096), ..Made::usual() };
    assert_eq!(compared(5, &small, &updated)["verdict"], "same");
}

#[test]
fn fields_of_a_configuration_that_have_our_names_are_seen() {
    let usual = Made::usual();
    for (field, value) in [("host", json!("elsewhere")), ("trace", json!("own")), ("parameters", json!(7))] {
        let found = compared(5, &usual, &usual.clone().with(field, value));
        let name = format!("config.{field}");
        assert_eq!((&found["differs"], &found["cause"]), (&json!([name]), &json!(name)), "{found}");
    }
    // The learning rate's warm-up, not ours, of which there are 4 steps.
    let [short, long] = [100, 500].map(|steps| usual.clone().with("warmup", json!(steps)));
    assert_eq!(compared(5, &short, &long)["cause"], "config.warmup");
}

#[test]
fn steps_of_other_sizes_need_a_count_of_their_tokens() {
    let base = Made { tokens: None, ..Made::usual() };
    abstains(&base, &base.clone().with("batch", json!(16)), &["(batch)", "tokens"]);
    for field in ["batch_size", "micro_batch_size", "grad_accum_steps"] {
        let [four, eight] = [4, 8].map(|size| base.clone().with(field, json!(size)));
        abstains(&four, &eight, &[field, "tokens"]);
    }
    let nested = |size: i64| base.clone().with("train", json!({ "batch": size }));
    abstains(&nested(4), &nested(8), &["(train.batch)"]);
    // What only sounds like it is no size.
    let [with, without] = [true, false].map(|norm| base.clone().with("batch_norm", json!(norm)));
    assert_eq!(compared(5, &with, &without)["abstained"], false);
    // Where nothing says so, it is said that nobody knows.
    let found = compared(5, &base, &base);
    assert!(found["notes"].to_string().contains("tokens were not counted"), "{found}");
}

#[test]
fn runs_that_are_too_short_say_nothing() {
    let short = Made { steps: 29, ..Made::usual() };
    abstains(&short, &short, &["steps are left", "30 is the least", "60 steps or more"]);
}

#[test]
fn runs_that_never_settle_say_nothing() {
    let drifting = Made { slope: 0.3, ..Made::usual() };
    abstains(&Made::usual(), &drifting, &["run c-", "more time than its first", "let the machine settle"]);
}

/// MSER alone would call the first half a warm-up, and judge the second.
#[test]
fn runs_that_change_their_level_say_nothing() {
    let jumping = |jump: f64| Made { jump, ..Made::usual() };
    abstains(&Made::usual(), &jumping(0.08), &["run c-", "7.6 % more time than its first"]);
    // Scatter hides this from each run by itself, and not from all of them.
    let noisy = Made { scatter: 0.03, ..jumping(0.03) };
    let reason = &["the base's runs do not stay at their level", "more time than their first"];
    abstains(&noisy, &Made { scatter: 0.03, ..Made::usual() }, reason);
}

#[test]
fn runs_that_all_settle_late_are_noted() {
    // Fifteen of the 60 measured steps: a little more than a fifth.
    let late = Made { warm_steps: 15, ..Made::usual() };
    let found = compared(5, &late, &Made::usual());
    assert_eq!(
        (&found["verdict"], &found["base"]["cut_steps"]),
        (&json!("same"), &json!([15, 15, 15, 15, 15]))
    );
    let notes = found["notes"].to_string();
    assert!(notes.contains("more than a fifth of the base's") && !notes.contains("candidate's"), "{notes}");
}

#[test]
fn one_unsound_run_of_many_is_left_out_with_its_pair() {
    // A program whose steps nobody counts: of ours those that are gone would be missed.
    let usual = Made { program: "mine", ..Made::usual() }.with("steps", json!(60));
    let runs = repeated(10, &usual, &usual);
    let short = Made { steps: 5, step_ms: 30.0, minute: 6, ..usual.clone() };
    std::fs::remove_dir_all(runs.file("base/b-4")).unwrap();
    short.write(&runs.file("base"), "short");
    let found = compare(&runs, &["--json"]).json();
    assert_eq!((&found["verdict"], &found["pairs"]), (&json!("same"), &json!(9)), "{found}");
    let left_out = &found["base"]["left_out"][0];
    assert_eq!(left_out["run"], "short");
    assert!(left_out["why"].as_str().unwrap().contains("30 is the least"), "{left_out}");
    assert_eq!(found["candidate"]["unpaired"].as_array().unwrap().len(), 1);
    // One of ten runs is more than one of twenty.
    let runs = repeated(5, &usual, &usual);
    std::fs::remove_dir_all(runs.file("base/b-3")).unwrap();
    Made { minute: 0, ..short }.write(&runs.file("base"), "short");
    let found = compare(&runs, &["--json"]).json();
    assert_eq!((&found["abstained"], &found["pairs"]), (&json!(true), &json!(5)), "{found}");
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

/// Writes five repeats of each side, which start in these minutes.
fn started(base: [i64; 5], candidate: [i64; 5], step_ms: f64) -> Runs {
    let runs = Runs::new();
    for repeat in 0..5 {
        let (base, candidate) = (base[repeat], candidate[repeat]);
        Made { minute: base, ..Made::usual() }.write(&runs.file("base"), &format!("b{repeat}"));
        let made = Made { minute: candidate, step_ms, ..Made::usual() };
        made.write(&runs.file("candidate"), &format!("c{repeat}"));
    }
    runs
}

#[test]
fn sides_that_did_not_take_turns_are_judged_on_less_evidence() {
    let day = 24 * 60;
    for (base, candidate, why) in [
        ([0, 1, 2, 3, 4], [10, 11, 12, 13, 14], "did not take turns"),
        ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4].map(|minute| minute + 30 * day), "did not take turns"),
        ([0, 2, 4, 6, 8].map(|n| n * day), [1, 3, 5, 7, 9].map(|n| n * day), "up to 23 hours apart"),
    ] {
        let runs = started(base, candidate, 11.0);
        let found = compare(&runs, &["--json", "--fail-if", "step>+5%"]);
        assert_eq!(found.code, Some(1), "{}", found.stdout);
        let found = found.json();
        assert_eq!((&found["verdict"], &found["evidence"]), (&json!("slower"), &json!("smoke_test")));
        let reason = found["reason"].as_str().unwrap();
        assert!(reason.contains(why) && reason.contains("is above +1.00 %"), "{reason}");
        assert_eq!(found["base"]["runs"], json!(["b0", "b1", "b2", "b3", "b4"]));
    }
    // In an order that turns around they take turns, too.
    let found = compare(&started([0, 3, 4, 7, 8], [1, 2, 5, 6, 9], 11.0), &["--json"]).json();
    assert_eq!(found["evidence"], "repeated_benchmark", "{found}");
}

#[test]
fn one_pair_hours_apart_is_told_as_such() {
    let runs = repeated(1, &Made::usual(), &Made::usual());
    Made { minute: 600, ..Made::usual() }.write(runs.path(), "later");
    let found = stepledger(&runs, &["compare", "base", "later", "--json"]).json();
    assert!(found["notes"].to_string().contains("up to 9 hours apart"), "{found}");
}

#[test]
fn runs_at_the_same_time_are_not_judged() {
    // A run takes 20 seconds.
    let found = compare(&started([0, 2, 4, 6, 8], [1, 3, 5, 7, 8], 11.0), &["--json"]).json();
    assert_eq!((&found["verdict"], &found["abstained"]), (&json!("cannot_tell"), &json!(true)), "{found}");
    let reason = found["reason"].as_str().unwrap();
    assert!(reason.contains("runs b4 and c4 ran at the same time"), "{reason}");
    assert!(!found["notes"].to_string().contains("at the same time"), "said once");
    // One without a partner slows the others down just as well.
    let runs = repeated(5, &Made::usual(), &Made::usual());
    Made { minute: 9, ..Made::usual() }.write(&runs.file("candidate"), "sixth");
    let found = compare(&runs, &["--json"]).json();
    assert!(found["reason"].as_str().unwrap().contains("sixth ran at the same time"), "{found}");
}
