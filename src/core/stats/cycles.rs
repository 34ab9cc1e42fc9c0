//! Whole cycles of steps: from one wait for the device to the next.

use std::collections::BTreeMap;
use std::ops::Range;

use super::median;

/// A step, as far as its time goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepSpan {
    pub warmup: bool,
    /// A device of its own computes, and goes on when the step has ended on the host.
    pub beside_host: bool,
    /// The host has waited in it for what computes; without a device of its own it always has.
    pub waited: bool,
    /// From any one instant.
    pub begin_ns: i64,
    pub wall_ns: i64,
}

/// The stretches of a run over which a step's time is known.
///
/// A GPU works behind the host: a step that does not wait for it ends when its work has been handed over, and one that
/// does pays for all those before. So only the time from one such wait to the next is that of the steps between, and only
/// for all of them together.
///
/// - **Formula:** a stretch begins with the first step after one that waited, and ends with the next that waits. Its time
///   goes from its first instant to that of the step after it, what lies between the steps included: the device works on
///   meanwhile, at the optimizer for one, which a loop may call when it has waited. Without a device beside the host, and
///   after the run's last step, it goes to the stretch's own end. Kept
///   are the measured ones of the commonest length, of two as common the longer: a lone step after a wait finds an idle
///   device, and is another quantity than one of many.
/// - **Assumption:** where it is the host that is slow, what the observer does between the steps counts as theirs.
/// - **Abstains** (no cycle) where no measured stretch is whole. Where no step of the run is known to have waited, each step is a
///   cycle by itself, and [`told`](Cycles::told) is false: its time is the host's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cycles {
    /// Steps in each of them; 0 where there is none.
    pub length: usize,
    /// Whether the steps are known to have waited.
    pub told: bool,
    /// The place of the first step of each, in order.
    begins: Vec<usize>,
    /// Of every step of the run: until the next one begins where the device goes on until then, else until its own end.
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
        let whole: Vec<Range<usize>> =
            stretches(steps).into_iter().filter(|stretch| stretch.clone().all(|at| measured(&at))).collect();
        let length = commonest(whole.iter().map(Range::len)).unwrap_or(0);
        let begins = whole.iter().filter(|stretch| stretch.len() == length).map(|stretch| stretch.start);
        Cycles::new(steps, length, true, begins.collect())
    }

    /// One step, whatever its place in a cycle.
    pub fn alone(steps: &[StepSpan], place: usize) -> Self {
        let waited = |at: usize| steps.get(at).is_some_and(|step| step.waited);
        let told = waited(place) && place.checked_sub(1).is_none_or(waited);
        Cycles::new(steps, 1, told, vec![place])
    }

    fn new(steps: &[StepSpan], length: usize, told: bool, begins: Vec<usize>) -> Self {
        let mut times_ns: Vec<i64> = steps.iter().map(|step| step.wall_ns).collect();
        for &begin in &begins {
            let goes_on = told && steps[begin].beside_host;
            let after = if goes_on { begin + length } else { begin + length - 1 };
            for at in begin + 1..=after.min(steps.len() - 1) {
                // Instants are kept less exactly than times.
                times_ns[at - 1] = times_ns[at - 1].max(steps[at].begin_ns - steps[at - 1].begin_ns);
            }
        }
        Cycles { length, told, begins, times_ns }
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

/// From one wait to the next. What comes after the last one is left out.
fn stretches(steps: &[StepSpan]) -> Vec<Range<usize>> {
    let ends = steps.iter().enumerate().filter(|(_, step)| step.waited).map(|(at, _)| at + 1);
    let mut begin = 0;
    ends.map(|end| std::mem::replace(&mut begin, end)..end).collect()
}

fn commonest(lengths: impl Iterator<Item = usize>) -> Option<usize> {
    let mut times: BTreeMap<usize, usize> = BTreeMap::new();
    lengths.for_each(|length| *times.entry(length).or_default() += 1);
    times.into_iter().max_by_key(|&(length, times)| (times, length)).map(|(length, _)| length)
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
            let (warmup, waited, wall_ns) = (at < warmup, waited(at), end_ns - begin_ns);
            StepSpan { warmup, beside_host: true, waited, begin_ns, wall_ns }
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

    /// A step waits for its loss, which takes 6, then gives the optimizer to the device, which takes 4; the host has
    /// something else to do for 3 of them, and the next step's copy waits for the rest.
    #[test]
    fn the_optimizer_that_runs_on_after_a_step_is_part_of_its_time() {
        let step = |at: i64, beside_host| StepSpan {
            warmup: at < 2,
            beside_host,
            waited: true,
            begin_ns: at * 10_000_000,
            wall_ns: 7_000_000,
        };
        let times = |beside_host| {
            let steps: Vec<StepSpan> = (0..5).map(|at| step(at, beside_host)).collect();
            (Cycles::of(&steps).times_ms(), Cycles::alone(&steps, 3).times_ms())
        };
        assert_eq!(times(true), (vec![10.0, 10.0, 7.0], vec![10.0]), "the last one until its own end");
        assert_eq!(times(false), (vec![7.0; 3], vec![7.0]));
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
