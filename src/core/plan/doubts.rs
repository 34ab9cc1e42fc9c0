//! What a plan must not claim, from made-up runs.

use chrono::DateTime;
use serde_json::json;

use super::tests::{MIB, gpt, measured, object, policy, request, toy};
use super::*;
use crate::record::{DeviceRates, EvidenceLevel, MeasuredRate, ReferenceRates, Trace};

#[test]
fn runs_of_several_trace_depths_are_refused_naming_it_unless_one_is_chosen() {
    let deep = Measured { trace: Trace::Ops, step_ms: Some(9.0), ..measured("none", 8) };
    let mut runs = vec![measured("none", 2), measured("none", 4), deep];
    let error = plan(&request(runs.clone(), 2_000)).unwrap_err().to_string();
    assert!(error.contains("trace (allocations, ops)") && error.contains("--trace allocations"), "{error}");
    let given = object(json!({ "trace": "allocations" }));
    let chosen = plan(&Request { given, ..request(runs.clone(), 2_000) }).unwrap();
    assert_eq!(chosen.not_used[0].why, "trace is ops, not allocations");
    runs[2] = Measured { stepledger_version: "0.0.9".to_owned(), ..measured("none", 8) };
    let error = plan(&request(runs, 2_000)).unwrap_err().to_string();
    assert!(error.contains("stepledger (0.0.9, 0.1.0)"), "{error}");
}

#[test]
fn a_file_is_the_same_workload_wherever_it_lay() {
    let read = |path: &str, content: &str, batch| toy(json!({"data": path, "data_content": content}), batch);
    let runs = |contents: [&str; 2]| {
        vec![read("/job1/book.txt", contents[0], 4), read("/job2/book.txt", contents[1], 8)]
    };
    assert!(plan(&request(runs(["3 bytes", "3 bytes"]), 64 * MIB)).is_ok());
    let defaults = object(json!({ "data": null }));
    let mixed = Request { defaults, ..request(runs(["3 bytes", "4 bytes"]), 64 * MIB) };
    let error = plan(&mixed).unwrap_err().to_string();
    assert!(error.contains("data (3 bytes, 4 bytes)") && error.contains("--data /job1/book.txt"), "{error}");
    let given = object(json!({"data": "/here/copy.txt", "data_content": "4 bytes"}));
    let chosen = plan(&Request { given, ..request(runs(["3 bytes", "4 bytes"]), 64 * MIB) }).unwrap();
    assert_eq!(chosen.not_used.len(), 1);
    assert_eq!(chosen.not_used[0].why, "data is 3 bytes, not 4 bytes");
    // Runs that were made before this was kept.
    let old = |path: &str, batch| toy(json!({ "data": path }), batch);
    let mixed = vec![old("book.txt", 4), read("/job2/book.txt", "3 bytes", 8)];
    assert!(plan(&request(mixed, 64 * MIB)).is_ok());
}

#[test]
fn runs_to_come_are_traced_as_those_there_are() {
    let deep = |batch| Measured { trace: Trace::Ops, ..toy(json!({}), batch) };
    let plan = plan(&request(vec![deep(4), deep(8)], 64 * MIB)).unwrap();
    let needs = policy(&plan, "full").needs.as_deref();
    assert_eq!(needs, Some("stepledger run --batch 4 --checkpoint full --trace ops"));
}

#[test]
fn a_line_that_denies_time_is_said_and_the_policy_is_still_ranked() {
    // 10, 40 and 160 ms: the line has no time for batch 2, which is all that fits.
    let steep = |(batch, ms)| Measured { step_ms: Some(ms), ..measured("none", batch) };
    let plan = plan(&request([(8, 10.0), (16, 40.0), (32, 160.0)].map(steep).into(), 1_250)).unwrap();
    let none = policy(&plan, "none");
    assert_eq!((none.max_batch, none.time_source), (Some(2), Some(TimeSource::Scaled)));
    assert!(none.notes.iter().any(|note| note.contains("no positive time for batch 2")), "{:?}", none.notes);
    assert_eq!(plan.ranked_by, RankedBy::TokensPerS);
    assert!(!plan.missing.iter().any(|line| line.contains("not measured")), "{:?}", plan.missing);
}

