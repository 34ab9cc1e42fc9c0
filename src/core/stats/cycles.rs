//! Whole cycles of steps: from one wait for the device to the next, or from one run of the optimizer to the next.

use std::collections::BTreeMap;
use std::ops::Range;

use super::cycle_ends::Ends;
use super::{StepSpan, median};

/// The stretches of a run over which a step's time is known.
///
/// A GPU works behind the host: a step that does not wait for it ends when its work has been handed over, and one that
/// does pays for all those before. So only the time from one such wait to the next is that of the steps between, and only
/// for all of them together. A loop that begins a step for each micro-batch runs the optimizer in some of its steps alone:
/// what a step takes is known of all together from one such step to the next, or from one wait to the next that lies as many
/// steps behind it.
///
/// - **Formula:** a stretch begins with the first step after one that waited, and ends with the next that waits; where the
///   optimizer runs in some of the measured steps and not in others, with the next that waits equally many steps after the
///   optimizer ran. Its time is the sum of its steps' ([`StepSpan::time_ns`]): that in which a step of it was under way, on the host or on the device,
///   which may go on when the host has waited, at the optimizer for one. What lies between steps when the device is through
///   is none's. Kept are the measured ones of the length that holds the most steps, of two that hold as many the longer: a lone step after a wait
///   finds an idle device, and is another quantity than one of many.
/// - **Assumption:** the steps are in their order, and all there: a stretch in which a number is missing is not whole, nor is
///   one on a device of its own that begins after such a gap, as the missing step need not have waited.
/// - **Abstains** (no cycle) where no measured stretch is whole, and where most steps of those that are lie in stretches of
///   other lengths: a few picked ones speak for no run. Where no step of the run is known to have waited, each step is a
///   cycle by itself, and [`told`](Cycles::told) is false: its time is the host's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cycles {
    /// Steps in each of them; 0 where there is none.
    pub length: usize,
    /// Whether the steps are known to have waited.
    pub told: bool,
    /// Whether it is the optimizer, too, that ends a cycle.
    pub accumulates: bool,
    /// Measured steps in whole stretches of another length, which are left out; where there is no cycle, of all lengths.
    pub uneven_steps: usize,
    /// How many of the steps in cycles have the optimizer.
    pub updates: usize,
    /// The place of the first step of each, in order.
    begins: Vec<usize>,
    /// Of every step of the run.
    times_ns: Vec<i64>,
}

impl Cycles {
    /// Of all of a run's steps, warm-up included.
    pub fn of(steps: &[StepSpan]) -> Self {
        let measured = |at: &usize| !steps[*at].warmup;
        if !steps.iter().any(|step| step.waited) {
            let begins: Vec<usize> = (0..steps.len()).filter(measured).collect();
            return Cycles::new(steps, usize::from(!begins.is_empty()), begins.is_empty(), begins);
        }
        let ends = Ends::of(steps);
        let mut whole = ends.stretches();
        whole.retain(|stretch| stretch.clone().all(|at| measured(&at)));
        let mut length = length_of_most(whole.iter().map(Range::len)).unwrap_or(0);
        let of_all: usize = whole.iter().map(Range::len).sum();
        whole.retain(|stretch| stretch.len() == length);
        if 2 * whole.len() * length < of_all {
            (whole, length) = (Vec::new(), 0);
        }
        let begins = whole.iter().map(|stretch| stretch.start).collect();
        Cycles {
            accumulates: ends.accumulates,
            uneven_steps: of_all - whole.len() * length,
            updates: whole.into_iter().flatten().filter(|&at| steps[at].updated == Some(true)).count(),
            ..Cycles::new(steps, length, true, begins)
        }
    }

    /// One step, whatever its place in a cycle.
    pub fn alone(steps: &[StepSpan], place: usize) -> Self {
        let waits = Ends::waits(steps);
        let told = place < steps.len() && waits.with(place) && waits.before(place);
        Cycles::new(steps, 1, told, vec![place])
    }

