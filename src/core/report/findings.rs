//! What the rules say of a run: each finding with its numbers, or why there is none.

use serde::Serialize;

use super::bottleneck::{BottleneckFinding, bottleneck};
use super::creep::MemoryCreep;
use super::exposure::ExposureFinding;
use super::ledger::MomentSummary;
use super::no_time::why_no_time;
use super::resources::Resources;
use super::step_times::DEVICE_GOES_ON;
use super::summary::Summary;
use crate::record::{Category, Moment};
use crate::rules::{
    Event, Hotspot, Lang, LedgerInput, MemoryLedger, NextValidation, ResourceMetrics, Situation, StepMetrics,
    StepSummary, Thresholds, Zone, choose_next_validation, derive_resource_metrics, memory_ledger,
    summarize_step_metrics, top_hotspots,
};
use crate::theory::Shape;

/// Communication is heavy from this share of the step on. A teaching heuristic, like the rules' thresholds.
pub const HEAVY_COMMUNICATION_PCT: f64 = 20.0;

/// How many hotspots are told.
const HOTSPOTS: i64 = 5;

const MIB: f64 = 1024.0 * 1024.0;

/// What the reader wants the findings to be measured against.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// The memory to fit into; the device's own when `None`.
    pub capacity_mb: Option<f64>,
    pub lang: Lang,
}

/// The findings of one run.
#[derive(Debug, Clone, Serialize)]
pub struct Findings {
    pub summary: Option<StepFinding>,
    pub hotspots: Vec<Hotspot>,
    /// What the events of a GPU alone say of what holds the step up; null on a CPU.
    pub exposure: Option<ExposureFinding>,
    /// What the step's work and exposed times say of the GPU; null on a CPU.
    pub resources: Option<ResourceMetrics>,
    /// What holds it up, by the roofline of the rates that the GPU was measured to reach, or that its datasheet says; null on
    /// a CPU.
    pub bottleneck: Option<BottleneckFinding>,
    /// The ledger in theory, by the rule: what dominates it, and what to check about that.
    pub theory: Option<MemoryLedger>,
    /// Theory beside measurement, line by line.
    pub ledger: Vec<LedgerLine>,
    /// Categories that grow from step to step, over all measured steps; empty too where the rule abstained.
    pub memory_creep: Vec<MemoryCreep>,
    pub capacity_mb: Option<f64>,
    pub next_validation: Option<NextValidation>,
    /// Rules that said nothing, and why; `exposure` and `products` are told like them.
    pub abstained: Vec<Abstention>,
}

/// The summary of the median step. On a CPU the rule's `gpu_busy_pct` is the share of the step in compute
/// phases; it is called `device_busy_pct` here, as in the `steps` table. On a GPU that is an upper bound, and the zone one
/// that a lower value would give too.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepFinding {
    pub device_busy_pct: f64,
    #[serde(flatten)]
    pub rule: StepSummary,
}

/// One line of the ledger, in theory and as measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LedgerLine {
    pub line: &'static str,
    /// From the configuration; null where no theory covers it.
    pub theory_bytes: Option<i64>,
    /// The highest at any moment of the step shown.
    pub measured_bytes: i64,
    pub difference_bytes: Option<i64>,
    /// Why the two may differ.
    pub why: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Abstention {
    pub rule: &'static str,
    pub why: String,
}

/// Applies the rules to a run's summary.
pub fn find(summary: &Summary, asked: &Asked) -> Findings {
    let mut abstained = Vec::new();
    let step = keep("summarize-step-metrics", step_finding(summary), &mut abstained);
    let hotspots = keep("top-hotspots", hotspots(summary), &mut abstained).unwrap_or_default();
    let device_mb =
        summary.machine.memory_bytes.filter(|_| summary.device == "cpu").map(|bytes| bytes as f64 / MIB);
    let capacity_mb = asked.capacity_mb.or(device_mb);
    let next = next_validation(summary, &hotspots, capacity_mb, asked.lang);
    let next_validation = keep("choose-next-validation", next, &mut abstained);
    let on_gpu = Resources::of(summary);
    let times = summary.step.check_times();
    if Shape::of(&summary.config).is_some() {
        keep("products", times.clone(), &mut abstained);
    }
    let exposure = on_gpu.and_then(|_| keep("exposure", ExposureFinding::of(&summary.step), &mut abstained));
    let resources = on_gpu.and_then(|resources| {
        let found = times.clone().and_then(|()| metrics(&resources));
        keep("derive-resource-metrics", found, &mut abstained)
    });
    let bottleneck = on_gpu.and_then(|resources| {
        let rates = summary.reference_rates.as_ref();
        let found = times.and_then(|()| bottleneck(&resources, &summary.config, rates));
        keep("attribute-bottleneck", found, &mut abstained)
    });
    let theory = keep("memory-ledger", theory(summary), &mut abstained);
    let creep = keep("memory-creep", summary.memory_creep.clone(), &mut abstained);
    Findings {
        summary: step,
        hotspots,
        exposure,
        resources,
        bottleneck,
        theory,
        ledger: ledger_lines(summary),
        memory_creep: creep.unwrap_or_default(),
        capacity_mb,
        next_validation,
        abstained,
    }
}

