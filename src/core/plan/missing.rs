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
    if shape.is_some() && products.is_none() && policies.iter().any(is_unrated) {
        missing.push(format!(
            "theory of time: what {} can do at most is not known; `stepledger calibrate` measures it",
            base.device
        ));
    }
    for (traced, why) in [
        (false, "memory was not traced (--trace allocations does)"),
        (true, "memory was traced, but no measured step has one (`stepledger show` says what is missing)"),
    ] {
        let of_it = |run: &&&Measured| run.peak_bytes.is_none() && run.traces_memory() == traced;
        let peakless: Vec<&str> = runs.iter().filter(of_it).map(|run| run.run_id.as_str()).collect();
        if !peakless.is_empty() {
            missing.push(format!("peak of {}: {why}", few_of(&peakless)));
        }
    }
    if runs.iter().any(|run| run.tokens.is_none()) {
        missing.push("tokens/s: the runs do not say how many tokens a step has".to_owned());
    }
    if !runs.is_empty() {
        missing.extend(not_ranked(policies));
    }
    missing
}

/// Whether something fits under this policy whose time is not known.
fn is_unrated(policy: &PolicyPlan) -> bool {
    policy.fastest().is_some_and(|at| at.predicted_step_ms.is_none())
}

/// Policies under which something fits that have no time: those that were not measured, and those whose runs do not tell
/// it. Where no policy has one, they are ranked by what else is known.
fn not_ranked(policies: &[PolicyPlan]) -> impl Iterator<Item = String> {
    let is_rated = |policy: &PolicyPlan| policy.fastest().is_some_and(|at| at.predicted_step_ms.is_some());
    let none_is = !policies.iter().any(is_rated);
    let (measured, others): (Vec<_>, Vec<_>) =
        policies.iter().filter(|policy| is_unrated(policy)).partition(|policy| policy.fit.is_some());
    let told = [
        (others.len(), "that was not measured", "that were not measured"),
        (measured.len(), "whose runs do not tell it", "whose runs do not tell it"),
    ];
    told.into_iter().filter_map(move |(policies, one, several)| match policies {
        0 => None,
        1 if none_is => Some(format!("time of 1 policy {one}")),
        1 => Some(format!("time of 1 policy {one}; it is not ranked")),
        _ if none_is => Some(format!("time of {policies} policies {several}")),
        _ => Some(format!("time of {policies} policies {several}; they are not ranked")),
    })
}

/// The first of them, and how many more there are.
fn few_of(runs: &[&str]) -> String {
    let more = more_than_told(runs.len()).map(|more| format!(" and {more} more")).unwrap_or_default();
    runs.iter().take(RUNS_TOLD).copied().collect::<Vec<_>>().join(", ") + &more
}
