//! The losses of a side, and those of two sides beside each other.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::repeat::Repeat;
use crate::record::StepRow;

/// A step and its loss.
type Loss = (i64, Option<f64>);

/// The losses of a side's runs, by step, warm-up included: those of its first run, and whether the others
/// have the same.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Losses {
    first: Option<First>,
    /// A run has other losses than the first.
    pub repeats_differ: bool,
    /// The earliest loss of any run that was no finite number.
    not_finite: Option<NotFinite>,
}

/// Those of the run that started first.
#[derive(Debug, Clone, PartialEq)]
struct First {
    started: (DateTime<Utc>, String),
    losses: Vec<Loss>,
}

/// A step whose loss was no finite number, and its run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct NotFinite {
    step: i64,
    run: (DateTime<Utc>, String),
}

impl Losses {
    /// Adds those of one more run.
    pub fn add(&mut self, run: &Repeat, steps: &[StepRow]) {
        let (started_at, run_id) = run.when();
        self.take((started_at, run_id.to_owned()), steps.iter().map(|step| (step.step, step.loss)).collect());
    }

    fn take(&mut self, run: (DateTime<Utc>, String), losses: Vec<Loss>) {
        let broken = |loss: &Option<f64>| loss.is_some_and(|loss| !loss.is_finite());
        let broken = losses.iter().find(|(_, loss)| broken(loss));
        let broken = broken.map(|(step, _)| NotFinite { step: *step, run: run.clone() });
        self.not_finite = self.not_finite.take().into_iter().chain(broken).min();
        let new = First { started: run, losses };
        let first = self.first.get_or_insert_with(|| new.clone());
        self.repeats_differ |= !is_same(&first.losses, &new.losses);
        if new.started < first.started {
            *first = new;
        }
    }

    fn of_first(&self) -> &[Loss] {
        self.first.as_ref().map(|first| first.losses.as_slice()).unwrap_or_default()
    }

    fn last(&self) -> Option<f64> {
        self.of_first().iter().rev().find_map(|(_, loss)| *loss)
    }

    fn not_finite_from(&self) -> Option<i64> {
        self.not_finite.as_ref().map(|broken| broken.step)
    }

    fn not_finite_run(&self) -> Option<String> {
        self.not_finite.as_ref().map(|broken| broken.run.1.clone())
    }
}

/// To the bit; NaN is the same as NaN.
fn same(a: Option<f64>, b: Option<f64>) -> bool {
    a.map(f64::to_bits) == b.map(f64::to_bits) || (a.is_some_and(f64::is_nan) && b.is_some_and(f64::is_nan))
}

fn is_same(a: &[Loss], b: &[Loss]) -> bool {
    let pair = |(a, b): (&Loss, &Loss)| a.0 == b.0 && same(a.1, b.1);
    a.len() == b.len() && a.iter().zip(b).all(pair)
}

/// What became of the losses.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LossesCompared {
    /// Over the steps that both sides have a loss of, to the bit; null where there is none.
    pub same: Option<bool>,
    /// How many steps those are.
    pub steps: usize,
    pub first_difference_step: Option<i64>,
    /// The largest absolute difference of finite losses, and its step.
    pub largest_difference: Option<f64>,
    pub largest_difference_step: Option<i64>,
    pub base_last: Option<f64>,
    pub candidate_last: Option<f64>,
    /// The first step of any run whose loss was not a finite number, and that run; null where all were.
    pub base_not_finite_from: Option<i64>,
    pub base_not_finite_run: Option<String>,
    pub candidate_not_finite_from: Option<i64>,
    pub candidate_not_finite_run: Option<String>,
    /// Whether the runs of one side have other losses than its first run, which is the one compared.
    pub repeats_differ: bool,
}

