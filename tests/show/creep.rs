//! Memory that creeps, among the findings.

use serde_json::json;
use stepledger::record::Trace;

use super::Shown;
use super::made_up::Plan;

#[test]
fn a_loss_that_is_kept_every_step_is_found_with_its_scope() {
    let shown = Shown::new(Plan { leak: true, ..Plan::USUAL });
    let expected = json!([{
        "category": "workspace",
        "moment": "optimizer_end",
        "steps": 12,
        "bytes_per_step": 4.0,
        "low": 4.0,
        "high": 4.0,
        "blame": { "place": "loss", "bytes": 48, "blocks": 12 },
    }]);
    assert_eq!(shown.json("")["findings"]["memory_creep"], expected);
    assert_eq!(shown.json("--step 3")["findings"]["memory_creep"], expected, "whatever step is looked at");
    let text = shown.text("");
    assert!(text.contains("memory_creep: workspace grows by 4 B a step (4 B to 4 B)"), "{text}");
    assert!(text.contains("first to blame: loss"), "{text}");
}

#[test]
fn a_healthy_run_has_none_even_if_its_first_step_is_measured() {
    for warmup in [0, 2] {
        let shown = Shown::new(Plan { warmup, ..Plan::USUAL });
        assert_eq!(shown.json("")["findings"]["memory_creep"], json!([]), "warmup {warmup}");
        assert!(!shown.text("").contains("memory_creep"));
    }
}

/// An empty list says that nothing grows; what cannot be known is told apart from it.
#[test]
fn without_enough_steps_or_a_trace_of_memory_the_rule_abstains_and_says_why() {
    let few = Plan { leak: true, steps: 11, ..Plan::USUAL };
    let blind = Plan { trace: Trace::Phases, ..Plan::USUAL };
    for (plan, why) in [(few, "needs 10 measured steps, has 9"), (blind, "memory was not traced")] {
        let shown = Shown::new(plan);
        let findings = &shown.json("")["findings"];
        assert_eq!(findings["memory_creep"], json!([]));
        let abstained = findings["abstained"].as_array().unwrap();
        assert!(abstained.contains(&json!({"rule": "memory-creep", "why": why})), "{abstained:?}");
        assert!(shown.text("").contains(&format!("memory-creep says nothing: {why}")));
    }
    let healthy = &Shown::new(Plan::USUAL).json("")["findings"]["abstained"];
    assert!(!healthy.to_string().contains("memory-creep"), "{healthy}");
}
