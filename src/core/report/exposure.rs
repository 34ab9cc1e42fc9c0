//! What holds a step on a GPU up, as far as its events alone tell.

use serde::Serialize;

use super::step_times::StepSummary;
use crate::rules::Hypothesis;

/// The exposed times of the median step, as bounds: a phase that computes counts as one kernel from its first instant on
/// the device to its last, so kernels took so long at most, and everything else so long at least.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExposureFinding {
    pub kernel_at_most_ms: f64,
    pub transfer_at_least_ms: f64,
    pub sync_at_least_ms: f64,
    pub launch_at_least_ms: f64,
    /// What takes the most time, the idle of the device among it, whatever the kernels do; null where that depends on the
    /// gaps between them.
    pub largest: Option<Hypothesis>,
}

impl ExposureFinding {
    /// Of a step on a GPU.
    ///
    /// - **Formula:** kernels at most: the busy share of the step's time, in which all counts that the device takes after the
    ///   step's end on the host, and no more than the others leave of it. The largest is what is at least as long as any of the others
    ///   and all of the kernels' time together: what is no kernel of that would be one of the others. And it is at least as
    ///   long as all that the three leave of the step: what is no kernel of that is idle, in the loader for one.
    /// - **Assumption:** the medians of the parts are those of one step.
    /// - **Abstains** where the exposed times are not known, and where the step's time is the host's.
    pub fn of(step: &StepSummary) -> Result<Self, String> {
        step.check_times()?;
        ExposureFinding::of_times(step).ok_or_else(|| "the step's exposed times are not known".to_owned())
    }

    fn of_times(step: &StepSummary) -> Option<Self> {
        let (transfer, sync, launch) = (step.transfer_ms?, step.sync_ms?, step.launch_ms?);
        let step_ms = step.median_ms?;
        let rest = (step_ms - transfer - sync - launch).max(0.0);
        let kernel = rest.min(step_ms * step.device_busy_pct? / 100.0);
        let parts = [
            (Hypothesis::Transfer, transfer),
            (Hypothesis::Synchronization, sync),
            (Hypothesis::Launch, launch),
        ];
        let is_largest = |&(which, ms): &(Hypothesis, f64)| {
            let others = parts.iter().filter(|(other, _)| *other != which);
            ms > 0.0 && others.map(|(_, other_ms)| other_ms + kernel).chain([rest]).all(|most| ms >= most)
        };
        Some(ExposureFinding {
            kernel_at_most_ms: kernel,
            transfer_at_least_ms: transfer,
            sync_at_least_ms: sync,
            launch_at_least_ms: launch,
            largest: parts.iter().find(|part| is_largest(part)).map(|(which, _)| *which),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step of 20 ms with these parts.
    fn largest(busy_pct: f64, [transfer, sync, launch]: [f64; 3]) -> Option<Hypothesis> {
        let step = StepSummary {
            median_ms: Some(20.0),
            cycles: 1,
            cycle_steps: Some(1),
            device_busy_pct: Some(busy_pct),
            transfer_ms: Some(transfer),
            sync_ms: Some(sync),
            launch_ms: Some(launch),
            ..StepSummary::default()
        };
        ExposureFinding::of(&step).unwrap().largest
    }

    #[test]
    fn what_is_longer_than_another_and_all_kernels_is_the_largest_whatever_they_do() {
        assert_eq!(largest(20.0, [13.0, 2.0, 1.0]), Some(Hypothesis::Transfer));
        assert_eq!(largest(20.0, [1.0, 9.0, 5.0]), Some(Hypothesis::Synchronization));
        assert_eq!(largest(0.0, [0.0, 0.0, 20.0]), Some(Hypothesis::Launch));
        // Gaps between the kernels might be as long as what is missing.
        assert_eq!(largest(20.0, [1.0, 8.9, 5.0]), None);
        assert_eq!(largest(90.0, [1.0, 0.5, 0.5]), None);
        assert_eq!(largest(0.0, [0.0, 0.0, 0.0]), None);
    }

    /// A slow loader, in which the device has nothing to do.
    #[test]
    fn what_is_shorter_than_the_idle_of_the_device_is_not_the_largest() {
        assert_eq!(largest(10.0, [3.0, 0.0, 0.0]), None);
        assert_eq!(largest(10.0, [9.9, 0.0, 0.0]), None, "8.1 ms of 10.1 are idle, and 2 may be");
        assert_eq!(largest(10.0, [10.0, 0.0, 0.0]), Some(Hypothesis::Transfer));
    }

    #[test]
    fn kernels_take_no_more_than_the_others_leave() {
        let step = StepSummary {
            median_ms: Some(20.0),
            cycles: 1,
            cycle_steps: Some(4),
            device_busy_pct: Some(60.0),
            transfer_ms: Some(9.0),
            sync_ms: Some(1.0),
            launch_ms: Some(0.0),
            ..StepSummary::default()
        };
        let found = ExposureFinding::of(&step).unwrap();
        assert_eq!((found.kernel_at_most_ms, found.largest), (10.0, None));
        let untimed = ExposureFinding::of(&StepSummary { sync_ms: None, ..step.clone() }).unwrap_err();
        assert!(untimed.contains("exposed times"), "{untimed}");
        let of_host = ExposureFinding::of(&StepSummary { cycle_steps: None, ..step }).unwrap_err();
        assert!(of_host.contains("the host's alone"), "{of_host}");
    }
}
