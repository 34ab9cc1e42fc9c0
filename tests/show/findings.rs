//! What is found, and what is not claimed.

use serde_json::{Value, json};
use stepledger::record::Trace;

use super::Shown;
use super::made_up::Plan;

/// Neither the types of its parameters nor its optimizer are in the records of a program of one's own.
#[test]
fn a_program_that_is_no_toy_model_is_held_against_no_theory() {
    let shown = Shown::new(Plan::USUAL).json("");
    assert!(shown["parameters"].as_i64().unwrap() > 0);
    let lines = shown["findings"]["ledger"].as_array().unwrap();
    assert!(!lines.is_empty());
    for line in lines {
        assert_eq!(
            (&line["theory_bytes"], &line["difference_bytes"]),
            (&Value::Null, &Value::Null),
            "{line}"
        );
    }
}

/// Without the GPU's own counters the bottleneck is not attributed, which is said with its reason; what its events tell is.
#[test]
fn of_a_gpu_the_events_say_what_they_can_and_the_rest_is_named() {
    let shown = Shown::new(Plan { trace: Trace::Phases, waits_every: Some(1), ..Plan::USUAL });
    let found = &shown.json("")["findings"];
    assert_eq!((&found["bottleneck"], &found["resources"]), (&Value::Null, &Value::Null));
    assert_eq!(
        found["exposure"],
        json!({"kernel_at_most_ms": 2.5, "transfer_at_least_ms": 6.0, "sync_at_least_ms": 1.0,
            "launch_at_least_ms": 0.5, "largest": "transfer"})
    );
    let text = shown.text("").split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "transfer takes the most of the step, whatever its kernels do (by events alone: kernels at most 2.50 ms",
        "attribute-bottleneck says nothing: not measured: flops, dram_bytes, kernel_ms (",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert_eq!(Shown::new(Plan::USUAL).json("")["findings"]["exposure"], Value::Null);
}

/// The host hands a step over in a tenth of the time that the device takes: in a loop that reads no loss, and in a step
/// between two that do.
#[test]
fn of_a_gpu_that_was_not_waited_for_the_hosts_time_says_nothing() {
    for (waits_every, flags) in [(90, ""), (4, "--step 5")] {
        let plan = Plan { trace: Trace::Phases, waits_every: Some(waits_every), ..Plan::USUAL };
        let shown = Shown::new(plan).json(flags);
        let found = &shown["findings"];
        for null in
            [&found["summary"], &found["exposure"], &found["resources"], &shown["step"]["tokens_per_s"]]
        {
            assert_eq!(null, &Value::Null, "{flags}");
        }
        for rule in ["summarize-step-metrics", "exposure", "derive-resource-metrics", "attribute-bottleneck"]
        {
            let silent = found["abstained"].as_array().unwrap().iter().find(|silent| silent["rule"] == rule);
            let why = silent.unwrap_or_else(|| panic!("{rule}"))["why"].as_str().unwrap();
            assert!(why.contains("the host's alone"), "{rule}: {why}");
        }
    }
}
