//! Made-up runs of known speed: as many as a comparison needs, written as the program would write them.

use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Map, Value, json};
use stepledger::record::*;
use stepledger::store::DatasetWriter;

/// The parts of a step's time that its phases take.
const SHARES: [(Phase, f64); 5] = [
    (Phase::Dataloader, 0.02),
    (Phase::Forward, 0.3),
    (Phase::Backward, 0.6),
    (Phase::Optimizer, 0.05),
    (Phase::Other, 0.03),
];

/// One run: its speed, and what else can be different about it.
#[derive(Debug, Clone)]
pub struct Made {
    /// The median step, before the run's own lot.
    pub step_ms: f64,
    /// What this process drew by lot, as a share.
    pub lot: f64,
    /// How much of what five processes usually draw ([`LOTS`]) they do.
    pub lots: f64,
    /// How far steps are off the level, as a share, at most.
    pub scatter: f64,
    /// How much longer the last step takes than the first, as a share.
    pub slope: f64,
    /// Whether a step in twenty takes three times as long.
    pub spikes: bool,
    /// Measured steps, counted from 0, that take five times as long.
    pub slow_steps: &'static [i64],
    /// How many measured steps take twice the time, as those before them do.
    pub warm_steps: i64,
    /// How much longer the steps of the second half take, as a share.
    pub jump: f64,
    /// Whether an optimizer runs in every step, or in every second step alone, which takes twice the time.
    pub optimizer_every: i64,
    /// A step that should have had an optimizer, and had none.
    pub skipped_optimizer: Option<i64>,
    pub steps: i64,
    pub warmup: i64,
    pub config: Map<String, Value>,
    pub program: &'static str,
    pub host: &'static str,
    pub torch: &'static str,
    pub status: RunStatus,
    pub trace: Trace,
    pub tokens: Option<i64>,
    /// Bytes of activations at the end of forward, and at the peak.
    pub activation_bytes: i64,
    pub hook_ns_per_event: Option<f64>,
    pub observer_ns: i64,
    /// The loss of a step.
    pub loss: fn(i64) -> f64,
    /// When it started, in minutes.
    pub minute: i64,
    pub schema_version: i32,
    pub device: &'static str,
    pub device_facts: DeviceFacts,
    pub memory_bytes: Option<i64>,
}

impl Made {
    pub fn usual() -> Self {
        let config = json!({ "model": "gpt", "layers": 4, "batch": 8, "seed": 1, "threads": 2 });
        Made {
            step_ms: 10.0,
            lot: 0.0,
            lots: 1.0,
            scatter: 0.01,
            slope: 0.0,
            spikes: false,
            slow_steps: &[],
            warm_steps: 0,
            jump: 0.0,
            optimizer_every: 1,
            skipped_optimizer: None,
            steps: 60,
            warmup: 4,
            config: serde_json::from_value(config).unwrap(),
            program: "gpt",
            host: "here",
            torch: "2.11.0",
            status: RunStatus::Complete,
            trace: Trace::Allocations,
            tokens: Some(512),
            activation_bytes: 10_000,
            hook_ns_per_event: Some(90.0),
            observer_ns: 20_000,
            loss: |step| 5.0 / (step as f64 + 1.0),
            minute: 0,
            schema_version: SCHEMA_VERSION,
            device: "cpu",
            device_facts: DeviceFacts::default(),
            memory_bytes: None,
        }
    }

    /// The same with one field of its configuration set.
    pub fn with(mut self, field: &str, value: Value) -> Self {
        self.config.insert(field.to_owned(), value);
        self
    }

    /// Writes the run into the folder `out`.
    pub fn write(&self, out: &Path, run_id: &str) {
        let run = self.run(run_id);
        let mut writer = DatasetWriter::create(out, &run).unwrap();
        for step in 0..self.warmup + self.steps {
            let wall_ns = self.wall_ns(step);
            let moments = if self.trace == Trace::Phases { Vec::new() } else { self.moments(step) };
            writer.push(self.step(step, wall_ns), self.phases(step, wall_ns), moments, Vec::new());
        }
        writer.finish(&run, &[]).unwrap();
    }

    /// Steps scatter by a percent or so, and repeat themselves; warm-up steps take twice the time.
    fn wall_ns(&self, step: i64) -> i64 {
        let scatter = self.scatter * (step as f64 * 2.399).sin();
        let slope = self.slope * step as f64 / (self.warmup + self.steps) as f64;
        let warmup = if step < self.warmup + self.warm_steps { 2.0 } else { 1.0 };
        let spike = if self.spikes && step % 20 == 13 { 3.0 } else { 1.0 };
        let slow = if self.slow_steps.contains(&(step - self.warmup)) { 5.0 } else { 1.0 };
        let jump = if step - self.warmup >= self.steps / 2 { 1.0 + self.jump } else { 1.0 };
        let cycle = if self.has_optimizer(step) { self.optimizer_every as f64 } else { 1.0 };
        let factor = spike * slow * jump * cycle;
        (self.step_ms * 1e6 * factor * warmup * (1.0 + scatter) * (1.0 + slope) * (1.0 + self.lot)) as i64
    }

    fn has_optimizer(&self, step: i64) -> bool {
        step % self.optimizer_every == self.optimizer_every - 1 && self.skipped_optimizer != Some(step)
    }

