//! Which of the settings that fit is best, and why the next one is not.

use std::cmp::Ordering;

use serde::Serialize;

use super::commands::Commands;
use super::policy::PolicyPlan;

/// What the ranking rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RankedBy {
    /// The predicted tokens a second.
    TokensPerS,
    /// The predicted batches' entries a second, where tokens are not known.
    SequencesPerS,
    /// Matrix products a token, `1 / (1 + recompute_share)`; among equals the larger batch.
    ComputePerToken,
}

/// The setting to train with.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Best {
    pub checkpoint: Option<String>,
    pub batch: i64,
    pub predicted_peak_bytes: Option<i64>,
    pub predicted_step_ms: Option<f64>,
    pub predicted_tokens_per_s: Option<f64>,
    /// How to run it.
    pub command: String,
}

/// The setting that came second.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunnerUp {
    pub checkpoint: Option<String>,
    pub batch: i64,
    pub predicted_peak_bytes: Option<i64>,
    pub predicted_step_ms: Option<f64>,
    pub predicted_tokens_per_s: Option<f64>,
    pub why_it_lost: String,
}

/// Ranks the policies under which something fits. Where any of them has a rate, only those with one take part.
pub fn rank(policies: &[PolicyPlan], commands: &Commands) -> (RankedBy, Option<Best>, Option<RunnerUp>) {
    let fitting = policies.iter().filter(|policy| batch(policy) > 0);
    let rated: Vec<&PolicyPlan> =
        fitting.clone().filter(|policy| policy.predicted_step_ms.is_some()).collect();
    let (ranked_by, mut order) = if rated.is_empty() {
        (RankedBy::ComputePerToken, fitting.collect())
    } else if rated.iter().all(|policy| policy.predicted_tokens_per_s.is_some()) {
        (RankedBy::TokensPerS, rated)
    } else {
        (RankedBy::SequencesPerS, rated)
    };
    // A stable sort: among equals the policies keep their order, the simplest first.
    order.sort_by(|one, other| compare(ranked_by, one, other));
    let best = order.first().map(|best| Best {
        checkpoint: best.checkpoint.clone(),
        batch: batch(best),
        predicted_peak_bytes: best.predicted_peak_bytes,
        predicted_step_ms: best.predicted_step_ms,
        predicted_tokens_per_s: best.predicted_tokens_per_s,
        command: commands.run(batch(best), best.checkpoint.as_deref()),
    });
    let runner_up = order.first().zip(order.get(1)).map(|(best, second)| RunnerUp {
        checkpoint: second.checkpoint.clone(),
        batch: batch(second),
        predicted_peak_bytes: second.predicted_peak_bytes,
        predicted_step_ms: second.predicted_step_ms,
        predicted_tokens_per_s: second.predicted_tokens_per_s,
        why_it_lost: why_it_lost(ranked_by, best, second),
    });
    (ranked_by, best, runner_up)
}

fn batch(policy: &PolicyPlan) -> i64 {
    policy.max_batch.unwrap_or(0)
}

/// The better one first.
fn compare(by: RankedBy, one: &PolicyPlan, other: &PolicyPlan) -> Ordering {
    let larger_batch = batch(other).cmp(&batch(one));
    match by {
        RankedBy::ComputePerToken => share(one).total_cmp(&share(other)).then(larger_batch),
        _ => rate(by, other).total_cmp(&rate(by, one)).then(larger_batch),
    }
}

fn share(policy: &PolicyPlan) -> f64 {
    policy.recompute_share.unwrap_or(0.0)
}

fn rate(by: RankedBy, policy: &PolicyPlan) -> f64 {
    let sequences = || policy.predicted_step_ms.map(|ms| batch(policy) as f64 / (ms / 1e3));
    let tokens = policy.predicted_tokens_per_s.filter(|_| by == RankedBy::TokensPerS);
    tokens.or_else(sequences).unwrap_or(0.0)
}

/// One sentence, and a second one if it was a close thing.
fn why_it_lost(by: RankedBy, best: &PolicyPlan, second: &PolicyPlan) -> String {
    let room = match batch(second).cmp(&batch(best)) {
        Ordering::Greater => format!("fits batch {} instead of {}, but", batch(second), batch(best)),
        Ordering::Equal => format!("fits the same batch of {}, and", batch(best)),
        Ordering::Less => format!("fits batch {} only, not {}, and", batch(second), batch(best)),
    };
    let more_products = 100.0 * ((1.0 + share(second)) / (1.0 + share(best)) - 1.0);
    if by == RankedBy::ComputePerToken {
        return match more_products > 0.0 {
            true => format!("it {room} computes {more_products:.1} % more products a token"),
            false => format!("it {room} computes as much a token"),
        };
    }
    let (first, next) = (rate(by, best), rate(by, second));
    let unit = if by == RankedBy::TokensPerS { "tokens/s" } else { "sequences/s" };
    let slower = 100.0 * (1.0 - next / first);
    let cause = if more_products > 0.0 { ", as it computes more a token again" } else { "" };
    let told = format!("it {room} is predicted {next:.0} {unit}, {slower:.1} % less than {first:.0}{cause}");
    match overlap(best, second) {
        true => format!("{told}; their intervals overlap, so that these runs cannot tell the two apart"),
        false => told,
    }
}

fn overlap(best: &PolicyPlan, second: &PolicyPlan) -> bool {
    let intervals = best.tokens_per_s_interval.zip(second.tokens_per_s_interval);
    intervals.is_some_and(|([low, _], [_, high])| high >= low)
}
