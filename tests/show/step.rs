//! `show` and `show --step`: what is said of the step itself.

use serde_json::{Value, json};

use super::Shown;
use super::made_up::Plan;

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
