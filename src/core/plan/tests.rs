//! Plans from made-up runs whose lines are known.

use serde_json::{Map, Value, json};

use super::*;
use crate::record::{LackingSteps, Machine, Phase, RunStatus, Trace};
use crate::theory::MAX_BATCH;

pub const MIB: i64 = 1 << 20;

/// A run of a program that no theory knows: peak 1000 + 100·batch bytes, step 2 + 0.5·batch ms, 16 tokens an entry.
pub fn measured(checkpoint: &str, batch: i64) -> Measured {
    Measured {
        run_id: format!("{checkpoint}-{batch}"),
        started_at: Default::default(),
        program: "mine".to_owned(),
        status: RunStatus::Complete,
        reason: None,
        config: object(json!({ "batch": batch, "checkpoint": checkpoint, "size": 3 })),
        device: "cpu".to_owned(),
        machine: Machine::default(),
        trace: Trace::Allocations,
        stepledger_version: "0.1.0".to_owned(),
        torch_version: None,
        reference_rates: None,
        device_memory_bytes: None,
        parameters: None,
        steps: 10,
        lacks: None,
        cycles: 10,
        step_ms: Some(2.0 + 0.5 * batch as f64),
        tokens: Some(16.0 * batch as f64),
        peak_bytes: Some(1_000 + 100 * batch),
        peak_phase: Some(Phase::Backward),
    }
}

/// The same with recomputation: it keeps half as much a batch and takes half as long again.
fn recomputing(batch: i64) -> Measured {
    Measured {
        step_ms: Some(3.0 + 0.75 * batch as f64),
        peak_bytes: Some(1_000 + 50 * batch),
        ..measured("full", batch)
    }
}

/// A run of the toy GPT, exact to theory in memory.
pub fn toy(further: Value, batch: i64) -> Measured {
    let mut config = gpt(further);
    config.insert("batch".to_owned(), batch.into());
    let peak = crate::theory::Shape::of(&config).unwrap().peak_bytes();
    Measured { program: "gpt".to_owned(), peak_bytes: Some(peak), config, ..measured("none", batch) }
}

pub fn gpt(further: Value) -> Map<String, Value> {
    let mut config = object(json!({
        "model": "gpt", "layers": 4, "width": 128, "heads": 4, "seq": 64, "batch": 8, "attention": "sdpa",
        "checkpoint": "none",
    }));
    config.extend(object(further));
    config
}

pub fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

pub fn request(runs: Vec<Measured>, capacity_bytes: i64) -> Request {
    Request { runs, ..Request::from_theory(gpt(json!({})), capacity_bytes) }
}

pub fn policy<'p>(plan: &'p Plan, checkpoint: &str) -> &'p PolicyPlan {
    plan.policies.iter().find(|policy| policy.checkpoint.as_deref() == Some(checkpoint)).unwrap()
}

#[test]
fn any_workload_is_planned_from_its_runs() {
    let mut runs: Vec<Measured> = [2, 4, 8].map(|batch| measured("none", batch)).into();
    runs.extend([2, 4, 8].map(recomputing));
    let plan = plan(&request(runs, 2_000)).unwrap();
    let (none, full) = (policy(&plan, "none"), policy(&plan, "full"));
    assert_eq!((none.max_batch, none.predicted_peak_bytes), (Some(10), Some(2_000)));
    assert_eq!((none.peak_interval_bytes, none.source), (Some([2_000, 2_000]), Some(Source::Fit)));
    assert!((none.predicted_step_ms.unwrap() - 7.0).abs() < 1e-9);
    assert!((none.predicted_tokens_per_s.unwrap() - 160.0 / 0.007).abs() < 1e-6);
    assert_eq!((full.max_batch, none.theory_peak_bytes, none.recompute_share), (Some(20), None, None));
    assert_eq!(
        (none.extrapolates, full.extrapolates),
        (Some(Extrapolates::Beyond), Some(Extrapolates::Strongly))
    );
    let best = plan.best.as_ref().unwrap();
    assert_eq!(
        (best.checkpoint.as_deref(), best.at.batch, plan.ranked_by),
        (Some("none"), 10, RankedBy::TokensPerS)
    );
    let why = &plan.runner_up.as_ref().unwrap().why_it_lost;
    assert!(why.contains("fits batch 20 instead of 10, but") && why.contains("tokens/s"), "{why}");
    assert!(plan.placement.is_none() && plan.missing.iter().any(|line| line.starts_with("theory")));
}

