//! Each verdict, and what it is about.

use serde_json::json;
use stepledger::record::Trace;

use super::made_up::Made;
use super::{Runs, compare, compared, metric, near, repeated, stepledger};

fn slower(factor: f64) -> Made {
    Made { step_ms: 10.0 * factor, ..Made::usual() }
}

#[test]
fn every_verdict_has_its_interval() {
    for (factor, verdict) in [(1.05, "slower"), (0.95, "faster"), (1.0, "same"), (1.01, "cannot_tell")] {
        let found = compared(5, &Made::usual(), &slower(factor));
        assert_eq!(found["verdict"], verdict, "{factor}: {found}");
        let evidence = if verdict == "cannot_tell" { "smoke_test" } else { "repeated_benchmark" };
        assert_eq!((&found["evidence"], &found["pairs"]), (&json!(evidence), &json!(5)), "{found}");
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
    assert!(found["reason"].as_str().unwrap().contains(&format!("roughly {needed} pairs")), "{found}");
}

#[test]
fn three_pairs_are_provisional() {
    let found = compared(3, &Made::usual(), &slower(1.2));
    assert_eq!((&found["verdict"], &found["provisional"]), (&json!("slower"), &json!(true)), "{found}");
    assert_eq!(found["evidence"], "smoke_test");
    let text = compare(&repeated(3, &Made::usual(), &slower(1.2)), &[]).stdout;
    assert!(text.contains("slower, provisionally") && text.contains("5 pairs would be enough"), "{text}");
}

/// How many pairs it takes is said once.
#[test]
fn three_pairs_that_tell_nothing_are_told_one_number_of_pairs() {
    let text = compare(&repeated(3, &Made::usual(), &slower(1.013)), &[]).stdout;
    assert!(text.contains("cannot tell") && !text.contains("would be enough"), "{text}");
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
    // Three of 60 steps in each of five runs.
    let spiky = Made { spikes: true, ..Made::usual() };
    let found = compared(5, &Made::usual(), &spiky);
    assert_eq!(found["verdict"], "same", "{found}");
    let (base, candidate) = (&found["tails"]["base"], &found["tails"]["candidate"]);
    near(&candidate["p50_ms"], 10.0, 0.1);
    near(&candidate["max_ms"], 30.0, 0.5);
    near(&base["max_ms"], 10.1, 0.1);
    assert_eq!((&base["slow_steps"], &base["steps"]), (&json!(0), &json!(300)));
    assert_eq!((&candidate["slow_steps"], &candidate["steps"]), (&json!(15), &json!(300)), "{candidate}");
}

#[test]
fn early_spikes_are_told_whatever_is_cut_off_as_warm_up() {
    let spiky = Made { slow_steps: &[15, 20, 29], ..Made::usual() };
    let found = compared(5, &Made::usual(), &spiky);
    assert_eq!(found["verdict"], "same", "{found}");
    assert_eq!(found["tails"]["candidate"]["slow_steps"], 15, "{found}");
    near(&found["tails"]["candidate"]["max_ms"], 50.0, 1.0);
    let (cut, measured) = (&found["candidate"]["cut_steps"], &found["candidate"]["measured_steps"]);
    assert!(cut.as_array().unwrap().iter().all(|cut| cut.as_i64() <= Some(30)), "{cut}");
    assert_eq!(measured, &json!([60, 60, 60, 60, 60]));
    let text = compare(&repeated(5, &Made::usual(), &spiky), &[]).stdout;
    assert!(text.contains("cut off as warm-up: ") && text.contains("of 60 measured steps"), "{text}");
}

/// The base is the run and not a folder: it speaks for itself step by step, against the earliest of the others.
#[test]
fn one_run_against_a_folder_has_the_interval_within_the_runs() {
    let runs = repeated(5, &Made::usual(), &slower(1.2));
    for (base, candidate, change) in
        [("base/b-3", "candidate", 20.0), ("candidate/c-3", "base", -100.0 / 6.0)]
    {
        let found = stepledger(&runs, &["compare", base, candidate, "--json"]).json();
        assert!(found["reason"].as_str().unwrap().contains("one run a side"), "{found}");
        let step = metric(&found, "step");
        near(&step["low_pct"], change, 1.5);
        near(&step["high_pct"], change, 1.5);
    }
}

#[test]
fn a_step_for_each_micro_batch_is_judged_by_whole_cycles() {
    let micro = |step_ms: f64| Made { optimizer_every: 2, steps: 120, step_ms, ..Made::usual() };
    let found = compared(5, &micro(10.0), &micro(11.0));
    assert_eq!(found["verdict"], "slower", "{found}");
    // Steps of 10 and 20 ms in turns, of which a twentieth of each optimizer's.
    near(&metric(&found, "step")["base"], 15.0, 0.2);
    near(&metric(&found, "optimizer")["base"], 0.5, 0.02);
    let tails = &found["tails"]["base"];
    assert_eq!((&tails["steps"], &tails["cycle"], &tails["slow_steps"]), (&json!(600), &json!(2), &json!(0)));
}

#[test]
fn an_optimizer_that_is_skipped_once_costs_its_cycle_and_no_verdict() {
    let micro = Made { optimizer_every: 4, steps: 240, ..Made::usual() };
    let skipped = Made { skipped_optimizer: Some(63), ..micro.clone() };
    let found = compared(5, &micro, &skipped);
    assert_eq!(found["verdict"], "same", "{found}");
    near(&metric(&found, "step")["candidate"], 17.5, 0.2);
    let notes = found["notes"].to_string();
    assert!(notes.contains("of 5 of 10 runs (c-"), "{notes}");
    assert!(notes.contains("some steps lie in longer or shorter cycles than most"), "{notes}");
}

#[test]
fn show_and_list_tell_a_step_in_cycles_as_compare_does() {
    let runs = Runs::new();
    let micro = Made { optimizer_every: 4, steps: 120, ..Made::usual() };
    micro.write(runs.path(), "a");
    let list = stepledger(&runs, &["list", "--json"]).json();
    let show = stepledger(&runs, &["show", "a", "--json"]).json();
    // Three steps of 10 ms and one of 40, of 512 tokens each.
    for (step_ms, rate) in [
        (&list["runs"][0]["step_ms"], &list["runs"][0]["tokens_per_s"]),
        (&show["step"]["median_ms"], &show["step"]["tokens_per_s"]),
    ] {
        near(step_ms, 17.5, 0.2);
        near(rate, 512.0 / 17.5e-3, 400.0);
    }
    assert_eq!((&show["step"]["cycle_steps"], &show["step"]["accumulates"]), (&json!(4), &json!(true)));
    let text = stepledger(&runs, &["show", "a"]).stdout;
    assert!(text.contains("cycles of 4 steps, whole ones of accumulation"), "{text}");
}

#[test]
fn steps_in_cycles_are_counted_as_steps_throughout() {
    let micro = Made { optimizer_every: 2, steps: 120, warm_steps: 40, ..Made::usual() };
    let runs = repeated(5, &micro, &micro);
    let found = compare(&runs, &["--json"]).json();
    let (cut, measured) = (&found["base"]["cut_steps"], &found["base"]["measured_steps"]);
    assert_eq!((cut, measured), (&json!(vec![40; 5]), &json!(vec![120; 5])), "{found}");
    // All that was measured, the warm-up too.
    let tails = &found["tails"]["base"];
    assert_eq!((&tails["slow_steps"], &tails["steps"]), (&json!(200), &json!(600)), "{tails}");
    let text = compare(&runs, &[]).stdout;
    for part in ["of 120 measured steps", "200 of 600", "in whole cycles of 2 steps"] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
}

#[test]
fn copies_of_a_run_are_no_repeats() {
    let runs = repeated(1, &Made::usual(), &slower(1.2));
    for side in ["base/b-0", "candidate/c-0"] {
        for copy in 1..5 {
            let (from, to) = (runs.file(side), runs.file(&format!("{side}-copy-{copy}")));
            std::fs::create_dir(&to).unwrap();
            for file in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
                std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
            }
        }
    }
    let found = compare(&runs, &["--json"]).json();
    assert_eq!((&found["verdict"], &found["pairs"]), (&json!("cannot_tell"), &json!(1)), "{found}");
    let left_out = found["base"]["left_out"].as_array().unwrap();
    assert_eq!(left_out.len(), 4);
    assert_eq!(left_out[0]["run"], "b-0-copy-1");
    assert!(left_out[0]["why"].as_str().unwrap().contains("a copy of run b-0"), "{left_out:?}");
}

#[test]
fn only_bytes_are_exact() {
    let still = Made { scatter: 0.0, ..Made::usual() };
    let runs = Runs::new();
    for (minute, side, id) in
        [(0, "base", "a"), (1, "candidate", "b"), (2, "base", "c"), (3, "candidate", "d")]
    {
        Made { minute, ..still.clone() }.write(&runs.file(side), id);
    }
    let text = compare(&runs, &[]).stdout;
    let line = |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
    assert!(line("step ").contains("0.00 % to 0.00 %") && line("peak ").contains("exact"), "{text}");
    assert!(!text.contains("-0.0") && !text.contains("+0.00 %"), "{text}");
}
