//! `show` and `show --step`: what is said of the step itself.

use serde_json::{Value, json};
use stepledger::record::Trace;

use super::Shown;
use super::made_up::Plan;
use super::program::program;

#[test]
fn one_step_has_its_own_loss_and_is_called_what_it_is() {
    let shown = Shown::new(Plan::USUAL);
    for (flags, words) in [
        ("", "(median of 12 steps; middle half 10.0 ms to 10.0 ms), 10,000 tokens/s, loss 5.0000 → 3.7000"),
        ("--step 0", "(step 0 alone, of the warm-up), 10,000 tokens/s, loss 5.0000\n"),
        ("--step 5", "(step 5 alone), 10,000 tokens/s, loss 4.5000\n"),
    ] {
        let text = shown.text(flags);
        assert!(text.contains(words), "{flags}: {text}");
    }
    assert_eq!(shown.json("--step 1")["one_step"], json!({"step": 1, "warmup": true, "loss": 4.9}));
    assert_eq!(shown.json("")["one_step"], Value::Null);
}

#[test]
fn steps_that_scatter_widely_are_called_unsteady() {
    let shown = Shown::new(Plan { uneven: true, ..Plan::USUAL });
    let text = shown.text("");
    assert!(text.contains("Unsteady: the middle half of the steps is 100 % of the median wide."), "{text}");
    assert_eq!(shown.json("")["step"]["unsteady"], true);
    let even = Shown::new(Plan::USUAL);
    assert!(!even.text("").contains("Unsteady"));
    assert_eq!(even.json("")["step"]["unsteady"], false);
    assert_eq!(even.json("--step 5")["step"]["unsteady"], Value::Null, "one step does not tell");
}

/// On a GPU that the host waits for now and then, only whole cycles tell a step's time: 10 ms, and not the host's 1 ms.
#[test]
fn a_gpus_step_is_told_by_whole_cycles_from_one_wait_to_the_next() {
    let plan = |steps, every| Plan { steps, trace: Trace::Phases, waits_every: Some(every), ..Plan::USUAL };
    for (plan, words) in [
        (plan(14, 1), "Step 10.0 ms (median of 12 steps; middle half 10.0 ms to 10.0 ms), 10,000 tokens/s"),
        // The first cycle begins within the warm-up, the last is not at its end.
        (
            plan(15, 4),
            "Step 10.0 ms (median of 2 cycles of 4 steps, from one wait for the device to the next; middle",
        ),
        (
            plan(9, 4),
            "Step 10.0 ms (1 cycle of 4 steps, from one wait for the device to the next), 10,000 tokens/s",
        ),
        (
            plan(14, 9),
            "No step time: it is known from one wait for the device to the next, and no such cycle",
        ),
        (
            plan(14, 90),
            "Step 1.00 ms (median of 12 steps; middle half 1.00 ms to 1.00 ms; the host's time: no wait",
        ),
    ] {
        let text = Shown::new(plan).text("");
        assert!(text.contains(words), "{words}: {text}");
    }
    let shown = Shown::new(plan(15, 4));
    let told = &shown.json("")["step"];
    let expected = json!([13, 2, 4, 10.0, 10_000.0]);
    assert_eq!(
        json!([told["n"], told["cycles"], told["cycle_steps"], told["median_ms"], told["tokens_per_s"]]),
        expected
    );
    let text = shown.text("--step 5");
    assert!(text.contains("Step 1.00 ms (step 5 alone; the host's time"), "{text}");
    let list = program().args(["list", "--json", "--out"]).arg(shown.runs.file("runs")).output().unwrap();
    let listed: Value = serde_json::from_slice(&list.stdout).unwrap();
    assert_eq!(
        json!([listed["runs"][0]["step_ms"], listed["runs"][0]["tokens_per_s"]]),
        json!([10.0, 10_000.0])
    );
    assert_eq!(listed["runs"][0]["started_at"], shown.json("")["started_at"]);
}

/// Where no cycle is known a phase took some time, but nobody knows how much of a step.
#[test]
fn without_a_whole_cycle_a_phase_has_no_time_a_step() {
    let shown = Shown::new(Plan { steps: 14, trace: Trace::Phases, waits_every: Some(9), ..Plan::USUAL });
    let told = shown.json("");
    for phase in told["phases"].as_array().unwrap() {
        assert!(phase["median_ms"].is_null() && phase["calls"].as_i64() > Some(0), "{phase}");
    }
    let text = shown.text("");
    let forward = text.lines().find(|line| line.trim_start().starts_with("forward ")).unwrap();
    assert!(forward.contains('—') && !text.contains("  0 µs"), "{text}");
    let abstained = told["findings"]["abstained"].as_array().unwrap();
    let rule = abstained.iter().find(|rule| rule["rule"] == "summarize-step-metrics").unwrap();
    let why = rule["why"].as_str().unwrap();
    assert!(
        why.starts_with("no step time: it is known from one wait") && why.contains("--sync-every"),
        "{why}"
    );
}