/// A rule's answer, or its abstention put with the others.
fn keep<T>(rule: &'static str, found: Result<T, String>, abstained: &mut Vec<Abstention>) -> Option<T> {
    found.map_err(|why| abstained.push(Abstention { rule, why })).ok()
}

fn step_finding(summary: &Summary) -> Result<StepFinding, String> {
    let step = &summary.step;
    let no_time =
        || why_no_time(step).map_or("no measured step".to_owned(), |why| format!("no step time: {why}"));
    let step_ms = step.median_ms.ok_or_else(no_time)?;
    step.check_times()?;
    let device_busy_pct = step.device_busy_pct.ok_or("the device's busy share was not measured")?;
    let cpu_wait_ms = step.cpu_wait_ms.ok_or("the training thread's waiting was not measured")?;
    let tokens = step.tokens_per_step.ok_or("the loop did not say how many tokens a step has")?;
    let metrics = StepMetrics { step_ms, tokens, gpu_busy_pct: device_busy_pct, cpu_wait_ms };
    let finding = judge(&metrics)?;
    match summary.device != "cpu" && rests_on_a_busy_device(finding.rule.zone) {
        true => Err(format!(
            "the device was busy for at most {device_busy_pct:.1} % of the step, gaps between kernels included: how busy it \
             was is not known"
        )),
        false => Ok(finding),
    }
}

fn judge(metrics: &StepMetrics) -> Result<StepFinding, String> {
    let rule = summarize_step_metrics(metrics, &Thresholds::default()).map_err(|error| error.to_string())?;
    Ok(StepFinding { device_busy_pct: metrics.gpu_busy_pct, rule })
}

/// Whether a device that is less busy would be in another zone.
fn rests_on_a_busy_device(zone: Zone) -> bool {
    match zone {
        Zone::LikelyInputOrSyncBound | Zone::LowGpuUtilization => false,
        Zone::SlowComputePath | Zone::NoSingleSignal => true,
    }
}

/// Of all that the step's time is made of.
fn hotspots(summary: &Summary) -> Result<Vec<Hotspot>, String> {
    let parts = summary.phases.iter().chain(&summary.device_goes_on);
    let events = parts.filter(|phase| phase.calls > 0);
    let events = events.map(|phase| Event::new(phase.name.to_string(), phase.total_ms, phase.calls as f64));
    let hotspots = top_hotspots(events.collect(), HOTSPOTS).map_err(|error| error.to_string())?;
    if hotspots.is_empty() { Err("no measured step".to_owned()) } else { Ok(hotspots) }
}

fn metrics(resources: &Resources) -> Result<ResourceMetrics, String> {
    derive_resource_metrics(&resources.record()?).map_err(|error| error.to_string())
}

fn next_validation(
    summary: &Summary,
    hotspots: &[Hotspot],
    capacity_mb: Option<f64>,
    lang: Lang,
) -> Result<NextValidation, String> {
    let is_phase = |spot: &&Hotspot| spot.event.name != DEVICE_GOES_ON;
    let hotspot = hotspots.iter().find(is_phase).ok_or("no phase was timed")?;
    let peak = summary.step.peak_bytes.ok_or("memory was not traced, so there is no peak to fit")?;
    let capacity_mb = capacity_mb.ok_or("the device's memory is not known; give --capacity-mb")?;
    let communication: f64 = summary
        .phases
        .iter()
        .filter(|phase| &*phase.name == "communication")
        .map(|phase| phase.share_pct)
        .sum();
    let situation = Situation {
        total_mb: peak as f64 / MIB,
        capacity_mb,
        hotspot: &hotspot.event.name,
        communication_heavy: communication >= HEAVY_COMMUNICATION_PCT,
    };
    choose_next_validation(&situation, lang).map_err(|error| error.to_string())
}

