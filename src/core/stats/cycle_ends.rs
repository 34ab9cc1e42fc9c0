//! Where the stretches of a run begin and end over which a step's time is known.

use std::collections::BTreeMap;
use std::ops::Range;

use super::StepSpan;

/// What ends a stretch of a run: a wait for the device; where gradients are accumulated over steps, one that lies as many
/// steps behind the last run of the optimizer as all the others do.
#[derive(Debug)]
pub(super) struct Ends<'a> {
    steps: &'a [StepSpan],
    /// The optimizer runs in some of the measured steps and not in others.
    pub accumulates: bool,
    /// How many steps ago the optimizer ran, of each step: 0 in one in which it does. `None` where that is not known.
    since: Vec<Option<usize>>,
    /// How many it is at the end of a stretch.
    at_end: usize,
}

impl<'a> Ends<'a> {
    pub fn of(steps: &'a [StepSpan]) -> Self {
        let any = |updated| steps.iter().any(|step| !step.warmup && step.updated == Some(updated));
        let since = since_the_optimizer(steps);
        Ends { steps, accumulates: any(true) && any(false), at_end: at_most_waits(steps, &since), since }
    }

    /// Those of waits alone.
    pub fn waits(steps: &'a [StepSpan]) -> Self {
        Ends { steps, accumulates: false, since: Vec::new(), at_end: 0 }
    }

    /// Whether one ends with the step at this place.
    pub fn with(&self, at: usize) -> bool {
        self.steps[at].waited && (!self.accumulates || self.since[at] == Some(self.at_end))
    }

    /// Whether one begins with it: right after one that ended, or as the first of all. Where nothing goes on beside the
    /// host or accumulates, each step stands for itself.
    pub fn before(&self, at: usize) -> bool {
        let step = &self.steps[at];
        match at.checked_sub(1) {
            _ if !step.beside_host && !self.accumulates => true,
            Some(before) => self.with(before) && step.follows(&self.steps[before]),
            None => step.step == 0 && (!self.accumulates || self.at_end == 0),
        }
    }

    /// The stretches, with all their steps. What comes after the last one is left out.
    pub fn stretches(&self) -> Vec<Range<usize>> {
        let mut stretches = Vec::new();
        // Where the one in progress began, while that is known.
        let mut begin = None;
        for at in 0..self.steps.len() {
            let goes_on = || begin.filter(|_| self.steps[at].follows(&self.steps[at - 1]));
            begin = if self.before(at) { Some(at) } else { goes_on() };
            stretches.extend(begin.filter(|_| self.with(at)).map(|begin| begin..at + 1));
        }
        stretches
    }
}

/// A run begins with nothing accumulated. After a step that is missing nothing is known until the optimizer runs again.
fn since_the_optimizer(steps: &[StepSpan]) -> Vec<Option<usize>> {
    let mut since = steps.first().filter(|first| first.step == 0).map(|_| 0);
    let mut before: Option<&StepSpan> = None;
    let of = |step| {
        let is_next = before.replace(step).is_none_or(|before| StepSpan::follows(step, before));
        since = match step.updated {
            Some(true) => Some(0),
            _ => since.filter(|_| is_next).map(|steps| steps + 1),
        };
        since
    };
    steps.iter().map(of).collect()
}

/// How many steps behind the optimizer the measured steps wait most often: the fewest that do so half as often as any.
fn at_most_waits(steps: &[StepSpan], since: &[Option<usize>]) -> usize {
    let mut waits: BTreeMap<usize, usize> = BTreeMap::new();
    let waited = steps.iter().zip(since).filter(|(step, _)| step.waited && !step.warmup);
    waited.filter_map(|(_, since)| *since).for_each(|since| *waits.entry(since).or_default() += 1);
    let most = waits.values().max().copied().unwrap_or_default();
    waits.into_iter().find(|&(_, times)| 2 * times >= most).map_or(0, |(since, _)| since)
}