#[test]
fn a_peak_beyond_the_runs_is_exact_only_where_theory_says_the_same() {
    let runs = |measured: fn(i64) -> Measured| [2, 4, 8].map(measured).into();
    let excluded = |runs, capacity| {
        let plan = plan(&request(runs, capacity)).unwrap();
        policy(&plan, "none").kink_excluded
    };
    assert_eq!(excluded(runs(|batch| measured("none", batch)), 2_000), Some(false), "batch 10");
    assert_eq!(excluded(runs(|batch| measured("none", batch)), 1_600), Some(true), "batch 6");
    assert_eq!(excluded(vec![measured("none", 2), measured("none", 8)], 1_600), Some(false), "two batches");
    assert_eq!(excluded(runs(|batch| toy(json!({}), 2 * batch)), 64 * MIB), Some(true), "theory knows it");
}

#[test]
fn two_batches_of_a_program_of_ones_own_do_not_hide_that_they_show_no_kink() {
    let noted = |runs| {
        let plan = plan(&request(runs, 2_000)).unwrap();
        policy(&plan, "none").notes.iter().any(|note| note.contains("measure a third"))
    };
    assert!(noted(vec![measured("none", 2), measured("none", 4)]));
    assert!(!noted(vec![measured("none", 2), measured("none", 4), measured("none", 8)]));
    let toys = plan(&request(vec![toy(json!({}), 4), toy(json!({}), 8)], 64 * MIB)).unwrap();
    assert_eq!(policy(&toys, "none").notes, Vec::<String>::new(), "theory knows");
}

#[test]
fn of_many_runs_a_few_are_told() {
    let bad = (1..=1000).map(|batch| Measured { steps: 0, ..measured("none", batch) });
    let error = plan(&request(bad.collect(), 2_000)).unwrap_err().to_string();
    assert!(error.lines().count() == 7 && error.ends_with("and 995 more"), "{error}");
    let untraced = (11..1000).map(|batch| Measured { peak_bytes: None, ..measured("none", batch) });
    let runs = [measured("none", 2), measured("none", 4)].into_iter().chain(untraced).collect();
    let plan = plan(&request(runs, 2_000)).unwrap();
    assert!(
        plan.missing.iter().any(|line| line.contains("none-15 and 984 more: memory")),
        "{:?}",
        plan.missing
    );
}

#[test]
fn a_kink_below_the_runs_is_not_said_to_lie_beyond_them() {
    let runs = [8, 12, 16].map(|batch| toy(json!({}), batch)).into();
    let plan = plan(&request(runs, 13 * MIB)).unwrap();
    let notes = &policy(&plan, "none").notes;
    assert!(notes.iter().any(|note| note.contains("a kink below them")), "{notes:?}");
}

/// The peaks move within the step: no line goes through all three, but theory has each.
#[test]
fn a_line_that_nothing_rests_on_is_not_doubted() {
    let small = json!({"layers": 2, "width": 32, "heads": 2, "seq": 32, "checkpoint": "full"});
    let runs = [2, 4, 8].map(|batch| toy(small.clone(), batch)).into();
    let plan = plan(&request(runs, 8 * MIB)).unwrap();
    let full = policy(&plan, "full");
    assert_eq!(full.source, Some(Source::Theory), "{full:?}");
    let told = full.notes.join("; ");
    assert!(told.contains("theory has every measured peak right") && !told.contains("bad fit"), "{told}");
}

#[test]
fn one_policy_that_was_not_measured_is_one() {
    let run = |policy: &str, batch| Measured {
        run_id: format!("{policy}-{batch}"),
        ..toy(json!({"layers": 1, "checkpoint": policy}), batch)
    };
    let runs = vec![run("none", 2), run("none", 4), run("full", 2), run("full", 4)];
    let plan = plan(&request(runs, 64 * MIB)).unwrap();
    let told = plan.missing.iter().find(|line| line.starts_with("time of 1 policy that was not measured"));
    assert!(told.is_some(), "{:?}", plan.missing);
}