    fn new(steps: &[StepSpan], length: usize, told: bool, begins: Vec<usize>) -> Self {
        let time_ns = |(at, step): (usize, &StepSpan)| match told {
            true => step.time_ns(steps.get(at + 1)),
            false => step.wall_ns,
        };
        let times_ns = steps.iter().enumerate().map(time_ns).collect();
        Cycles { length, told, accumulates: false, uneven_steps: 0, updates: 0, begins, times_ns }
    }

    /// In one of how many steps the optimizer runs. `None` where it does in none of those in cycles.
    pub fn steps_per_update(&self) -> Option<f64> {
        (self.updates > 0).then(|| (self.count() * self.length) as f64 / self.updates as f64)
    }

    pub fn count(&self) -> usize {
        self.begins.len()
    }

    /// The places of all steps in cycles, one cycle after the other.
    pub fn places(&self) -> impl Iterator<Item = usize> + '_ {
        self.begins.iter().flat_map(|&begin| begin..begin + self.length)
    }

    /// The time of the step at this place, in its cycle.
    pub fn time_ns(&self, place: usize) -> i64 {
        self.times_ns[place]
    }

    /// A step's time in milliseconds, of each cycle.
    pub fn times_ms(&self) -> Vec<f64> {
        self.means(|at| Some(self.times_ns[at] as f64 / 1e6)).into_iter().flatten().collect()
    }

    /// How many of it there are in a second, the median of the cycles that count them in every step.
    pub fn per_second(&self, count: impl Fn(usize) -> Option<f64>) -> Option<f64> {
        self.median_ratio(count, |at| Some(self.times_ns[at] as f64 / 1e9))
    }

    /// Of each cycle the mean of a value over its steps; `None` where one of them has none.
    pub fn means(&self, value: impl Fn(usize) -> Option<f64>) -> Vec<Option<f64>> {
        let sum = |begin: usize| (begin..begin + self.length).map(&value).sum::<Option<f64>>();
        self.begins.iter().map(|&begin| Some(sum(begin)? / self.length as f64)).collect()
    }

    /// The median of these means, of the cycles that have one.
    pub fn median(&self, value: impl Fn(usize) -> Option<f64>) -> Option<f64> {
        median(&self.means(value).into_iter().flatten().collect::<Vec<_>>())
    }

    /// The median of the quotients of two such means.
    pub fn median_ratio(
        &self,
        value: impl Fn(usize) -> Option<f64>,
        of: impl Fn(usize) -> Option<f64>,
    ) -> Option<f64> {
        let ratio = |(value, of): (Option<f64>, Option<f64>)| Some(value? / of?);
        median(&self.means(value).into_iter().zip(self.means(of)).filter_map(ratio).collect::<Vec<_>>())
    }
}