#[test]
fn two_runs_leave_no_interval_but_a_plan() {
    let plan = plan(&request(vec![measured("none", 2), measured("none", 4)], 2_000)).unwrap();
    let none = policy(&plan, "none");
    assert_eq!((none.max_batch, none.peak_interval_bytes, none.step_interval_ms), (Some(10), None, None));
    assert!(none.needs.is_none() && plan.runner_up.is_none());
}

#[test]
fn one_run_of_an_unknown_program_needs_a_second() {
    let error = plan(&request(vec![measured("none", 2)], 2_000)).unwrap_err();
    assert!(error.to_string().contains("mine again, with batch 4, checkpoint none"), "{error}");
}

#[test]
fn a_policy_measured_once_beside_others_says_what_it_needs() {
    let runs = vec![measured("none", 2), measured("none", 4), recomputing(4)];
    let plan = plan(&request(runs, 2_000)).unwrap();
    let full = policy(&plan, "full");
    assert_eq!((full.max_batch, full.source), (None, None));
    assert_eq!(full.needs.as_deref(), Some("mine again, with batch 8, checkpoint full"));
}

#[test]
fn theory_alone_ranks_by_compute_and_says_so() {
    let plan = plan(&request(Vec::new(), 64 * MIB)).unwrap();
    let (none, full) = (policy(&plan, "none"), policy(&plan, "full"));
    assert_eq!((none.max_batch, none.source), (Some(24), Some(Source::Theory)));
    assert!(full.max_batch > none.max_batch);
    assert_eq!((none.predicted_tokens_per_s, plan.ranked_by), (None, RankedBy::ComputePerToken));
    assert!(plan.missing[0].starts_with("tokens/s: no rate is known"));
    let best = plan.best.as_ref().unwrap();
    assert_eq!(
        (best.checkpoint.as_deref(), best.command.as_str()),
        (Some("none"), "stepledger run --batch 24 --checkpoint none")
    );
    // Attention's core is the least to compute again.
    assert_eq!(plan.runner_up.as_ref().unwrap().checkpoint.as_deref(), Some("selective"));
    let words: Vec<_> = plan.policies.iter().filter_map(|policy| policy.checkpoint.as_deref()).collect();
    assert_eq!(words, ["none", "full", "selective", "every:2", "every:3", "every:4"]);
}

#[test]
fn where_only_recomputation_fits_it_is_best() {
    let plan = plan(&request(Vec::new(), 16 * MIB)).unwrap();
    assert_eq!(policy(&plan, "none").max_batch.map(|batch| batch < 8), Some(true));
    let deep = super::plan(&Request::from_theory(gpt(json!({"layers": 16, "seq": 256})), 68 * MIB)).unwrap();
    assert_eq!(policy(&deep, "none").max_batch, Some(0));
    assert_eq!(deep.best.unwrap().checkpoint.as_deref(), Some("full"));
}

#[test]
fn a_toy_models_one_run_is_completed_by_theory() {
    let plan = plan(&request(vec![toy(json!({}), 8)], 64 * MIB)).unwrap();
    let none = policy(&plan, "none");
    assert_eq!(
        (none.max_batch, none.source, none.time_source),
        (Some(24), Some(Source::Theory), Some(TimeSource::Scaled))
    );
    assert!((none.predicted_step_ms.unwrap() - 18.0).abs() < 1e-9, "three times 6 ms");
    assert!(none.notes[0].contains("scaled from batch 8 alone"));
    assert_eq!(none.needs.as_deref(), Some("stepledger run --batch 16 --checkpoint none"));
    let full = policy(&plan, "full");
    assert_eq!(
        (full.predicted_tokens_per_s, full.needs.as_deref()),
        (None, Some("stepledger run --batch 8 --checkpoint full"))
    );
    assert_eq!(plan.best.as_ref().unwrap().checkpoint.as_deref(), Some("none"));
    assert!(plan.missing.iter().any(|line| line.contains("not ranked")));
}

#[test]
fn a_fit_has_theory_beside_it() {
    let runs = [4, 8, 12].map(|batch| toy(json!({}), batch)).into();
    let plan = plan(&request(runs, 64 * MIB)).unwrap();
    let none = policy(&plan, "none");
    assert_eq!((none.max_batch, none.source, none.theory_max_batch), (Some(24), Some(Source::Fit), Some(24)));
    assert_eq!(none.theory_peak_bytes, none.predicted_peak_bytes);
    assert!(none.notes.is_empty(), "{:?}", none.notes);
}

