//! Why no largest batch can be told of any policy.

use super::error::PlanError;
use super::evidence::Evidence;
use super::measured::NotUsed;
use super::policy::PolicyPlan;

/// Flat peaks say more than what was measured at one batch alone; where none was measured, further batches would say as
/// little.
pub(super) fn no_largest_batch(
    evidence: &[Evidence],
    policies: Vec<PolicyPlan>,
    not_used: Vec<NotUsed>,
) -> PlanError {
    let runs = || evidence.iter().flat_map(|policy| &policy.runs);
    if runs().all(|run| run.peak_bytes.is_none()) {
        return PlanError::NoPeak { traced: runs().all(|run| run.traces_memory()), not_used };
    }
    let is_flat = |policy: &Evidence| policy.peak.as_ref().is_some_and(|fit| !fit.grows());
    let commands = policies.into_iter().filter_map(|policy| policy.needs).collect();
    match evidence.iter().any(is_flat) {
        true => PlanError::FlatPeak { commands, not_used },
        false => PlanError::OneBatch { commands, not_used },
    }
}
