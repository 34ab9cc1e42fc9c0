//! How long a step took, and what of that it was spent on.

use std::collections::HashMap;

use serde::Serialize;

use super::phases::PhaseSummary;
use super::summary::Account;
use super::units::share_pct;
use crate::record::StepRow;
use crate::stats::{Cycles, quantile};

/// What is told of the steps looked at; times of one step.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct StepSummary {
    /// The steps looked at.
    pub n: usize,
    /// The times below are means over whole cycles ([`Cycles`]), each of so many steps: 1 where each is known, as on a
    /// CPU. Null where no step is known to have waited: then they are the host's.
    pub cycle_steps: Option<usize>,
    pub cycles: usize,
    /// Whether the optimizer runs in some of the steps alone, which end a cycle then.
    pub accumulates: bool,
    /// Steps in cycles that are longer or shorter than most, which are left out.
    pub uneven_steps: usize,
    pub median_ms: Option<f64>,
    /// The middle half lies between these two.
    pub q1_ms: Option<f64>,
    pub q3_ms: Option<f64>,
    pub min_ms: Option<f64>,
    pub max_ms: Option<f64>,
    /// Whether the times scatter so widely that something else may have had a part of the machine, or the steps are not
    /// alike. Null where too few are known.
    pub unsteady: Option<bool>,
    pub total_ms: f64,
    /// Null where the times are the host's.
    pub tokens_per_s: Option<f64>,
    pub tokens_per_step: Option<f64>,
    /// The share of the step that the device computed; on a CPU, that of the compute phases. On a GPU at most: gaps between
    /// kernels are not seen, and what it takes after the step's end on the host counts as a whole.
    pub device_busy_pct: Option<f64>,
    /// What the training thread waited for data or synchronisation.
    pub cpu_wait_ms: Option<f64>,
    /// Exposed times: batches copied, waiting for the device, launching, each while nothing before it went on; null on
    /// a CPU.
    pub transfer_ms: Option<f64>,
    pub sync_ms: Option<f64>,
    pub launch_ms: Option<f64>,
    pub peak_bytes: Option<i64>,
}

/// How wide the middle half of the steps may be, beside their median, `(q3 − q1) / median`, before a run is called
/// unsteady. Undisturbed runs of the toy models stay below 0.3 on a shared machine of two cores, and those beside another
/// program that computes reach 0.9 to 1.5.
const STEADY: f64 = 0.5;

/// What the table of phases calls the time that a device takes when a step has ended on the host.
pub const DEVICE_GOES_ON: &str = "device goes on";

/// Fewer steps have no middle half to speak of.
const FEWEST: usize = 5;

impl StepSummary {
    /// How wide the middle half of the times is beside their median, `(q3 − q1) / median`. `None` where too few are known.
    pub(super) fn scatter(&self) -> Option<f64> {
        let (median, q1, q3) = (self.median_ms?, self.q1_ms?, self.q3_ms?);
        (self.cycles >= FEWEST && median > 0.0).then(|| (q3 - q1) / median)
    }

    /// Whether the times tell of what computes.
    ///
    /// # Errors
    /// Where they are the host's, which hands work over to a device and does not wait: why nothing rests on them.
    pub(super) fn check_times(&self) -> Result<(), String> {
        match self.cycles > 0 && self.cycle_steps.is_none() {
            true => Err("the step's time is the host's alone: no wait for the device (a loss that was read) is known in it \
                         and before it, so how long the device took is not"
                .to_owned()),
            false => Ok(()),
        }
    }
}

/// The steps of a run as stretches whose time is known: whole cycles ([`Cycles`]).
pub struct StepTimes<'a> {
    steps: &'a [StepRow],
    cycles: Cycles,
    /// The places of the steps looked at, whether they are in a cycle or not.
    places: Vec<usize>,
    /// How long those took together.
    pub time_ns: i64,
    /// A device of its own computed them, and its times are known.
    beside_host: bool,
    /// In which cycle a step is, by its number.
    cycle_of: HashMap<i64, usize>,
}

impl<'a> StepTimes<'a> {
    /// Of all measured steps, or of step `only`, which there is.
    pub fn of(account: &'a Account, only: Option<i64>) -> Self {
        let steps = account.steps.as_slice();
        let spans = account.run.step_spans(steps, &account.phases.iter().collect());
        let place = only.and_then(|only| steps.iter().position(|step| step.step == only));
        let cycles = place.map_or_else(|| Cycles::of(&spans), |place| Cycles::alone(&spans, place));
        let looked_at = |at: &usize| only.map_or(!steps[*at].warmup, |only| steps[*at].step == only);
        let places: Vec<usize> = (0..steps.len()).filter(looked_at).collect();
        let cycle_of = cycles.places().enumerate().map(|(nth, at)| (steps[at].step, nth / cycles.length));
        let (time_ns, cycle_of) = (places.iter().map(|&at| cycles.time_ns(at)).sum(), cycle_of.collect());
        let beside_host = account.run.computes_beside_host() && cycles.told;
        StepTimes { steps, cycles, places, time_ns, beside_host, cycle_of }
    }