#[test]
fn a_peak_that_does_not_grow_tells_no_largest_batch() {
    let flat = |batch| Measured {
        peak_bytes: Some(5_000),
        peak_phase: Some(Phase::Optimizer),
        ..measured("none", batch)
    };
    let error = plan(&request(vec![flat(1), flat(2), flat(4)], 9_000)).unwrap_err().to_string();
    assert!(
        error.starts_with("the peak does not grow with the batch") && !error.contains("one batch"),
        "{error}"
    );
    assert!(error.contains("measure larger batches:\n  mine again, with batch 8"), "{error}");
    let falling = |batch| Measured { peak_bytes: Some(5_000 - 100 * batch), ..measured("none", batch) };
    let error = plan(&request(vec![falling(1), falling(2)], 9_000)).unwrap_err();
    assert!(matches!(error, PlanError::FlatPeak { .. }), "{error}");
    // A toy model's theory goes on where the runs stop.
    let flat = |batch| Measured { peak_bytes: Some(5_000), ..toy(json!({}), batch) };
    let plan = plan(&request(vec![flat(1), flat(2)], 64 * MIB)).unwrap();
    let none = policy(&plan, "none");
    assert_eq!((none.max_batch, none.source), (Some(24), Some(Source::Theory)));
    assert!(none.notes[0].contains("does not grow"), "{:?}", none.notes);
}

#[test]
fn runs_that_cannot_be_used_are_told_with_the_reason() {
    let bad = vec![
        Measured { status: RunStatus::OutOfMemory, ..measured("none", 64) },
        Measured { status: RunStatus::Interrupted, reason: Some("Ctrl-C".to_owned()), ..measured("none", 3) },
        Measured { steps: 0, step_ms: None, ..measured("none", 5) },
        Measured { config: Map::new(), ..measured("none", 6) },
        Measured { lacks: Some(LackingSteps { there: 10, recorded: 12 }), ..measured("none", 7) },
    ];
    let mut runs = bad.clone();
    runs.extend([measured("none", 2), measured("none", 4)]);
    let plan = plan(&request(runs, 2_000)).unwrap();
    let why: Vec<&str> = plan.not_used.iter().map(|run| run.why.as_str()).collect();
    assert_eq!(why.len(), 5);
    let parts =
        ["out_of_memory", "interrupted: Ctrl-C", "no measured step", "says no `batch`", "10 of its 12 steps"];
    for (why, part) in why.iter().zip(parts) {
        assert!(why.contains(part), "{why}");
    }
    let error = super::plan(&request(bad, 2_000)).unwrap_err();
    assert!(error.to_string().contains("none-64: it did not complete (out_of_memory)"), "{error}");
}

#[test]
fn runs_without_a_peak_give_their_time_and_are_named() {
    let untraced = Measured { peak_bytes: None, peak_phase: None, ..measured("none", 8) };
    let plan = plan(&request(vec![measured("none", 2), measured("none", 4), untraced], 2_000)).unwrap();
    assert_eq!(policy(&plan, "none").max_batch, Some(10));
    assert!(plan.missing.iter().any(|line| line.contains("peak of none-8")), "{:?}", plan.missing);
}

/// More batches of the same kind would say as little.
#[test]
fn runs_that_have_no_peaks_at_all_are_told_to_be_traced() {
    let untraced = |batch| Measured { peak_bytes: None, trace: Trace::Phases, ..measured("none", batch) };
    let bad = Measured { status: RunStatus::Failed, ..measured("none", 16) };
    let error =
        plan(&request(vec![untraced(2), untraced(4), untraced(8), bad], 9_000)).unwrap_err().to_string();
    assert!(error.starts_with("memory was not traced") && error.contains("--trace allocations"), "{error}");
    assert!(!error.contains("batch 16,") && error.contains("Not used:\n  none-16"), "{error}");
    // A trace that was deep enough is not asked for again.
    let traced = |batch| Measured { peak_bytes: None, ..measured("none", batch) };
    let error = plan(&request(vec![traced(2), traced(4)], 9_000)).unwrap_err().to_string();
    assert!(error.contains("though their memory was traced") && !error.contains("--trace"), "{error}");
}

#[test]
fn runs_of_several_workloads_are_refused_naming_the_fields_unless_one_is_chosen() {
    let mut wide = measured("none", 5);
    wide.config.insert("size".to_owned(), 5.into());
    let mut far = measured("none", 3);
    far.machine.host = Some("elsewhere".to_owned());
    let runs = vec![measured("none", 2), measured("none", 4), wide, far];
    let error = plan(&request(runs.clone(), 2_000)).unwrap_err().to_string();
    let told = error.contains("machine.host (elsewhere, null), size (3, 5)");
    assert!(told && !error.contains("--size"), "--size is no flag: {error}");
    let given = object(json!({ "size": 3 }));
    let chosen = plan(&Request { given, ..request(runs[..3].to_vec(), 2_000) }).unwrap();
    assert_eq!((chosen.not_used.len(), chosen.not_used[0].why.as_str()), (1, "size is 5, not 3"));
}

