//! A run's account as values: what `show` prints, and what `show --json` is.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;
use serde_json::{Map, Value};

use super::creep::{MemoryCreep, blame, creeping};
use super::ledger::{MomentSummary, PeakPart, by_detail};
use super::listed_run::instant;
use super::out_of_memory::{OutOfMemory, out_of_memory};
use super::phases::{PhaseSummary, sum};
use super::product_rate::{ProductRate, product_rate};
use super::step_times::{StepSummary, StepTimes};
use crate::record::{
    AllocationRow, DeviceFacts, ExperimentRow, LedgerMoment, Machine, Moment, Phase, PhaseRow,
    ReferenceRates, RunRow, SpanKind, StepRow,
};
use crate::stats::median;

/// The tables of one run, as a store reads them.
#[derive(Debug, Clone)]
pub struct Account {
    pub run: RunRow,
    pub steps: Vec<StepRow>,
    pub phases: Vec<PhaseRow>,
    pub ledger: Vec<LedgerMoment>,
    /// Those alive at the peak ([`peak_instant`]) of the step whose ledger is shown.
    pub alive_at_peak: Vec<AllocationRow>,
    /// Those alive when the allocation failed that ended the run.
    pub alive_at_failure: Vec<AllocationRow>,
    /// Those alive at [`creep_instant`](super::creep_instant); none where nothing creeps.
    pub survivors: Vec<AllocationRow>,
    pub experiments: Vec<ExperimentRow>,
}

/// A step was asked for that the run does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("run {run_id} has no step {step}; it has {range}")]
pub struct NoSuchStep {
    run_id: String,
    step: i64,
    range: String,
}

/// One run, summed up. Its fields, in order, are the documented object of `show --json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    pub run_id: String,
    pub schema_version: i32,
    pub program: String,
    pub status: &'static str,
    pub reason: Option<String>,
    pub started_at: String,
    pub config: Map<String, Value>,
    pub device: String,
    pub machine: Machine,
    /// Of the GPU; all null on a CPU.
    pub device_facts: DeviceFacts,
    pub versions: Versions,
    pub parameters: Option<i64>,
    pub trace: &'static str,
    pub step: StepSummary,
    /// The step that was asked for alone; null where all measured ones are summed up.
    pub one_step: Option<OneStep>,
    /// Null for what is no toy model, and where no step was measured, or the host's part of it alone.
    pub products: Option<ProductRate>,
    pub phases: Vec<PhaseSummary>,
    /// What the device took of the steps when they had ended on the host; with it the phases add up to the steps' time. Null
    /// on a CPU, and where the times are the host's.
    pub device_goes_on: Option<PhaseSummary>,
    pub scopes: Vec<PhaseSummary>,
    /// The step whose ledger is shown; null when memory was not traced.
    pub ledger_step: Option<i64>,
    pub ledger: BTreeMap<&'static str, MomentSummary>,
    /// The phase the peak fell into, and what was alive then.
    pub peak_phase: Option<&'static str>,
    pub peak_parts: Vec<PeakPart>,
    /// Null for a run that ended otherwise.
    pub out_of_memory: Option<OutOfMemory>,
    /// Of every step, warm-up included; null where a step had none.
    pub losses: Vec<Option<f64>>,
    pub instruments: Instruments,
    /// Experiments in which this run is the one with the change.
    pub experiments: Vec<ExperimentRow>,
    pub missing: Vec<String>,
    /// Of all measured steps, or why nothing can be said; told among the findings.
    #[serde(skip)]
    pub memory_creep: Result<Vec<MemoryCreep>, String>,
    /// What the rules hold the run against; shown with what they make of it.
    #[serde(skip)]
    pub reference_rates: Option<ReferenceRates>,
}

/// One step, where no other is looked at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OneStep {
    pub step: i64,
    pub warmup: bool,
    pub loss: Option<f64>,
}

