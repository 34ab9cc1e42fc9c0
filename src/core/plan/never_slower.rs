//! No plan says that a slower setting is best than one that was measured and fits.

use chrono::DateTime;
use proptest::collection::vec;
use proptest::prelude::*;

use super::fit::BAD_TIME_RESIDUAL;
use super::tests::{measured, policy, request};
use super::*;
use crate::stats::{LEAST_MARGIN, median};

/// From runs of these policies, batches and ms. 2,600 bytes hold 16 of `none` and 32 of `full`.
fn planned(runs: &[(&str, i64, f64)], capacity_bytes: i64) -> Plan {
    let run = |(second, &(policy, batch, ms)): (i64, &(&str, i64, f64))| Measured {
        started_at: DateTime::from_timestamp(second, 0).unwrap(),
        step_ms: Some(ms),
        peak_bytes: Some(1_000 + if policy == "full" { 50 } else { 100 } * batch),
        ..measured(policy, batch)
    };
    plan(&request((0..).zip(runs).map(run).collect(), capacity_bytes)).unwrap()
}

/// A small model on a GPU waits for the host's launches, whatever the batch.
#[test]
fn times_that_do_not_grow_with_the_batch_are_ranked_where_they_were_measured() {
    let slow = [("full", 2, 40.0), ("full", 4, 80.0), ("full", 8, 160.0)];
    for flat in [[10.0, 9.9, 9.8], [10.0, 10.0, 10.0], [10.0, 10.0, 10.01]] {
        let [two, four, eight] = flat;
        let flat = [("none", 2, two), ("none", 4, four), ("none", 8, eight)];
        let plan = planned(&[&flat[..], &slow].concat(), 2_600);
        let (best, none) = (plan.best.as_ref().unwrap(), policy(&plan, "none"));
        assert_eq!((best.checkpoint.as_deref(), best.at.batch), (Some("none"), 8), "{flat:?}");
        assert_eq!(
            (best.at.predicted_step_ms, best.at.time_source),
            (Some(eight), Some(TimeSource::Measured))
        );
        // Of the largest batch that fits nothing is claimed.
        assert_eq!((none.max_batch, none.predicted_step_ms), (Some(16), None));
        let notes = none.notes.join("\n");
        let told = "do not grow with the batch in what was measured";
        assert!(
            notes.contains(told) && notes.contains("ranked at batch 8, the fastest measured that fits"),
            "{notes}"
        );
        assert!(
            !notes.contains("noise") && !notes.contains("grow faster") && !notes.contains('%'),
            "{notes}"
        );
        assert!(!plan.missing.iter().any(|line| line.contains("not ranked")), "{:?}", plan.missing);
        assert_eq!(plan.runner_up.as_ref().unwrap().checkpoint.as_deref(), Some("full"));
    }
}

/// Where none that was measured fits there is nothing to rank it by.
#[test]
fn flat_times_of_batches_that_do_not_fit_rank_nothing() {
    let flat = [("none", 8, 10.0), ("none", 16, 9.9)];
    let alone = planned(&flat, 1_500);
    assert_eq!((policy(&alone, "none").max_batch, &policy(&alone, "none").faster), (Some(5), &None));
    let missing = |plan: &Plan, told: &str| plan.missing.iter().any(|line| line == told);
    assert!(missing(&alone, "time of 1 policy whose runs do not tell it"), "{:?}", alone.missing);
    let both = planned(&[&flat[..], &[("full", 2, 100.0), ("full", 4, 190.0)]].concat(), 1_500);
    assert_eq!(both.best.as_ref().unwrap().checkpoint.as_deref(), Some("full"));
    let told = "time of 1 policy whose runs do not tell it; it is not ranked";
    assert!(both.runner_up.is_none() && missing(&both, told), "{:?}", both.missing);
}

/// Measured at one batch, which tells no line of its peak.
#[test]
fn a_policy_of_one_measured_batch_is_ranked_at_it() {
    let plan = planned(&[("none", 2, 10.0), ("none", 4, 20.0), ("full", 4, 2.0)], 1_400);
    let best = plan.best.as_ref().unwrap();
    assert_eq!((best.checkpoint.as_deref(), best.at.batch), (Some("full"), 4));
    assert_eq!((best.at.predicted_peak_bytes, policy(&plan, "full").max_batch), (Some(1_200), None));
    let second = &plan.runner_up.as_ref().unwrap().why_it_lost;
    assert!(second.contains("fits batch 4 and is predicted"), "{second}");
    assert_eq!(trials(&plan).len(), 1, "what does not fit is not known");
}

proptest! {
    /// Times of any shape: a setting that was measured and fits is a rate that there is. A line may be off it by
    /// what makes it no bad one, and a smaller batch is told where it gains more than the least margin.
    #[test]
    fn no_best_is_slower_than_what_was_measured_and_fits(
        none in vec((1..40_i64, 1.0..50.0_f64), 1..8),
        full in vec((1..40_i64, 1.0..50.0_f64), 2..8),
        flatness in 0.0..1.0_f64,
        capacity in 1_100..6_000_i64,
    ) {
        let of = |policy: &'static str, points: &[(i64, f64)]| {
            let time = |&(batch, ms): &(i64, f64)| (policy, batch, 10.0 * flatness + ms * (1.0 - flatness));
            points.iter().map(time).collect::<Vec<_>>()
        };
        let runs = [of("none", &none), of("full", &full)].concat();
        let known = |policy: &str| {
            let mut batches: Vec<i64> = runs.iter().filter(|run| run.0 == policy).map(|run| run.1).collect();
            batches.sort_unstable();
            batches.dedup();
            batches
        };
        prop_assume!(known("none").len() > 1 || known("full").len() > 1);
        let plan = planned(&runs, capacity);
        let bytes = |policy: &str, batch: i64| 1_000 + if policy == "full" { 50 } else { 100 } * batch;
        let best = plan.best.as_ref().and_then(|best| best.at.predicted_tokens_per_s).unwrap_or(0.0);
        for policy in ["none", "full"] {
            for batch in known(policy).into_iter().filter(|&batch| bytes(policy, batch) <= capacity) {
                let of_it = runs.iter().filter(|run| run.0 == policy && run.1 == batch).map(|run| run.2);
                let ms = median(&of_it.collect::<Vec<_>>()).unwrap();
                let rate = 16.0 * batch as f64 / ms * 1e3;
                let least = rate / (1.0 + BAD_TIME_RESIDUAL) / (1.0 + LEAST_MARGIN);
                prop_assert!(best >= least, "{policy} {batch}: {best} for {rate}\n{plan:?}");
            }
        }
    }
}
