//! What a plan does not know, and what would tell it.

use super::error::{RUNS_TOLD, more_than_told};
use super::making::{Base, CPU};
use super::measured::Measured;
use super::policy::PolicyPlan;
use crate::theory::{ProductsAtMost, Shape};

/// One sentence for each signal that is absent.
pub fn missing(
    runs: &[&Measured],
    shape: Option<Shape>,
    products: Option<&ProductsAtMost>,
    policies: &[PolicyPlan],
    base: &Base,
) -> Vec<String> {
    let mut missing = Vec::new();
    if runs.is_empty() {
        missing.push("tokens/s: no rate is known without a measured run; name some with --from".to_owned());
    }
    if shape.is_none() {
        missing.push("theory: it covers the toy models without dropout only".to_owned());
    } else if base.device != CPU {
        missing
            .push(format!("theory of {}: it is that of libtorch's CPU allocator and kernels", base.device));
    }
    let unrated = policies.iter().filter(|policy| policy.max_batch.is_some_and(|batch| batch > 0));
    let unrated = unrated.filter(|policy| policy.predicted_step_ms.is_none()).count();
    if shape.is_some() && products.is_none() && unrated > 0 {
        missing.push(format!(
            "theory of time: what {} can do at most is not known; `stepledger calibrate` measures it",
            base.device
        ));
    }
    let untraced: Vec<&str> =
        runs.iter().filter(|run| run.peak_bytes.is_none()).map(|run| run.run_id.as_str()).collect();
    if !untraced.is_empty() {
        missing
            .push(format!("peak of {}: memory was not traced (--trace allocations does)", few_of(&untraced)));
    }
    if runs.iter().any(|run| run.tokens.is_none()) {
        missing.push("tokens/s: the runs do not say how many tokens a step has".to_owned());
    }
    if unrated > 0 && !runs.is_empty() {
        missing.push(match unrated {
            1 => "time of 1 policy that was not measured; it is not ranked".to_owned(),
            _ => format!("time of {unrated} policies that were not measured; they are not ranked"),
        });
    }
    missing
}

/// The first of them, and how many more there are.
fn few_of(runs: &[&str]) -> String {
    let more = more_than_told(runs.len()).map(|more| format!(" and {more} more")).unwrap_or_default();
    runs.iter().take(RUNS_TOLD).copied().collect::<Vec<_>>().join(", ") + &more
}
