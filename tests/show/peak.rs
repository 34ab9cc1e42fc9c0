//! `show --peak`.

use serde_json::Value;

use super::made_up::{Plan, alive, begin_ns, instants};
use super::{Shown, int, sum};

fn highest(shown: &Shown, step: i64) -> i64 {
    let totals = instants(&shown.lifetimes, step).into_iter().map(|at| alive(&shown.lifetimes, at).total());
    totals.max().unwrap()
}

#[test]
fn parts_scopes_and_blocks_each_add_up_to_the_ledgers_peak() {
    let shown = Shown::new(Plan::USUAL);
    for step in [0, 5, 13] {
        let view = shown.json(&format!("--peak --step {step} --top 100000"));
        let total = highest(&shown, step);
        assert_eq!(view["step"], step);
        assert_eq!(view["reconciliation"]["ledger_bytes"], total);
        assert_eq!(view["reconciliation"]["parts_bytes"], total);
        assert_eq!(view["reconciliation"]["difference_bytes"], 0);
        assert_eq!(sum(&view["parts"], "bytes"), total);
        assert_eq!(sum(&view["largest"], "bytes"), total);
        let none = &view["no_scope"];
        assert_eq!(sum(&view["scopes"], "own_bytes") + int(&none["bytes"]), total);
        assert_eq!(sum(&view["scopes"], "own_blocks") + int(&none["blocks"]), int(&view["blocks"]));
        let roots: i64 =
            scopes(&view).filter(|scope| scope["parent"].is_null()).map(|s| int(&s["bytes"])).sum();
        assert_eq!(roots + int(&none["bytes"]), total);
    }
}

fn scopes(view: &Value) -> impl Iterator<Item = &Value> {
    view["scopes"].as_array().unwrap().iter()
}

#[test]
fn scopes_nest_and_count_what_is_nested_in_them() {
    let view = Shown::new(Plan::USUAL).json("--peak");
    let names: Vec<&str> = scopes(&view).map(|scope| scope["scope"].as_str().unwrap()).collect();
    assert_eq!(names[..4], ["h.0", "h.0.attn", "h.0.mlp", "h.1"], "in the order they ran");
    let block = scopes(&view).find(|scope| scope["scope"] == "h.11").unwrap();
    assert_eq!((int(&block["bytes"]), int(&block["own_bytes"])), (1_000 + 2_011, 0));
    let mlp = scopes(&view).find(|scope| scope["scope"] == "h.11.mlp").unwrap();
    assert_eq!((mlp["parent"].as_str(), int(&mlp["depth"])), (Some("h.11"), 1));
}

#[test]
fn blocks_tell_their_age_and_origin() {
    let view = Shown::new(Plan::USUAL).json("--peak --step 5 --top 1000");
    let blocks = view["largest"].as_array().unwrap();
    let find = |category: &str| blocks.iter().find(|block| block["category"] == category).unwrap();
    let sizes: Vec<i64> = blocks.iter().map(|block| int(&block["bytes"])).collect();
    assert!(sizes.is_sorted_by(|a, b| a >= b), "{sizes:?}");
    let parameter = find("parameter");
    assert_eq!((int(&parameter["age_steps"]), &parameter["before_first_step"]), (6, &Value::Bool(true)));
    assert_eq!(parameter["name"], "transformer.wte.weight");
    assert!(parameter["born_step"].is_null());
    let state = find("adam_state");
    assert_eq!((int(&state["age_steps"]), int(&state["born_step"])), (5, 0));
    assert_eq!((&state["before_first_step"], &state["phase"]), (&Value::Bool(false), &"optimizer".into()));
    let peak_ns = begin_ns(5) + 4_050_000;
    let age_ms = (peak_ns - begin_ns(0) - 8_100_000) as f64 / 1e6;
    assert_eq!(state["age_ms"], age_ms);
    assert_eq!(int(&find("activation")["age_steps"]), 0);
}

#[test]
fn the_text_lists_the_largest_and_sums_up_the_rest() {
    let shown = Shown::new(Plan::USUAL);
    let text = shown.text("--peak --top 3");
    let largest: Vec<&str> = text.split("largest blocks").nth(1).unwrap().lines().skip(1).take(4).collect();
    assert!(largest[0].contains("9.76 KiB") && largest[3].is_empty(), "{largest:#?}");
    assert!(text.contains("\n h.0 ") && text.contains("\n   attn ") && text.contains("(no scope)"), "{text}");
    assert!(text.contains("before the first step of 14"), "{text}");
    assert!(text.contains("difference 0"), "{text}");
}

#[test]
fn hundreds_of_scopes_are_cut_to_the_largest() {
    let shown = Shown::new(Plan { layers: 150, ..Plan::USUAL });
    let text = shown.text("--peak");
    let tree = text.split("made in scope").nth(1).unwrap().split("\n\n").next().unwrap();
    // 150 blocks of two parts and the loss, forty of which are listed.
    assert!(tree.contains("(411 more scopes)"), "{tree}");
    assert_eq!(tree.lines().count(), 1 + 40 + 2, "{tree}");
    assert!(tree.contains("\n h.149 "), "the largest are kept: {tree}");
}
