//! Which of the settings that fit is best, and why the next one is not.

use std::cmp::Ordering;

use serde::Serialize;

use super::commands::Commands;
use super::lost::why_it_lost;
use super::policy::{AtBatch, PolicyPlan};
use crate::record::EvidenceLevel;
use crate::stats::ENOUGH_PAIRS;

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
    #[serde(flatten)]
    pub at: AtBatch,
    /// How to run it.
    pub command: String,
}

/// The setting that came second, of another policy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunnerUp {
    pub checkpoint: Option<String>,
    #[serde(flatten)]
    pub at: AtBatch,
    pub why_it_lost: String,
    /// Whether the intervals of the two lie apart; null where no time was measured.
    pub told_apart: Option<bool>,
}

/// What came of comparing.
pub struct Ranking {
    pub by: RankedBy,
    pub best: Option<Best>,
    pub runner_up: Option<RunnerUp>,
    pub evidence: EvidenceLevel,
}

/// A policy at its fastest batch.
pub(super) struct Candidate<'p> {
    pub policy: &'p PolicyPlan,
    pub at: AtBatch,
}

/// Ranks the policies under which something fits, each at its fastest batch. Where any of them has a rate, only those
/// with one take part.
pub fn rank(policies: &[PolicyPlan], commands: &Commands) -> Ranking {
    let fitting = policies.iter().filter_map(|policy| Some(Candidate { policy, at: policy.fastest()? }));
    let (rated, unrated): (Vec<_>, Vec<_>) =
        fitting.partition(|candidate| candidate.at.predicted_step_ms.is_some());
    let (by, mut order) = if rated.is_empty() {
        (RankedBy::ComputePerToken, unrated)
    } else if rated.iter().all(|candidate| candidate.at.predicted_tokens_per_s.is_some()) {
        (RankedBy::TokensPerS, rated)
    } else {
        (RankedBy::SequencesPerS, rated)
    };
    // A stable sort: among equals the policies keep their order, the simplest first.
    order.sort_by(|one, other| compare(by, one, other));
    let best = order.first().map(|best| Best {
        checkpoint: best.policy.checkpoint.clone(),
        at: best.at.clone(),
        command: commands.run(best.at.batch, best.policy.checkpoint.as_deref()),
    });
    let runner_up = order.first().zip(order.get(1)).map(|(best, second)| RunnerUp {
        checkpoint: second.policy.checkpoint.clone(),
        at: second.at.clone(),
        why_it_lost: why_it_lost(by, best, second),
        told_apart: (by != RankedBy::ComputePerToken).then(|| told_apart(by, best, second) == Some(true)),
    });
    Ranking { by, best, runner_up, evidence: evidence(by, &order) }
}

/// Theory alone is a proxy. What was measured is a benchmark if the batches of the two best policies were repeated as
/// often as a comparison wants, and their intervals lie apart.
fn evidence(by: RankedBy, order: &[Candidate]) -> EvidenceLevel {
    let enough = |candidate: &Candidate| candidate.at.repeats >= ENOUGH_PAIRS;
    let clear = |best, second| enough(best) && enough(second) && told_apart(by, best, second) == Some(true);
    match order {
        _ if by == RankedBy::ComputePerToken => EvidenceLevel::TeachingProxy,
        [best, second, ..] if clear(best, second) => EvidenceLevel::RepeatedBenchmark,
        _ => EvidenceLevel::SmokeTest,
    }
}

/// The better one first.
fn compare(by: RankedBy, one: &Candidate, other: &Candidate) -> Ordering {
    let larger_batch = other.at.batch.cmp(&one.at.batch);
    match by {
        RankedBy::ComputePerToken => share(one).total_cmp(&share(other)).then(larger_batch),
        _ => rate(by, other).total_cmp(&rate(by, one)).then(larger_batch),
    }
}

pub(super) fn share(candidate: &Candidate) -> f64 {
    candidate.policy.recompute_share.unwrap_or(0.0)
}

