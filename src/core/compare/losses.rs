//! The losses of a side, and those of two sides beside each other.

use serde::Serialize;

use crate::record::StepRow;

/// A step and its loss.
type Loss = (i64, Option<f64>);

/// The losses of a side's runs, by step, warm-up included: those of its first run, and whether the others
/// have the same.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Losses {
    first: Option<Vec<Loss>>,
    /// A run has other losses than the first.
    pub repeats_differ: bool,
}

impl Losses {
    /// Adds those of one more run.
    pub fn add(&mut self, steps: &[StepRow]) {
        let losses: Vec<_> = steps.iter().map(|step| (step.step, step.loss)).collect();
        match &self.first {
            None => self.first = Some(losses),
            Some(first) => self.repeats_differ |= !is_same(first, &losses),
        }
    }

    fn of_first(&self) -> &[Loss] {
        self.first.as_deref().unwrap_or_default()
    }

    fn last(&self) -> Option<f64> {
        self.of_first().iter().rev().find_map(|(_, loss)| *loss)
    }

    /// The first step whose loss was not a finite number.
    fn not_finite_from(&self) -> Option<i64> {
        let broken = |loss: &Option<f64>| loss.is_some_and(|loss| !loss.is_finite());
        self.of_first().iter().find(|(_, loss)| broken(loss)).map(|(step, _)| *step)
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
    /// From which step on a loss was not a finite number; null where all were.
    pub base_not_finite_from: Option<i64>,
    pub candidate_not_finite_from: Option<i64>,
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
        candidate_not_finite_from: candidate.not_finite_from(),
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
        let first = values.iter().map(|(step, loss)| (*step, Some(*loss))).collect();
        Losses { first: Some(first), repeats_differ: false }
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