#[test]
fn a_capacity_that_makes_no_sense_is_refused_with_the_floor() {
    assert_eq!(plan(&request(Vec::new(), 0)).unwrap_err(), PlanError::Capacity(0));
    let error = plan(&request(Vec::new(), MIB)).unwrap_err().to_string();
    for part in ["1,048,576 bytes", "3,337,216", "the floor, one sequence with --checkpoint", "MiB"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    // The floor that is told is enough, and one MiB less is not.
    let PlanError::BelowParameters { floor_mb, .. } = plan(&request(Vec::new(), MIB)).unwrap_err() else {
        panic!("another error");
    };
    let fits = |mb: i64| plan(&request(Vec::new(), mb * MIB)).unwrap().best.is_some();
    assert!(fits(floor_mb) && !fits(floor_mb - 1));
}

#[test]
fn no_batch_is_planned_that_run_does_not_take() {
    let plan = plan(&request(Vec::new(), 1 << 60)).unwrap();
    let (none, best) = (policy(&plan, "none"), plan.best.as_ref().unwrap());
    assert_eq!((none.max_batch, best.at.batch), (Some(MAX_BATCH), MAX_BATCH));
    assert!(none.notes.iter().any(|note| note.contains("no batch above 16,777,216")), "{:?}", none.notes);
    // The one after it is none to try.
    assert_eq!((none.next_batch_peak_bytes, trials(&plan).len()), (None, 1));
    // Another program takes what it takes.
    let runs = [2, 4, 8].map(|batch| measured("none", batch)).into();
    let own = super::plan(&request(runs, 1 << 40)).unwrap();
    assert!(policy(&own, "none").max_batch > Some(1 << 33), "{:?}", own.policies);
}

#[test]
fn dropout_and_programs_without_runs_have_no_plan_from_theory() {
    let request = |config| Request::from_theory(config, 64 * MIB);
    assert_eq!(plan(&request(gpt(json!({"dropout": 0.1})))).unwrap_err(), PlanError::NoTheory);
    assert_eq!(plan(&request(Map::new())).unwrap_err(), PlanError::NoTheory);
}

#[test]
fn a_policy_asked_for_is_the_only_one() {
    let given = object(json!({ "checkpoint": "every:1" }));
    let only = plan(&Request { given, ..request(Vec::new(), 64 * MIB) }).unwrap();
    assert_eq!(only.policies.len(), 1);
    assert_eq!(only.best.unwrap().checkpoint.as_deref(), Some("full"));
    let given = object(json!({ "checkpoint": "every:9" }));
    let error = plan(&Request { given, ..request(Vec::new(), 64 * MIB) }).unwrap_err().to_string();
    assert!(error.contains("every:9") && error.contains("none, full, selective, every:2"), "{error}");
}

#[test]
fn segments_are_placed_for_the_capacity_and_for_memory() {
    // 64 blocks: in theory two streams outweigh nothing of a block's 16, three or more do.
    let deep = gpt(json!({"layers": 64, "width": 64, "seq": 128}));
    let plan = plan(&Request::from_theory(deep, 128 * MIB)).unwrap();
    let placement = plan.placement.unwrap();
    assert_eq!((placement.layers, placement.square_root.blocks), (64, 8));
    assert_eq!(placement.for_capacity.as_ref().unwrap().blocks, 1, "a segment's last product is spared");
    assert!(placement.for_memory.theory_max_batch >= placement.square_root.theory_max_batch);
    assert!(placement.for_memory.blocks > 1, "{placement:?}");
    let more = policy(
        &super::plan(&Request::from_theory(gpt(json!({"layers": 64, "width": 64, "seq": 128})), 128 * MIB))
            .unwrap(),
        "every:2",
    )
    .max_batch;
    assert!(more >= placement.for_capacity.map(|size| size.theory_max_batch));
}

#[test]
fn a_kink_that_only_theory_can_see_is_not_run_into() {
    // Recomputation: up to batch 12 the peak lies elsewhere in backward than beyond.
    let runs = [4, 8, 12].map(|batch| toy(json!({ "checkpoint": "full" }), batch)).into();
    let plan = plan(&request(runs, 64 * MIB)).unwrap();
    let full = policy(&plan, "full");
    assert_eq!((full.max_batch, full.source), (full.theory_max_batch, Some(Source::Theory)));
    assert!(full.notes.iter().any(|note| note.contains("a kink beyond them")), "{:?}", full.notes);
}