/// Ids are given by hand, and `calibrate --noise` names its runs alike each time.
#[test]
fn runs_that_share_an_id_are_all_used_and_a_copy_is_none() {
    let same = |batch, second| Measured {
        run_id: "same".to_owned(),
        started_at: DateTime::from_timestamp(second, 0).unwrap(),
        ..measured("none", batch)
    };
    let runs = vec![same(2, 0), same(4, 60), same(4, 60)];
    let plan = plan(&request(runs, 2_000)).unwrap();
    let none = policy(&plan, "none");
    assert_eq!((none.max_batch, none.fit.as_ref().map(|fit| fit.runs)), (Some(10), Some(2)));
    let [NotUsed { run, why }] = &plan.not_used[..] else { panic!("{:?}", plan.not_used) };
    assert!(run == "same" && why.contains("a copy of run same"), "{why}");
}

/// As `stepledger calibrate` leaves them, with products of `f32` at this rate.
fn calibrated(tflop_s: f64, day: u32) -> ReferenceRates {
    let rate = |median| MeasuredRate { median, q1: median, q3: median, rounds: 5 };
    ReferenceRates::Calibrated(DeviceRates {
        device: "cpu".to_owned(),
        card: None,
        threads: Some(2),
        measured_at: format!("2026-01-{day:02}T12:00:00Z").parse().unwrap(),
        stepledger: "0.1.0".to_owned(),
        torch: "2.11.0".to_owned(),
        array_bytes: None,
        caches_bytes: None,
        copy_gb_s: rate(20.0),
        triad_gb_s: rate(20.0),
        matmul_f32_tflop_s: rate(tflop_s),
        matmul_bf16_tflop_s: rate(2.0 * tflop_s),
        matmul_f32_rows: Some(2048),
        matmul_bf16_rows: Some(2048),
        fma_f32_tflop_s: None,
    })
}

#[test]
fn theory_bounds_the_rate_of_what_was_not_measured() {
    let rates = Some(calibrated(0.15, 1));
    let plan = plan(&Request { rates, ..request(Vec::new(), 64 * MIB) }).unwrap();
    let (none, full) = (policy(&plan, "none"), policy(&plan, "full"));
    // 24 sequences: their products at 0.15 TFLOP/s.
    let shape = crate::theory::Shape::of(&gpt(json!({"batch": 24}))).unwrap();
    let step_ms = shape.product_flops() / 0.15e12 * 1e3;
    assert!((none.theory_step_ms.unwrap() - step_ms).abs() < 1e-9);
    let rate = none.theory_tokens_per_s.unwrap();
    assert!((rate - 24.0 * 64.0 / (step_ms / 1e3)).abs() < 1e-6);
    let again = full.recompute_share.unwrap();
    assert!((full.theory_tokens_per_s.unwrap() * (1.0 + again) / rate - 1.0).abs() < 1e-12);
    // It is no measurement, and is not taken for one.
    assert_eq!((none.predicted_tokens_per_s, plan.ranked_by), (None, RankedBy::ComputePerToken));
    assert_eq!(plan.evidence, EvidenceLevel::TeachingProxy);
    assert_eq!(plan.products_at_most.unwrap().source, "calibrated");
    assert_eq!(plan.best.unwrap().at.theory_tokens_per_s, Some(rate));
}

#[test]
fn runs_say_themselves_what_their_device_can_do() {
    let run = |batch, day| Measured {
        reference_rates: Some(calibrated(0.1 * f64::from(day), day)),
        ..toy(json!({}), batch)
    };
    let rates = Some(calibrated(9.0, 9));
    let plan = plan(&Request { rates, ..request(vec![run(4, 1), run(8, 2)], 64 * MIB) }).unwrap();
    assert_eq!(plan.products_at_most.as_ref().unwrap().tflop_s, 0.2, "the newest of theirs");
    let (none, full) = (policy(&plan, "none"), policy(&plan, "full"));
    assert!(none.predicted_tokens_per_s.is_some() && none.theory_tokens_per_s.is_some());
    assert!(full.predicted_tokens_per_s.is_none() && full.theory_tokens_per_s.is_some());
}

#[test]
fn where_nothing_fits_one_sequence_is_tried_with_the_policy_that_comes_nearest() {
    let plan = plan(&request(Vec::new(), 5 * MIB)).unwrap();
    let [trial] = &trials(&plan)[..] else { panic!("one trial") };
    assert_eq!((trial.batch, trial.predicted_fits), (1, false));
    let least = plan.policies.iter().filter_map(|policy| policy.predicted_peak_bytes).min();
    assert_eq!(trial.predicted_peak_bytes, least);
}