/// The ledger that the configuration alone gives: parameters, gradients and states in their types, and the
/// activations of the closed form; no temporaries, which the rule has no theory for.
fn theory(summary: &Summary) -> Result<MemoryLedger, String> {
    let shape = Shape::of(&summary.config).ok_or("theory covers the toy models without dropout only")?;
    let input = LedgerInput {
        param_count: shape.parameters(),
        param_bytes: shape.precision.parameter().bytes() as f64,
        grad_bytes: shape.precision.parameter().bytes() as f64,
        adam_state_bytes: shape.state_bytes_each() as f64,
        activation_bytes: shape.activation_bytes(),
        temporary_bytes: 0,
    };
    memory_ledger(&input).map_err(|error| error.to_string())
}

/// The ledger in theory beside the ledger measured. A run of another model has no theory: which type its parameters
/// have, and which optimizer trains them, its records do not say.
fn ledger_lines(summary: &Summary) -> Vec<LedgerLine> {
    if summary.ledger.is_empty() {
        return Vec::new();
    }
    let shape = shape_but_for_dropout(summary);
    let theory = |of: fn(&Shape) -> i64| shape.as_ref().map(of);
    let line = |category: Category, theory_bytes: Option<i64>, why: &'static str| {
        let measured_bytes = highest(summary, category);
        let difference_bytes = theory_bytes.map(|theory| measured_bytes - theory);
        LedgerLine { line: category.as_str(), theory_bytes, measured_bytes, difference_bytes, why }
    };
    vec![
        line(
            Category::Parameter,
            theory(Shape::parameter_bytes),
            "as many bytes a parameter as its type has",
        ),
        line(Category::Gradient, theory(Shape::gradient_bytes), "as parameters; frozen ones have none"),
        line(
            Category::AdamState,
            theory(Shape::adam_state_bytes),
            "two states a parameter, master weights if kept, and the optimizer's step counters",
        ),
        line(
            Category::Activation,
            Shape::of(&summary.config).map(|shape| shape.activation_bytes()),
            "at the end of forward, as libtorch 2.11 saves them on a CPU; no theory covers dropout",
        ),
        line(Category::Input, theory(Shape::input_bytes), "tokens and targets of a micro-batch, int64"),
        line(Category::Workspace, None, "temporaries of the kernels and of backward: no theory covers them"),
    ]
}

/// A category's highest bytes at any moment of the step shown; of activations those at the end of forward, since what
/// recomputation makes anew in backward is no part of that theory.
fn highest(summary: &Summary, category: Category) -> i64 {
    let bytes = |moment: &MomentSummary| moment.0.bytes[category];
    match (category, summary.ledger.get(Moment::ForwardEnd.as_str())) {
        (Category::Activation, Some(forward_end)) => bytes(forward_end),
        _ => summary.ledger.values().map(bytes).max().unwrap_or_default(),
    }
}

/// The shape for what dropout has no part in.
fn shape_but_for_dropout(summary: &Summary) -> Option<Shape> {
    let mut config = summary.config.clone();
    config.remove("dropout");
    Shape::of(&config)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the waiting and the length of the step: where a zone is said to hold for a device that is busy for at most
    /// so long, it is that of any device that is less busy.
    #[test]
    fn a_zone_that_an_upper_bound_gives_is_that_of_all_below_it() {
        let metrics = |gpu_busy_pct, cpu_wait_ms, step_ms| StepMetrics {
            step_ms,
            tokens: 1.0,
            gpu_busy_pct,
            cpu_wait_ms,
        };
        let zone = |busy, wait, step| judge(&metrics(busy, wait, step)).unwrap().rule.zone;
        for (wait, step) in [(0.0, 10.0), (100.0, 150.0), (0.0, 900.0), (100.0, 900.0)] {
            assert!(rests_on_a_busy_device(zone(95.0, wait, step)));
            for busy in [5.0, 49.0, 55.0, 70.0] {
                let most = zone(busy, wait, step);
                let is_low = |zone| !rests_on_a_busy_device(zone);
                assert!(
                    rests_on_a_busy_device(most) || is_low(zone(0.0, wait, step)),
                    "{busy} {wait} {step}"
                );
            }
        }
    }
}
