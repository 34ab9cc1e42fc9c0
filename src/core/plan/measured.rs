//! What a plan takes from a run.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::record::{
    LackingSteps, Machine, Phase, ReferenceRates, RunRow, RunStatus, StepPhases, StepRow, Trace,
};
use crate::stats::{Cycles, median};
use crate::theory::Checkpoint;

/// One run, as far as a plan needs it.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Not its own alone: ids are given by hand, too. With its start it is.
    pub run_id: String,
    pub started_at: DateTime<Utc>,
    pub program: String,
    pub status: RunStatus,
    pub reason: Option<String>,
    pub config: Map<String, Value>,
    pub device: String,
    pub machine: Machine,
    /// How deep it was traced, which costs time.
    pub trace: Trace,
    pub stepledger_version: String,
    pub torch_version: Option<String>,
    /// What its device can do at most.
    pub reference_rates: Option<ReferenceRates>,
    /// All the memory of its device.
    pub device_memory_bytes: Option<i64>,
    pub parameters: Option<i64>,
    /// Measured steps; the numbers below are over them.
    pub steps: usize,
    /// What is known of steps that are gone.
    pub lacks: Option<LackingSteps>,
    /// Whole cycles of them, from one wait for the device, or one optimizer, to the next: as many times are known.
    pub cycles: usize,
    /// The median of their times, means over whole cycles.
    pub step_ms: Option<f64>,
    /// The median of their tokens; `None` where they were not counted, which a count of 0 says too.
    pub tokens: Option<f64>,
    /// The highest of their peaks; `None` where memory was not traced, or no step has one.
    pub peak_bytes: Option<i64>,
    /// The phase that peak lies in.
    pub peak_phase: Option<Phase>,
}

/// A run that takes no part, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotUsed {
    pub run: String,
    pub why: String,
}

impl Measured {
    /// Sums up a run's rows; warm-up is left out. The `phases` are of use only where [`RunRow::asks_phases`] says so.
    pub fn of(run: &RunRow, steps: &[StepRow], phases: &StepPhases) -> Self {
        let lacks = run.lacks(steps.len());
        let cycles = Cycles::of(&run.step_spans(steps, phases));
        let steps: Vec<&StepRow> = steps.iter().filter(|step| !step.warmup).collect();
        let middle = |value: fn(&StepRow) -> Option<f64>| {
            median(&steps.iter().filter_map(|step| value(step)).collect::<Vec<_>>())
        };
        let highest =
            steps.iter().filter(|step| step.peak_bytes.is_some()).max_by_key(|step| step.peak_bytes);
        Measured {
            run_id: run.run_id.clone(),
            started_at: run.started_at,
            program: run.program.clone(),
            status: run.status,
            reason: run.reason.clone(),
            config: run.config.clone(),
            device: run.device.clone(),
            machine: run.machine.clone(),
            trace: run.trace,
            stepledger_version: run.stepledger_version.clone(),
            torch_version: run.torch_version.clone(),
            reference_rates: run.reference_rates.clone(),
            device_memory_bytes: match run.device.as_str() {
                "cpu" => run.machine.memory_bytes,
                _ => run.device_facts.device_memory_bytes,
            },
            parameters: run.parameters,
            steps: steps.len(),
            lacks,
            cycles: cycles.count(),
            step_ms: median(&cycles.times_ms()),
            tokens: middle(|step| step.tokens.map(|tokens| tokens as f64)).filter(|&tokens| tokens > 0.0),
            peak_bytes: highest.and_then(|step| step.peak_bytes),
            peak_phase: highest.and_then(|step| step.peak_phase),
        }
    }

    /// Sequences (or whatever the program counts) in a batch.
    pub fn batch(&self) -> Option<i64> {
        self.config.get("batch")?.as_i64().filter(|&batch| batch > 0)
    }

    /// Whether it was traced deep enough to have a peak.
    pub fn traces_memory(&self) -> bool {
        self.trace != Trace::Phases
    }

    /// The checkpointing policy, if the configuration says one.
    pub fn checkpoint(&self) -> Option<String> {
        self.config.get("checkpoint")?.as_str().map(canonical)
    }
}

/// A policy by its one name: `every:1` is `full`.
pub(super) fn canonical(policy: &str) -> String {
    match policy.parse() {
        Ok(Checkpoint::Every(1)) => Checkpoint::Full.to_string(),
        _ => policy.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::compare::made_up::Made;

    /// The host takes 1 ms for a step and waits in every fourth, the device takes 10.
    #[test]
    fn a_step_of_a_gpu_that_is_waited_for_now_and_then_is_the_mean_of_a_whole_cycle() {
        let run = Made { steps: 0, device: "cuda:0", ..Made::default() }.tables("a", 0).run;
        let step = |step: i64| StepRow {
            step,
            warmup: step < 4,
            started_at: run.started_at + TimeDelta::milliseconds(step / 4 * 40 + step % 4),
            wall_ns: if step % 4 == 3 { 37_000_000 } else { 1_000_000 },
            loss: (step % 4 == 3).then_some(1.0),
            ..StepRow::default()
        };
        let measured = Measured::of(&run, &(0..16).map(step).collect::<Vec<_>>(), &StepPhases::default());
        assert_eq!((measured.steps, measured.cycles, measured.step_ms), (12, 3, Some(10.0)));
    }

    /// Steps of a micro-batch each, of which every fourth has the optimizer, which takes as long as all of them.
    #[test]
    fn a_step_that_accumulates_is_the_mean_of_a_whole_cycle() {
        let mut made = Made { steps: 40, ..Made::default() }.tables("a", 0);
        for step in &mut made.steps {
            let updates = step.step % 4 == 3;
            step.wall_ns = if updates { 50_000_000 } else { 10_000_000 };
            step.optimizer_calls = Some(updates.into());
        }
        let measured = Measured::of(&made.run, &made.steps, &StepPhases::default());
        assert_eq!((measured.steps, measured.cycles, measured.step_ms), (40, 10, Some(20.0)));
    }

    /// Of no tokens there is no rate, and nothing can be told apart by it.
    #[test]
    fn a_count_of_no_tokens_is_none() {
        let made = Made::default().tables("a", 0);
        let tokens = |count: Option<i64>| {
            let step = |step: &StepRow| StepRow { tokens: count, ..step.clone() };
            let steps: Vec<StepRow> = made.steps.iter().map(step).collect();
            Measured::of(&made.run, &steps, &StepPhases::default()).tokens
        };
        assert_eq!([Some(0), Some(64), None].map(tokens), [None, Some(64.0), None]);
    }
}