pub(super) fn rate(by: RankedBy, candidate: &Candidate) -> f64 {
    let sequences = || candidate.at.predicted_step_ms.map(|ms| entries_per_s(candidate, ms));
    let tokens = candidate.at.predicted_tokens_per_s.filter(|_| by == RankedBy::TokensPerS);
    tokens.or_else(sequences).unwrap_or(0.0)
}

fn entries_per_s(candidate: &Candidate, step_ms: f64) -> f64 {
    candidate.at.batch as f64 / (step_ms / 1e3)
}

/// The ends of a rate's interval, the upper one infinite where a step's time may be as little as can be.
fn interval(by: RankedBy, candidate: &Candidate) -> Option<(f64, f64)> {
    match by {
        RankedBy::TokensPerS => {
            candidate.at.tokens_per_s_interval.map(|(low, high)| (low, high.unwrap_or(f64::INFINITY)))
        }
        _ => candidate
            .at
            .step_interval_ms
            .map(|[low, high]| (entries_per_s(candidate, high), entries_per_s(candidate, low))),
    }
}

/// Whether the intervals of the two lie apart; `None` where one has none.
pub(super) fn told_apart(by: RankedBy, best: &Candidate, second: &Candidate) -> Option<bool> {
    let ((low, _), (_, high)) = interval(by, best).zip(interval(by, second))?;
    Some(high < low)
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::super::tests::{measured, policy, request};
    use super::super::{Measured, Plan, plan, trials};
    use crate::record::EvidenceLevel;

    /// The plan for 3,100 bytes, which hold 21 of `none` and 42 of `full`, from runs of these policies, batches and ms.
    fn planned(runs: &[(&str, i64, f64)]) -> Plan {
        plan(&request(runs_of(runs), 3_100)).unwrap()
    }

    fn runs_of(runs: &[(&str, i64, f64)]) -> Vec<Measured> {
        let run = |(second, &(checkpoint, batch, ms)): (i64, &(&str, i64, f64))| Measured {
            started_at: DateTime::from_timestamp(second, 0).unwrap(),
            cycles: 30,
            step_ms: Some(ms),
            peak_bytes: Some(1_000 + if checkpoint == "full" { 50 } else { 100 } * batch),
            ..measured(checkpoint, batch)
        };
        (0..).zip(runs).map(run).collect()
    }

    #[test]
    fn a_smaller_batch_that_is_faster_for_its_size_is_best() {
        // 16 tokens an entry: 31,326, 21,182 and 14,188 tokens/s, and less still at the largest batch.
        let runs = [(2, 31_326.0), (4, 21_182.0), (8, 14_188.0)];
        let runs = runs.map(|(batch, rate)| ("none", batch, 16.0 * batch as f64 / rate * 1e3));
        let plan = planned(&runs);
        let (best, none) = (plan.best.as_ref().unwrap(), policy(&plan, "none"));
        assert_eq!((best.at.batch, none.max_batch), (2, Some(21)));
        assert!(best.at.predicted_tokens_per_s > none.predicted_tokens_per_s, "{best:?}");
        assert_eq!((best.at.predicted_peak_bytes, best.command.contains("batch 2,")), (Some(1_200), true));
        assert!(none.notes.iter().any(|note| note.contains("faster for its size than batch 21")), "{none:?}");
        // What does not fit is the batch after the largest, not the one after the best.
        let [_, too_large] = &trials(&plan)[..] else { panic!("two trials") };
        assert_eq!((too_large.batch, too_large.predicted_fits), (22, false));
    }

    #[test]
    fn the_largest_batch_stays_best_where_a_smaller_one_gains_nothing() {
        let plan = planned(&[("none", 2, 3.0), ("none", 4, 4.0), ("none", 8, 6.0)]);
        assert_eq!((plan.best.as_ref().unwrap().at.batch, &policy(&plan, "none").faster), (21, &None));
    }

    #[test]
    fn without_intervals_nothing_is_told_apart() {
        let plan = planned(&[("none", 2, 3.0), ("none", 4, 4.0), ("full", 2, 6.0), ("full", 4, 9.0)]);
        let second = plan.runner_up.unwrap();
        assert_eq!(second.told_apart, Some(false));
        assert!(second.why_it_lost.contains("without an interval for each"), "{}", second.why_it_lost);
        // 16 tokens of each of 42 in 66 ms, and of each of 21 in 12.5 ms.
        let rates = "is predicted 10,182 tokens/s, 62.1 % less than 26,880";
        assert!(second.why_it_lost.contains(rates), "{}", second.why_it_lost);
    }

    #[test]
    fn an_interval_that_reaches_below_zero_still_overlaps() {
        let wild = [("none", 2, 2.0), ("none", 2, 4.0), ("none", 4, 9.0), ("none", 4, 3.0)];
        let steady = [("full", 2, 4.0), ("full", 4, 7.0), ("full", 8, 13.0), ("full", 8, 13.1)];
        let plan = planned(&[wild, steady].concat());
        let none = policy(&plan, "none");
        assert_eq!(none.step_interval_ms.map(|[low, _]| low), Some(0.0));
        assert!(matches!(none.tokens_per_s_interval, Some((_, None))), "{none:?}");
        let second = plan.runner_up.unwrap();
        assert_eq!(second.told_apart, Some(false));
        assert!(second.why_it_lost.contains("cannot tell the two apart"), "{}", second.why_it_lost);
    }

    /// Of both policies, so many runs at each of these batches, all on one line.
    fn steady(batches: &[i64], repeats: usize) -> Vec<(&'static str, i64, f64)> {
        let of = |batch: i64| {
            let ms = 2.0 + 0.5 * batch as f64;
            [("none", batch, ms), ("full", batch, 1.5 * ms)]
        };
        batches.iter().flat_map(|&batch| of(batch)).collect::<Vec<_>>().repeat(repeats)
    }

    #[test]
    fn steady_runs_tell_policies_apart() {
        let plan = planned(&steady(&[2, 4, 8], 1));
        let second = plan.runner_up.unwrap();
        assert_eq!((second.checkpoint.as_deref(), second.told_apart), (Some("full"), Some(true)));
        assert_eq!(plan.evidence, EvidenceLevel::SmokeTest);
    }

    #[test]
    fn only_what_was_repeated_where_the_plan_lies_is_a_benchmark() {
        let evidence = |batches: &[i64], repeats| planned(&steady(batches, repeats)).evidence;
        let (once, repeated) = (EvidenceLevel::SmokeTest, EvidenceLevel::RepeatedBenchmark);
        for (batches, repeats, expected) in [
            (&[2, 4, 8, 16, 32, 64][..], 1, once),
            (&[16, 24, 48], 4, once),
            // Between batches that were repeated, and a little beyond them, a line tells as much.
            (&[16, 24, 48], 5, repeated),
            (&[16, 32], 5, repeated),
            // 42 is more than twice 20, however often that was measured.
            (&[8, 20], 9, once),
        ] {
            assert_eq!(evidence(batches, repeats), expected, "{batches:?} {repeats} times");
        }
        let plan = planned(&[steady(&[16, 48], 5), steady(&[24], 1)].concat());
        assert_eq!(
            (plan.evidence, policy(&plan, "none").repeats),
            (once, 1),
            "one neighbour was measured once"
        );
    }

    #[test]
    fn short_runs_are_no_repeats() {
        let short = |run: Measured| Measured { cycles: 29, ..run };
        let runs = runs_of(&steady(&[16, 24, 48], 5)).into_iter().map(short).collect();
        let plan = plan(&request(runs, 3_100)).unwrap();
        assert_eq!((plan.evidence, policy(&plan, "none").repeats), (EvidenceLevel::SmokeTest, 0));
    }
}