/// That of the stretches which hold the most steps together.
fn length_of_most(lengths: impl Iterator<Item = usize>) -> Option<usize> {
    let mut steps: BTreeMap<usize, usize> = BTreeMap::new();
    lengths.for_each(|length| *steps.entry(length).or_default() += length);
    steps.into_iter().max_by_key(|&(length, steps)| (steps, length)).map(|(length, _)| length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The host takes 1 for a step and what follows it, nothing where it waits; the device 10.
    fn steps(count: usize, warmup: usize, waited: impl Fn(usize) -> bool) -> Vec<StepSpan> {
        let (mut now_ns, mut through_ns) = (0, 0);
        let mut step = |at: usize| {
            let begin_ns = now_ns;
            through_ns = through_ns.max(begin_ns) + 10_000_000;
            let end_ns = if waited(at) { through_ns } else { begin_ns + 600_000 };
            now_ns = if waited(at) { end_ns } else { end_ns + 400_000 };
            StepSpan {
                step: at as i64,
                warmup: at < warmup,
                beside_host: true,
                waited: waited(at),
                begin_ns,
                wall_ns: end_ns - begin_ns,
                lead_ns: Some(through_ns - end_ns),
                updated: None,
                between_ns: 0,
            }
        };
        (0..count).map(&mut step).collect()
    }

    fn found(steps: &[StepSpan]) -> (usize, Vec<usize>) {
        let cycles = Cycles::of(steps);
        (cycles.length, cycles.begins)
    }

    #[test]
    fn where_every_step_waits_each_measured_one_is_a_cycle() {
        assert_eq!(found(&steps(5, 2, |_| true)), (1, vec![2, 3, 4]));
        assert_eq!(found(&steps(3, 3, |_| true)), (0, vec![]));
        assert_eq!(found(&[]), (0, vec![]));
    }

    #[test]
    fn a_cycle_goes_from_one_wait_to_the_next() {
        // It begins within the warm-up, and is not measured whole; what follows the last wait is not either.
        assert_eq!(found(&steps(15, 3, |at| at % 4 == 0)), (4, vec![5, 9]));
        // The first and the last step wait beside the rhythm.
        assert_eq!(found(&steps(14, 0, |at| at % 4 == 3 || [0, 13].contains(&at))), (4, vec![4, 8]));
        // One cycle is all that was measured.
        assert_eq!(found(&steps(12, 2, |at| [0, 1, 11].contains(&at))), (10, vec![2]));
        for none in [&[0, 11][..], &[0]] {
            assert_eq!(found(&steps(12, 2, |at| none.contains(&at))), (0, vec![]));
        }
    }

    #[test]
    fn the_mean_over_a_cycle_is_the_devices_time() {
        let steps = steps(20, 4, |at| at % 4 == 3);
        let cycles = Cycles::of(&steps);
        assert_eq!(cycles.times_ms(), [10.0; 4]);
        assert_eq!((4..8).map(|at| cycles.time_ns(at)).sum::<i64>(), 40_000_000);
        assert_eq!(
            (cycles.per_second(|_| Some(5.0)), cycles.median(|_| Some(3.0))),
            (Some(500.0), Some(3.0))
        );
        // Of a cycle in which a step has none there is no mean.
        let but_one = cycles.means(|at| (at != 5).then_some(2.0));
        assert_eq!(but_one, [None, Some(2.0), Some(2.0), Some(2.0)]);
        assert_eq!(cycles.places().collect::<Vec<_>>(), (4..20).collect::<Vec<_>>());
    }

    #[test]
    fn where_every_step_waits_its_time_is_its_own() {
        let steps = steps(6, 1, |_| true);
        assert_eq!(Cycles::of(&steps).times_ms(), [10.0; 5]);
    }

    #[test]
    fn a_cycle_with_a_step_missing_is_not_whole_nor_is_what_follows_it_until_a_wait() {
        let gone = |numbers: &[i64], beside_host| {
            let mut steps = steps(20, 0, |at| at % 4 == 3);
            steps.retain(|step| !numbers.contains(&step.step));
            steps.iter_mut().for_each(|step| step.beside_host = beside_host);
            if !beside_host {
                steps.iter_mut().for_each(|step| step.waited = true);
            }
            let numbers: Vec<i64> = found(&steps).1.iter().map(|&begin| steps[begin].step).collect();
            numbers
        };
        assert_eq!(gone(&[5], true), [0, 8, 12, 16]);
        assert_eq!(gone(&[6, 7, 8], true), [0, 12, 16]);
        // Whether the missing step waited is not known.
        assert_eq!(gone(&[7], true), [0, 12, 16]);
        assert_eq!(gone(&[0, 1, 2, 3], true), [8, 12, 16]);
        // A CPU is through with a step as it ends.
        assert_eq!(gone(&[5], false).len(), 19);
    }

    #[test]
    fn a_step_after_one_that_is_missing_is_not_told_alone() {
        let mut steps = steps(8, 0, |_| true);
        steps.remove(3);
        let told = |place| Cycles::alone(&steps, place).told;
        assert_eq!([0, 2, 3, 4].map(told), [true, true, false, true]);
    }

    #[test]
    fn a_loop_that_is_not_known_to_wait_is_told_as_one() {
        let cycles = Cycles::of(&steps(4, 1, |_| false));
        assert_eq!((cycles.length, cycles.told, cycles.count()), (1, false, 3));
        let waits = steps(6, 0, |at| at >= 3);
        let told = |place| Cycles::alone(&waits, place).told;
        assert_eq!([2, 3, 4].map(told), [false, false, true]);
    }
}