/// Compares the losses of the first run of each side, step by step.
pub fn compare_losses(base: &Losses, candidate: &Losses) -> LossesCompared {
    let common = common(base.of_first(), candidate.of_first());
    let apart = common.iter().filter(|(_, a, b)| !same(Some(*a), Some(*b)));
    let gap =
        |(step, a, b): &(i64, f64, f64)| Some((*step, (a - b).abs())).filter(|(_, gap)| gap.is_finite());
    let first = apart.clone().next().map(|(step, ..)| *step);
    // Of equal gaps the first.
    let largest = apart.filter_map(gap).reduce(|most, gap| if gap.1 > most.1 { gap } else { most });
    LossesCompared {
        same: (!common.is_empty()).then_some(first.is_none()),
        steps: common.len(),
        first_difference_step: first,
        largest_difference: largest.map(|(_, gap)| gap),
        largest_difference_step: largest.map(|(step, _)| step),
        base_last: base.last(),
        candidate_last: candidate.last(),
        base_not_finite_from: base.not_finite_from(),
        base_not_finite_run: base.not_finite_run(),
        candidate_not_finite_from: candidate.not_finite_from(),
        candidate_not_finite_run: candidate.not_finite_run(),
        repeats_differ: base.repeats_differ || candidate.repeats_differ,
    }
}

/// The steps that both have a loss of. Both are in the order of steps.
fn common(base: &[Loss], candidate: &[Loss]) -> Vec<(i64, f64, f64)> {
    let mut rest = candidate.iter().peekable();
    let mut pair = |(step, loss): &Loss| {
        while rest.next_if(|(other, _)| other < step).is_some() {}
        let (_, other) = rest.next_if(|(other, _)| other == step)?;
        Some((*step, (*loss)?, (*other)?))
    };
    base.iter().filter_map(&mut pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn losses(values: &[(i64, f64)]) -> Losses {
        let mut losses = Losses::default();
        losses.take(run("a", 0), of(values));
        losses
    }

    fn run(id: &str, second: i64) -> (DateTime<Utc>, String) {
        (DateTime::from_timestamp(second, 0).unwrap(), id.to_owned())
    }

    fn of(values: &[(i64, f64)]) -> Vec<Loss> {
        values.iter().map(|(step, loss)| (*step, Some(*loss))).collect()
    }

    #[test]
    fn the_first_run_is_the_one_that_started_first_and_a_broken_loss_counts_in_any() {
        let mut side = Losses::default();
        side.take(run("third", 30), of(&[(0, 2.0), (1, f64::NAN)]));
        side.take(run("first", 10), of(&[(0, 2.0), (1, 1.0)]));
        side.take(run("second", 20), of(&[(0, f64::INFINITY), (1, 1.0)]));
        let found = compare_losses(&losses(&[(0, 2.0), (1, 1.0)]), &side);
        assert_eq!((found.same, found.repeats_differ, found.candidate_last), (Some(true), true, Some(1.0)));
        assert_eq!(
            (found.candidate_not_finite_from, found.candidate_not_finite_run.as_deref()),
            (Some(0), Some("second"))
        );
        assert_eq!((found.base_not_finite_from, found.base_not_finite_run), (None, None));
    }

    #[test]
    fn the_same_losses_are_the_same_nan_included() {
        let a = losses(&[(0, 2.0), (1, f64::NAN)]);
        let found = compare_losses(&a, &a.clone());
        assert_eq!((found.same, found.steps, found.first_difference_step), (Some(true), 2, None));
        assert_eq!(
            (found.base_not_finite_from, found.candidate_last.map(f64::is_nan)),
            (Some(1), Some(true))
        );
    }

    #[test]
    fn the_first_and_the_largest_difference_are_told_by_step() {
        let base = losses(&[(0, 2.0), (1, 1.5), (2, 1.25), (4, 1.0)]);
        let candidate = losses(&[(1, 1.25), (2, 2.25), (3, 9.0), (4, f64::NAN)]);
        let found = compare_losses(&base, &candidate);
        assert_eq!((found.same, found.steps, found.first_difference_step), (Some(false), 3, Some(1)));
        assert_eq!((found.largest_difference, found.largest_difference_step), (Some(1.0), Some(2)));
        assert_eq!((found.base_not_finite_from, found.candidate_not_finite_from), (None, Some(4)));
    }

    #[test]
    fn without_a_common_step_nothing_is_claimed() {
        assert_eq!(compare_losses(&losses(&[(0, 1.0)]), &losses(&[(7, 1.0)])).same, None);
        assert_eq!(compare_losses(&Losses::default(), &Losses::default()).same, None);
    }
}
