//! The rules against their definition (`vectors/rules.jsonl`) and against what must hold for any input.

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use stepledger::rules::{
    Event, Lang, LedgerInput, Rule, RuleError, StepMetrics, Thresholds, memory_ledger,
    summarize_step_metrics, top_hotspots,
};

/// Results that the rules round: the vectors give them exactly.
const ROUNDED: &[&str] = &["throughput_tok_s", "share_pct", "dominant_share_pct"];

#[derive(Deserialize)]
struct Case {
    rule: String,
    input: Value,
    expect: Option<Value>,
    error: Option<String>,
}

fn apply(rule: Rule, text: &str) -> Result<Value, RuleError> {
    let answer = rule.apply_json(text, &Thresholds::default(), Lang::En)?;
    Ok(serde_json::to_value(answer).expect("an answer is JSON"))
}

/// Whether everything expected came back; more may have.
fn came_back(field: &str, expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => expected
            .iter()
            .all(|(key, value)| actual.get(key).is_some_and(|found| came_back(key, value, found))),
        (Value::Array(expected), Value::Array(actual)) => {
            expected.len() == actual.len()
                && expected.iter().zip(actual).all(|(expected, actual)| came_back(field, expected, actual))
        }
        (Value::Number(expected), Value::Number(actual)) => {
            let (expected, actual) = (expected.as_f64().unwrap(), actual.as_f64().unwrap());
            let exact = field.ends_with("_mb") || ROUNDED.contains(&field);
            expected == actual || (!exact && (expected - actual).abs() <= 1e-12 * expected.abs())
        }
        _ => expected == actual,
    }
}

#[test]
fn every_vector_holds() {
    let mut cases = 0;
    for (at, line) in include_str!("vectors/rules.jsonl").lines().enumerate() {
        let case: Case = serde_json::from_str(line).unwrap();
        let result = apply(case.rule.parse().unwrap(), &case.input.to_string());
        match (&case.expect, &result) {
            (Some(expected), Ok(actual)) => {
                assert!(came_back("", expected, actual), "line {}: {line}\nbut got {actual}", at + 1)
            }
            (None, Err(_)) => assert!(case.error.is_some()),
            _ => panic!("line {}: {line}\nbut got {result:?}", at + 1),
        }
        cases += 1;
    }
    assert_eq!(cases, 685);
}

#[track_caller]
fn refused(rule: &str, text: &str, field: &str, message: &str) {
    let error = apply(rule.parse().unwrap(), text).expect_err("refused");
    assert_eq!(error.field, field, "{error}");
    assert!(error.to_string().contains(message), "{error}");
}

