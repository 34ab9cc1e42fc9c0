//! What is found, and what is not claimed.

use serde_json::Value;

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