    /// Of what took so long in these steps: the mean time a step, for each cycle that has some of it.
    pub fn per_step_ms(&self, taken: impl Iterator<Item = (i64, i64)>) -> Vec<f64> {
        let mut sums: HashMap<usize, i64> = HashMap::new();
        for (step, ns) in taken {
            if let Some(&cycle) = self.cycle_of.get(&step) {
                *sums.entry(cycle).or_default() += ns;
            }
        }
        sums.into_values().map(|ns| ns as f64 / 1e6 / self.cycles.length as f64).collect()
    }

    /// What a device of its own took of these steps when they had ended on the host, where that is known: the phases, this
    /// and nothing else add up to the steps' time.
    pub fn device_goes_on(&self) -> Option<PhaseSummary> {
        let ns: Vec<i64> = self.places.iter().map(|&at| self.beyond_ns(at)).collect();
        let total_ns = ns.iter().sum();
        self.beside_host.then(|| PhaseSummary {
            name: DEVICE_GOES_ON.into(),
            phase: None,
            parent: None,
            total_ms: total_ns as f64 / 1e6,
            median_ms: self.cycles.median(|at| Some(self.beyond_ns(at) as f64 / 1e6)),
            calls: ns.iter().filter(|ns| **ns > 0).count() as i64,
            share_pct: self.share_pct(total_ns),
            device_ms: None,
            lead_ms: None,
        })
    }

    /// Of the time of the steps looked at.
    pub fn share_pct(&self, ns: i64) -> f64 {
        share_pct(ns, self.time_ns)
    }

    /// Of a step's time, what is beyond its end on the host.
    fn beyond_ns(&self, at: usize) -> i64 {
        self.cycles.time_ns(at) - self.steps[at].wall_ns
    }

    /// The share of a step's time that its device computed, at most: what it takes after the step's end on the host counts as
    /// a whole.
    fn busy_pct(&self, at: usize) -> Option<f64> {
        let (within, wall_ns) = (self.steps[at].device_busy_pct?, self.steps[at].wall_ns);
        Some(match self.beyond_ns(at) {
            ..=0 => within,
            beyond_ns => {
                (within * wall_ns as f64 + 100.0 * beyond_ns as f64) / self.cycles.time_ns(at) as f64
            }
        })
    }

    /// Of the steps `looked_at`.
    pub fn summary(&self, looked_at: &[&StepRow]) -> StepSummary {
        let Cycles { length, told, .. } = self.cycles;
        let time_ns = |at: usize| self.cycles.time_ns(at) as f64;
        let times = self.cycles.times_ms();
        let middle = |value: fn(&StepRow) -> Option<f64>| self.cycles.median(|at| value(&self.steps[at]));
        let ms = |value: fn(&StepRow) -> Option<i64>| {
            self.cycles.median(|at| value(&self.steps[at]).map(|ns| ns as f64 / 1e6))
        };
        let tokens = |step: &StepRow| step.tokens.map(|tokens| tokens as f64);
        let busy_pct = |at: usize| self.busy_pct(at);
        let summary = StepSummary {
            n: looked_at.len(),
            cycle_steps: (told && length > 0).then_some(length),
            cycles: self.cycles.count(),
            accumulates: self.cycles.accumulates,
            uneven_steps: self.cycles.uneven_steps,
            median_ms: quantile(&times, 0.5),
            q1_ms: quantile(&times, 0.25),
            q3_ms: quantile(&times, 0.75),
            min_ms: quantile(&times, 0.0),
            max_ms: quantile(&times, 1.0),
            unsteady: None,
            total_ms: self.time_ns as f64 / 1e6,
            tokens_per_s: self.cycles.per_second(|at| tokens(&self.steps[at])).filter(|_| told),
            tokens_per_step: middle(tokens),
            device_busy_pct: match length {
                1 => self.cycles.median(busy_pct),
                // Longer steps weigh more in a cycle's share.
                _ => self.cycles.median_ratio(|at| Some(busy_pct(at)? * time_ns(at)), |at| Some(time_ns(at))),
            },
            cpu_wait_ms: ms(|step| step.cpu_wait_ns),
            transfer_ms: ms(|step| step.transfer_ns),
            sync_ms: ms(|step| step.sync_ns),
            launch_ms: ms(|step| step.launch_ns),
            peak_bytes: looked_at.iter().filter_map(|step| step.peak_bytes).max(),
        };
        StepSummary { unsteady: summary.scatter().map(|scatter| scatter > STEADY), ..summary }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scatter_of_steps_is_known_from_five_on() {
        let scatter = |cycles, [q1, median, q3]: [f64; 3]| {
            let [q1_ms, median_ms, q3_ms] = [Some(q1), Some(median), Some(q3)];
            StepSummary { cycles, q1_ms, median_ms, q3_ms, ..StepSummary::default() }.scatter()
        };
        assert_eq!(scatter(40, [25.0, 60.0, 115.0]), Some(1.5));
        assert_eq!(scatter(5, [9.0, 10.0, 12.0]), Some(0.3));
        assert_eq!(scatter(4, [25.0, 60.0, 115.0]), None);
        assert_eq!(scatter(40, [0.0, 0.0, 0.0]), None);
    }
}