#[test]
fn an_error_names_the_field_the_value_and_what_is_allowed() {
    let step =
        |text: &str, field: &str, message: &str| refused("summarize-step-metrics", text, field, message);
    step(
        r#"{"step_ms": -4, "tokens": 1, "gpu_busy_pct": 1, "cpu_wait_ms": 1}"#,
        "step_ms",
        "is -4, but must be a finite number above 0",
    );
    step(r#"{"step_ms": true}"#, "step_ms", "is true, but must be a finite number above 0");
    step(r#"{"tokens": null}"#, "tokens", "is null, but must be a finite number, 0 or more");
    step(r#"{"tokens": "12"}"#, "tokens", "is \"12\", but");
    step(r#"{"tokens": [1]}"#, "tokens", "is an array, but");
    step(r#"{"tokens": {}}"#, "tokens", "is an object, but");
    step(r#"{"tokens": 1, "step_ms": 1e999}"#, "step_ms", "is 1e999, but must be a finite number above 0");
    step("{\n  \"tokens\": NaN}", "tokens", "is NaN, but");
    step(r#"{"tokens": -Infinity}"#, "tokens", "is -Infinity, but");
    step(r#"{"tokens": 1, "tokens": 1}"#, "tokens", "more than once");
    step(r#"{"tokens": 1, "token\u0073": 1}"#, "tokens", "more than once");
    step(r#"{"speed": 1}"#, "speed", "the keys here are: step_ms, tokens, gpu_busy_pct, cpu_wait_ms");
    step(r#"{"tokens": 1}"#, "step_ms", "is missing; it must be a finite number above 0");
    step("[1]", "input", "is an array, but must be an object");
    step(" \n", "input", "is empty");
    step("{} {}", "input", "not valid JSON");
    step(r#"{"tokens": 1 "step_ms": 1}"#, "input", "not valid JSON");
    step(r#"{"tokens" 1}"#, "tokens", "not valid JSON");
}

#[test]
fn a_path_leads_to_a_nested_field() {
    refused("derive-resource-metrics", r#"{"record": {"flops": false}}"#, "record.flops", "is false");
    refused("derive-resource-metrics", r#"{"record": {"note": 1}}"#, "record.note", "known key");
    refused(
        "derive-resource-metrics",
        r#"{"record": {"time_model": "x"}}"#,
        "record.time_model",
        "nonoverlapping",
    );
    refused("derive-resource-metrics", r#"{"record": {"flops": 1e400}}"#, "record.flops", "is 1e400, but");
    refused("derive-resource-metrics", r#"{"record": {"flops" 5}}"#, "record.flops", "is not valid JSON");
    refused("top-hotspots", r#"{"events": [{"calls": 1}, {"calls": true}]}"#, "events[1].calls", "is true");
    refused("top-hotspots", r#"{"events": [3], "topk": 1}"#, "events[0]", "is 3, but must be an object");
    refused("top-hotspots", r#"{"events": [{"x": 1, "x": 2}]}"#, "events[0].x", "more than once");
    refused("top-hotspots", r#"{"events": [{"name": "a"}], "topk": 1}"#, "events[0].total_ms", "is missing");
    refused("top-hotspots", r#"{"events": [], "topk": 1.5}"#, "topk", "is 1.5, but must be a whole number");
    let ledger =
        r#"{"ledger": {"total_mb": -1}, "capacity_mb": 1, "hotspot": "x", "communication_heavy": true}"#;
    refused("choose-next-validation", ledger, "ledger.total_mb", "is -1");
    let shares = r#"{"ledger": {"total_mb": 1, "shares_pct": {"grads_mb": true}}}"#;
    refused("choose-next-validation", shares, "ledger.shares_pct.grads_mb", "is true");
    let flag = r#"{"communication_heavy": 1}"#;
    refused("choose-next-validation", flag, "communication_heavy", "is 1, but must be true or false");
}

#[test]
fn a_count_is_whole_by_value_and_fits() {
    let count = |count: &str| {
        let zeros = r#""param_bytes": 1, "grad_bytes": 0, "adam_state_bytes": 0, "activation_bytes": 0"#;
        apply(Rule::MemoryLedger, &format!(r#"{{"param_count": {count}, {zeros}}}"#))
    };
    assert_eq!(count("2.0").unwrap()["parameters_bytes"], json!(2));
    assert!(count("2.5").unwrap_err().to_string().contains("is 2.5, but must be a whole number, 1 or more"));
    assert_eq!(count("1e30").unwrap_err().field, "param_count");
}

#[test]
fn other_fields_of_an_event_are_kept_to_the_letter() {
    let event = r#"{"z": 1.50, "name": "a", "stream": 12345678901234567890123, "share_pct": 7, "total_ms": 4, "a": {"k": 1, "k": 2}, "calls": 2}"#;
    let text = format!(r#"{{"topk": 1, "events": [{event}]}}"#);
    let answer = Rule::TopHotspots.apply_json(&text, &Thresholds::default(), Lang::En).unwrap();
    assert_eq!(
        serde_json::to_string(&answer).unwrap(),
        r#"[{"name":"a","total_ms":4,"calls":2,"z":1.50,"stream":12345678901234567890123,"a":{"k": 1, "k": 2},"share_pct":100.0}]"#
    );
}

#[test]
fn the_answers_of_two_rules_are_inputs_of_two_others() {
    let ledger = r#"{"param_count": 9, "param_bytes": 4, "grad_bytes": 4, "adam_state_bytes": 8, "activation_bytes": 1}"#;
    let ledger = apply(Rule::MemoryLedger, ledger).unwrap();
    let situation =
        json!({"ledger": ledger, "capacity_mb": 1, "hotspot": "forward", "communication_heavy": false});
    let next = apply(Rule::ChooseNextValidation, &situation.to_string()).unwrap();
    assert_eq!(next["next_validation"], "profile_forward_details");

    let record = json!({"flops": 1e9, "dram_bytes": 1e9, "kernel_ms": 5, "transfer_ms": 9, "sync_ms": 1,
        "launch_ms": 1, "time_model": "nonoverlapping_exposed_intervals"});
    let bottleneck = json!({"record": record, "reference_tflops": 10, "reference_dram_gbps": 1000});
    let attribution = apply(Rule::AttributeBottleneck, &bottleneck.to_string()).unwrap();
    assert_eq!(attribution["efficiency_screen"], 0.7);
    let experiment = json!({"attribution": attribution, "single_change": "pin_memory"});
    assert_eq!(
        apply(Rule::BuildDiscriminationExperiment, &experiment.to_string()).unwrap()["hypothesis"],
        "transfer"
    );
}

/// Texts of the object `value` with the keys of every object in it in another order.
fn shuffled(value: &Value) -> BoxedStrategy<Value> {
    let Value::Object(map) = value else { return Just(value.clone()).boxed() };
    let entries: Vec<(String, Value)> = map.clone().into_iter().collect();
    let entries = Just(entries).prop_shuffle().prop_flat_map(|entries| {
        entries.into_iter().map(|(key, value)| (Just(key), shuffled(&value))).collect::<Vec<_>>()
    });
    entries.prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>())).boxed()
}

fn vector() -> impl Strategy<Value = (Rule, Value, Value)> {
    let lines: Vec<&str> = include_str!("vectors/rules.jsonl").lines().collect();
    proptest::sample::select(lines).prop_flat_map(|line| {
        let case: Case = serde_json::from_str(line).unwrap();
        let shuffled = shuffled(&case.input);
        (Just(case.rule.parse().unwrap()), Just(case.input), shuffled)
    })
}

fn ledger_input() -> impl Strategy<Value = LedgerInput> {
    let per_parameter = || proptest::sample::select(vec![0.0, 0.5, 1.0, 2.0, 4.0, 8.0]);
    (1..20_000_000_000_i64, per_parameter(), per_parameter(), per_parameter(), 0..1_i64 << 40, 0..1_i64 << 36)
        .prop_map(
            |(param_count, param_bytes, grad_bytes, adam_state_bytes, activation_bytes, temporary_bytes)| {
                LedgerInput {
                    param_count,
                    param_bytes,
                    grad_bytes,
                    adam_state_bytes,
                    activation_bytes,
                    temporary_bytes,
                }
            },
        )
}

proptest! {
    #[test]
    fn the_order_of_keys_changes_nothing((rule, input, shuffled) in vector()) {
        let (straight, shuffled) = (apply(rule, &input.to_string()), apply(rule, &shuffled.to_string()));
        prop_assert_eq!(straight.ok(), shuffled.ok());
    }

    #[test]
    fn the_shares_of_a_ledger_add_up(input in ledger_input()) {
        prop_assume!(input.activation_bytes > 10 << 20);
        let ledger = memory_ledger(&input).unwrap();
        let shares = ledger.shares_pct;
        let sum = shares.parameters_mb + shares.grads_mb + shares.adam_state_mb
            + shares.activation_mb + shares.temporary_mb;
        // Five shares rounded to 0.1, of components rounded to 0.01 MiB in a total of 10 MiB or more.
        prop_assert!((sum - 100.0).abs() <= 5.0 * 0.05 + 5.0 * 0.05 + 1e-9, "{}", sum);
        let bytes = ledger.parameters_bytes + ledger.grads_bytes + ledger.adam_state_bytes
            + ledger.activation_bytes + ledger.temporary_bytes;
        prop_assert_eq!(bytes, ledger.total_bytes);
    }

    #[test]
    fn hotspots_are_in_order_and_stable(times in prop::collection::vec(0_u32..6, 1..40), topk in 1_i64..50) {
        prop_assume!(times.iter().any(|&time| time > 0));
        let events = times.iter().enumerate();
        let events = events.map(|(at, &time)| Event::new(at.to_string(), time.into(), 1.0)).collect();
        let hotspots = top_hotspots(events, topk).unwrap();
        prop_assert_eq!(hotspots.len(), times.len().min(topk as usize));
        let place = |name: &str| name.parse::<usize>().unwrap();
        for pair in hotspots.windows(2) {
            let (first, second) = (&pair[0].event, &pair[1].event);
            prop_assert!(first.total_ms > second.total_ms
                || (first.total_ms == second.total_ms && place(&first.name) < place(&second.name)));
        }
        if hotspots.len() == times.len() {
            let sum: f64 = hotspots.iter().map(|hotspot| hotspot.share_pct).sum();
            prop_assert!((sum - 100.0).abs() <= 0.05 * times.len() as f64 + 1e-9, "{}", sum);
        }
    }

    #[test]
    fn a_step_gets_numbers_or_an_error(step in prop::array::uniform4(any::<f64>())) {
        let [step_ms, tokens, gpu_busy_pct, cpu_wait_ms] = step;
        let step = StepMetrics { step_ms, tokens, gpu_busy_pct, cpu_wait_ms };
        if let Ok(summary) = summarize_step_metrics(&step, &Thresholds::default()) {
            prop_assert!(summary.throughput_tok_s.is_finite());
        }
    }

    #[test]
    fn no_text_makes_a_rule_panic(text in r#"[\[\]{}:,"a-z0-9.eE+\- ]{0,40}|\{"(step_ms|events|topk|record)": ?[-\[{"0-9eENan.]{0,9}\}?"#) {
        for &rule in Rule::ALL {
            let _ = apply(rule, &text);
        }
    }
}
