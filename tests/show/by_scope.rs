//! `show --by scope`.

use serde_json::Value;
use stepledger::record::Trace;

use super::made_up::{LAYERS, Plan};
use super::{Shown, int};

const BYTES: [&str; 4] = ["parameter_bytes", "gradient_bytes", "adam_state_bytes", "activation_bytes"];

fn row<'a>(view: &'a Value, scope: &str) -> &'a Value {
    let rows = view["rows"].as_array().unwrap();
    rows.iter().find(|row| row["scope"] == scope).unwrap_or_else(|| panic!("no row {scope}"))
}

#[test]
fn bytes_add_up_to_the_ledger_at_their_moments() {
    let shown = Shown::new(Plan::USUAL);
    for step in [0, 6, 13] {
        let view = shown.json(&format!("--by scope --step {step}"));
        let ledger = &shown.json(&format!("--step {step}"))["ledger"];
        for column in BYTES {
            let category = column.strip_suffix("_bytes").unwrap();
            let moment = if category == "activation" { "forward_end" } else { "optimizer_end" };
            let rows: i64 = view["rows"].as_array().unwrap().iter().map(|row| int(&row[column])).sum();
            let all = rows + int(&view["outside"][column]);
            assert_eq!(all, int(&ledger[moment][category]), "{column} in step {step}");
            assert_eq!(int(&view["sum"][column]), all);
            assert_eq!(int(&view["account"][column]), all);
            assert_eq!(int(&view["difference"][column]), 0);
        }
    }
}

/// As in a loop that steps its optimizer elsewhere.
#[test]
fn without_an_optimizer_phase_what_is_kept_is_read_at_the_end_of_backward() {
    let shown = Shown::new(Plan { optimizer: false, ..Plan::USUAL });
    let (view, ledger) = (shown.json("--by scope --step 6"), &shown.json("--step 6")["ledger"]);
    assert_eq!(view["kept_at"], "backward_end");
    for column in ["parameter_bytes", "gradient_bytes", "adam_state_bytes"] {
        let category = column.strip_suffix("_bytes").unwrap();
        assert_eq!(int(&view["account"][column]), int(&ledger["backward_end"][category]), "{column}");
        assert_eq!(int(&view["difference"][column]), 0, "{column}");
    }
    assert!(int(&view["sum"]["gradient_bytes"]) > 0);
    assert!(shown.text("--by scope --step 6").contains("the others at backward_end"));
}

#[test]
fn times_are_means_without_nested_scopes_and_add_up_to_their_phases() {
    let view = Shown::new(Plan::USUAL).json("--by scope");
    // Steps 2 to 13 are measured; their mean is 7.5.
    assert_eq!(int(&view["steps"]), 12);
    let block = row(&view, "h.3");
    assert_eq!(block["forward_ms"], (200_000.0 + 7.5 - (80_000.0 + 3.0 * 7.5) - 100_000.0) / 1e6);
    assert_eq!(row(&view, "h.3.attn")["forward_ms"], (80_000.0 + 3.0 * 7.5) / 1e6);
    assert_eq!(block["backward_ms"], 0.01, "backward's rows are exclusive as they are");
    assert_eq!(row(&view, "h.3.mlp")["backward_ms"], (220_000.0 + 7.5) / 1e6);
    for (column, phase_ms) in [("forward_ms", 3.0), ("backward_ms", 4.0)] {
        let rows: f64 =
            view["rows"].as_array().unwrap().iter().map(|row| row[column].as_f64().unwrap()).sum();
        let outside = view["outside"][column].as_f64().unwrap();
        assert!((rows + outside - phase_ms).abs() < 1e-9, "{column}");
        assert_eq!(view["sum"][column], phase_ms);
        assert_eq!(view["account"][column], phase_ms);
        assert_eq!(view["difference"][column], 0.0);
    }
    let one = Shown::new(Plan::USUAL).json("--by scope --step 4");
    assert_eq!((int(&one["steps"]), &one["rows"][1]["forward_ms"]), (1, &Value::from(0.080_012)));
}

#[test]
fn variables_lie_in_the_module_of_their_name_and_gradients_and_states_with_them() {
    let view = Shown::new(Plan::USUAL).json("--by scope");
    let module = row(&view, "h.0.attn.c_attn");
    assert_eq!((module["parent"].as_str(), int(&module["depth"])), (Some("h.0.attn"), 2));
    assert_eq!(BYTES.map(|column| int(&module[column])), [600, 600, 1_200, 0]);
    assert_eq!(BYTES.map(|column| int(&row(&view, "h.0.mlp.c_fc")[column])), [800, 0, 0, 0]);
    assert_eq!(BYTES.map(|column| int(&row(&view, "h.0.mlp")[column])), [0, 0, 0, 2_000]);
    assert_eq!(BYTES.map(|column| int(&row(&view, "transformer.wte")[column])), [5_000, 0, 0, 0]);
    assert_eq!(BYTES.map(|column| int(&view["outside"][column])), [0, 0, 7_000, 0]);
}

#[test]
fn rows_come_as_they_ran() {
    let view = Shown::new(Plan::USUAL).json("--by scope");
    let names: Vec<&str> =
        view["rows"].as_array().unwrap().iter().map(|row| row["scope"].as_str().unwrap()).collect();
    assert_eq!(names[..6], ["h.0", "h.0.attn", "h.0.attn.c_attn", "h.0.mlp", "h.0.mlp.c_fc", "h.1"]);
    assert_eq!(names[names.len() - 2..], ["loss", "transformer.wte"]);
    assert_eq!(names.len() as i64, 5 * LAYERS + 2);
}

#[test]
fn without_operators_backward_is_not_known_and_the_way_out_is_said() {
    let shown = Shown::new(Plan { trace: Trace::Allocations, ..Plan::USUAL });
    let view = shown.json("--by scope");
    assert!(row(&view, "h.0")["backward_ms"].is_null() && view["sum"]["backward_ms"].is_null());
    let text = shown.text("--by scope");
    assert!(text.contains("`--trace ops` gives it") && text.contains('—'), "{text}");
    assert!(text.contains("(no scope)") && text.contains("(outside scopes)"), "{text}");
    assert!(text.contains("times are means over 12 steps"), "{text}");
    let traced = Shown::new(Plan::USUAL).text("--by scope");
    assert!(!traced.contains("--trace ops"), "{traced}");
}

#[test]
fn the_account_itself_has_backwards_scopes_and_none_of_validation() {
    let shown = Shown::new(Plan::USUAL);
    let account = shown.json("");
    let phases: Vec<&str> =
        account["scopes"].as_array().unwrap().iter().map(|scope| scope["phase"].as_str().unwrap()).collect();
    assert!(phases.contains(&"backward") && !phases.contains(&"validation"), "{phases:?}");
    let text = shown.text("");
    assert!(
        text.contains(
            "(of backward's graph without the scopes nested in it; in recomputation and elsewhere with them)"
        ),
        "{text}"
    );
    assert!(text.contains("more: show --peak"), "{text}");
}