impl OneStep {
    fn of(step: &StepRow) -> Self {
        OneStep { step: step.step, warmup: step.warmup, loss: step.loss }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Versions {
    pub stepledger: String,
    pub torch: Option<String>,
}

/// What the observer saw and cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Instruments {
    pub events_per_step: Option<f64>,
    pub dropped_events: i64,
    pub hook_ns_per_event: Option<f64>,
    /// Looking up gradients after backward, and filing and writing one step's records after it had ended.
    pub observer_median_ms: Option<f64>,
    /// The largest difference between allocator and categories at any event of the steps looked at.
    pub difference_bytes: Option<i64>,
}

/// Sums up a run: over its measured steps, or over step `only`. The ledger is that of step `only`, or of
/// the last measured step (the last one at all, if none was measured).
pub fn summarize(account: &Account, only: Option<i64>) -> Result<Summary, NoSuchStep> {
    let steps = chosen_steps(&account.run, &account.steps, only)?;
    let times = StepTimes::of(account, only);
    let numbers: HashSet<i64> = steps.iter().map(|step| step.step).collect();
    // A validation pass has the number of the step that follows, and is no part of it.
    let in_step = |row: &&PhaseRow| row.phase != Phase::Validation && numbers.contains(&row.step);
    let phases: Vec<&PhaseRow> = account.phases.iter().filter(in_step).collect();
    let ledger_step = ledger_step(&account.steps, only);
    let moments: Vec<&LedgerMoment> =
        account.ledger.iter().filter(|moment| Some(moment.step) == ledger_step).collect();
    let (run, step) = (&account.run, times.summary(&steps));
    let (status, reason) = run.told_status(account.steps.len());
    Ok(Summary {
        run_id: run.run_id.clone(),
        schema_version: run.schema_version,
        program: run.program.clone(),
        status,
        reason,
        started_at: instant(run.started_at),
        config: run.config.clone(),
        device: run.device.clone(),
        machine: run.machine.clone(),
        device_facts: run.device_facts.clone(),
        versions: Versions { stepledger: run.stepledger_version.clone(), torch: run.torch_version.clone() },
        parameters: run.parameters,
        trace: run.trace.as_str(),
        products: product_rate(&run.config, run.reference_rates.as_ref(), &step),
        step,
        one_step: only.and(steps.first()).map(|step| OneStep::of(step)),
        phases: sum(&phases, SpanKind::Phase, &times),
        device_goes_on: times.device_goes_on(),
        scopes: [SpanKind::Scope, SpanKind::Node]
            .iter()
            .flat_map(|kind| sum(&phases, *kind, &times))
            .collect(),
        ledger_step: ledger_step.filter(|_| !moments.is_empty()),
        ledger: moments.iter().map(|moment| (moment.moment.as_str(), MomentSummary(**moment))).collect(),
        peak_phase: peak_phase(account, ledger_step),
        peak_parts: by_detail(&account.alive_at_peak),
        out_of_memory: out_of_memory(account),
        losses: account.steps.iter().map(|step| step.loss).collect(),
        instruments: instruments(run, &steps),
        experiments: account.experiments.clone(),
        missing: run.missing.clone(),
        memory_creep: memory_creep(account),
        reference_rates: run.reference_rates.clone(),
    })
}

fn memory_creep(account: &Account) -> Result<Vec<MemoryCreep>, String> {
    let mut creeps = creeping(&account.steps, &account.ledger)?;
    blame(&mut creeps, &account.run, &account.steps, &account.survivors);
    Ok(creeps)
}

/// The step whose ledger is shown: `only`, or the last measured one, or the last at all.
pub(super) fn ledger_step(steps: &[StepRow], only: Option<i64>) -> Option<i64> {
    let last = |steps: &mut dyn DoubleEndedIterator<Item = &StepRow>| steps.next_back().map(|step| step.step);
    only.or_else(|| last(&mut steps.iter().filter(|step| !step.warmup))).or_else(|| last(&mut steps.iter()))
}

/// The instant of the peak of the step whose ledger [`summarize`] would show.
pub fn peak_instant(steps: &[StepRow], ledger: &[LedgerMoment], only: Option<i64>) -> Option<i64> {
    let step = ledger_step(steps, only)?;
    let peak = ledger.iter().find(|moment| moment.step == step && moment.moment == Moment::Peak)?;
    Some(peak.at_ns)
}

/// Step `only`, or all measured ones.
pub(super) fn chosen_steps<'a>(
    run: &RunRow,
    steps: &'a [StepRow],
    only: Option<i64>,
) -> Result<Vec<&'a StepRow>, NoSuchStep> {
    match only {
        Some(only) => Ok(vec![find_step(run, steps, only)?]),
        None => Ok(steps.iter().filter(|step| !step.warmup).collect()),
    }
}

pub(super) fn find_step<'a>(
    run: &RunRow,
    steps: &'a [StepRow],
    number: i64,
) -> Result<&'a StepRow, NoSuchStep> {
    steps.iter().find(|step| step.step == number).ok_or_else(|| NoSuchStep {
        run_id: run.run_id.clone(),
        step: number,
        range: range(run, steps, number),
    })
}

/// Which steps there are, and what became of the one that was asked for.
fn range(run: &RunRow, steps: &[StepRow], number: i64) -> String {
    let range = match (steps.first(), steps.last()) {
        (Some(first), Some(last)) => format!("steps {} to {}", first.step, last.step),
        _ => "no finished steps".to_owned(),
    };
    match run.out_of_memory.as_ref().and_then(|failed| failed.step) == Some(number) {
        true => {
            format!("{range}. In step {number} it ran out of memory; plain `show` tells what was alive then")
        }
        false => range,
    }
}

fn instruments(run: &RunRow, steps: &[&StepRow]) -> Instruments {
    let per_step =
        |value: fn(&StepRow) -> f64| -> Vec<f64> { steps.iter().map(|step| value(step)).collect() };
    Instruments {
        events_per_step: median(&per_step(|step| step.events as f64)),
        dropped_events: run.dropped_events,
        hook_ns_per_event: run.hook_ns_per_event,
        observer_median_ms: median(&per_step(|step| step.observer_ns as f64 / 1e6)),
        difference_bytes: steps.iter().filter_map(|step| step.difference_bytes).max(),
    }
}

fn peak_phase(account: &Account, ledger_step: Option<i64>) -> Option<&'static str> {
    let step = account.steps.iter().find(|step| Some(step.step) == ledger_step)?;
    step.peak_phase.map(|phase| phase.as_str())
}