    fn step(&self, step: i64, wall_ns: i64) -> StepRow {
        let traced = self.trace != Trace::Phases;
        StepRow {
            step,
            warmup: step < self.warmup,
            started_at: self.started_at(),
            wall_ns,
            loss: Some((self.loss)(step)),
            tokens: self.tokens,
            device_busy_pct: None,
            cpu_wait_ns: None,
            events: if traced { 400 } else { 0 },
            dropped_events: 0,
            peak_bytes: traced.then_some(self.activation_bytes + 5_000),
            peak_phase: traced.then_some(Phase::Backward),
            difference_bytes: traced.then_some(0),
            observer_ns: self.observer_ns,
            rounding_bytes: None,
            cached_bytes: None,
            non_torch_bytes: None,
            transfer_ns: None,
            sync_ns: None,
            launch_ns: None,
            lead_ns: None,
            optimizer_calls: Some(self.has_optimizer(step).into()),
        }
    }

    fn moments(&self, step: i64) -> Vec<LedgerMoment> {
        let moment = |moment, parts: &[(Category, i64)]| {
            let mut bytes = ByCategory::default();
            parts.iter().for_each(|(category, held)| bytes[*category] = *held);
            LedgerMoment { step, moment, at_ns: step, bytes, allocator_bytes: bytes.total() }
        };
        let activation = (Category::Activation, self.activation_bytes);
        let parameter = (Category::Parameter, 3_000);
        vec![
            moment(Moment::ForwardEnd, &[parameter, activation]),
            moment(Moment::BackwardEnd, &[parameter, (Category::Gradient, 3_000)]),
            moment(Moment::OptimizerEnd, &[parameter, (Category::Gradient, 3_000)]),
            moment(Moment::Peak, &[parameter, activation, (Category::Workspace, 2_000)]),
        ]
    }

    fn started_at(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_nanos(1_764_000_000_000_000_000) + TimeDelta::minutes(self.minute)
    }

    fn phases(&self, step: i64, wall_ns: i64) -> Vec<PhaseRow> {
        let row = |kind, phase: Phase, name: &str, total_ns: f64| PhaseRow {
            step,
            kind,
            phase,
            name: name.into(),
            parent: None,
            calls: 1,
            begin_ns: None,
            total_ns: total_ns as i64,
            device_ns: None,
            lead_ns: None,
        };
        let mut rows: Vec<PhaseRow> = SHARES
            .iter()
            .filter(|(phase, _)| *phase != Phase::Optimizer || self.has_optimizer(step))
            .map(|(phase, share)| row(SpanKind::Phase, *phase, phase.as_str(), share * wall_ns as f64))
            .collect();
        // Nested in forward, or no part of the step: neither belongs to a phase's time.
        rows.push(row(SpanKind::Scope, Phase::Forward, "h.0", 0.2 * wall_ns as f64));
        rows.push(row(SpanKind::Between, Phase::Validation, "validation", 3e6));
        rows
    }

    fn run(&self, run_id: &str) -> RunRow {
        let host = Some(self.host.to_owned());
        let machine = Machine {
            host,
            cpu: Some("a cpu".to_owned()),
            torch_threads: Some(2),
            memory_bytes: self.memory_bytes,
            ..Machine::default()
        };
        let mut config = self.config.clone();
        // As many as there are, unless a test says otherwise.
        config.entry("steps").or_insert(self.steps.into());
        RunRow {
            schema_version: self.schema_version,
            run_id: run_id.to_owned(),
            rank: 0,
            program: self.program.to_owned(),
            status: self.status,
            reason: (self.status == RunStatus::Failed).then(|| "the disk was full".to_owned()),
            started_at: self.started_at(),
            finished_at: Some(self.started_at() + TimeDelta::seconds(20)),
            config,
            device: self.device.to_owned(),
            parameters: Some(750),
            trace: self.trace,
            capacity_bytes: None,
            out_of_memory: None,
            machine,
            device_facts: self.device_facts.clone(),
            reference_rates: None,
            stepledger_version: "0.1.0".to_owned(),
            torch_version: Some(self.torch.to_owned()),
            steps: Some(self.warmup + self.steps),
            events: 400 * self.steps,
            dropped_events: 0,
            hook_ns_per_event: self.hook_ns_per_event,
            missing: Vec::new(),
        }
    }
}

/// What five processes drew by lot.
pub const LOTS: [f64; 5] = [0.0, 0.004, -0.003, 0.002, -0.004];

/// Writes `pairs` repeats of both sides, taking turns, into the folders `base` and `candidate` of `out`.
/// `change` sees each repeat of the candidate, with its number.
pub fn sides(out: &Path, pairs: usize, base: &Made, candidate: &Made) {
    for pair in 0..pairs {
        let minute = 2 * pair as i64;
        let lots = [LOTS[pair % 5], LOTS[(pair + 2) % 5]];
        let made =
            |made: &Made, lot: f64, minute| Made { lot: made.lot + made.lots * lot, minute, ..made.clone() };
        // Names in another order than the starts, which are what counts.
        let name = |side: &str| format!("{side}-{}", (pair * 7 + 3) % pairs.max(1));
        made(base, lots[0], minute).write(&out.join("base"), &name("b"));
        made(candidate, lots[1], minute + 1).write(&out.join("candidate"), &name("c"));
    }
}
