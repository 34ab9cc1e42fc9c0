//! A made-up run whose every number is known: rows by hand, the ledger counted from them by brute force.

use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use stepledger::record::*;
use stepledger::store::DatasetWriter;

pub const LAYERS: i64 = 12;
/// Not a whole number of microseconds, which is all that the dataset keeps of it.
const FIRST_STEP_NS: i64 = 5_000_789;
const STEP_NS: i64 = 10_000_000;
const GAP_NS: i64 = 2_000_000;
const HOST_NS: i64 = STEP_NS / 10;
const MS: i64 = 1_000_000;

/// What a run is like.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub steps: i64,
    pub warmup: i64,
    pub trace: Trace,
    pub layers: i64,
    /// The loss of every step is kept.
    pub leak: bool,
    /// The step has an optimizer phase.
    pub optimizer: bool,
    /// Every second step takes three times as long.
    pub uneven: bool,
    /// On a GPU, whose every step takes 10 ms: the loss is read in every so manieth. A CPU's is read in each.
    pub waits_every: Option<i64>,
    /// Whether it is known when the GPU was through with a step.
    pub leads: bool,
    /// How long a validation pass takes that follows each step of a GPU that has read its loss.
    pub pass_ms: i64,
    /// Steps that are not in the tables, from and to.
    pub gone: (i64, i64),
    pub batch: i64,
}

impl Plan {
    pub const USUAL: Plan = Plan {
        steps: 14,
        warmup: 2,
        trace: Trace::Ops,
        layers: LAYERS,
        leak: false,
        optimizer: true,
        uneven: false,
        waits_every: None,
        leads: true,
        pass_ms: 0,
        gone: (0, 0),
        batch: 8,
    };

    /// Writes the run and returns its lifetimes.
    pub fn write(self, out: &Path, run_id: &str) -> Vec<AllocationRow> {
        let lifetimes = Lifetimes::of(self);
        let run = self.run(run_id);
        let mut writer = DatasetWriter::create(out, &run).unwrap();
        for step in (0..self.steps).filter(|step| !(self.gone.0..self.gone.1).contains(step)) {
            let ended = |row: &&AllocationRow| row.freed_ns.is_some_and(|ns| step_of(ns) == step);
            let closed = lifetimes.iter().filter(ended).cloned().collect();
            let mut moments =
                if self.trace == Trace::Phases { Vec::new() } else { moments(&lifetimes, step) };
            moments.retain(|row| self.optimizer || row.moment != Moment::OptimizerEnd);
            writer.push(self.step(step, &moments), phases(step, self), moments, closed);
            // Several parts: a step's lifetimes may end in a later one than its own.
            if step % 3 == 2 {
                writer.flush(&[]).unwrap();
            }
        }
        let open: Vec<_> = lifetimes.iter().filter(|row| row.freed_ns.is_none()).cloned().collect();
        writer.finish(&run, &open).unwrap();
        lifetimes
    }

    fn waits(self, step: i64) -> bool {
        (step + 1) % self.waits_every.unwrap_or(1) == 0
    }

    /// The host hands a step over in 1 ms, has something else to do for 2 ms, and then waits for all that it has handed
    /// over, but for an optimizer that takes the device 2 ms more.
    fn wall_ns(self, step: i64) -> i64 {
        let every = self.waits_every.unwrap_or(1);
        match (self.waits_every, self.waits(step)) {
            (None, _) if self.uneven && step % 2 == 1 => 3 * STEP_NS,
            (None, _) => STEP_NS,
            (Some(_), true) => every * STEP_NS - GAP_NS - (every - 1) * (HOST_NS + GAP_NS),
            (Some(_), false) => HOST_NS,
        }
    }

    fn begin_ns(self, step: i64) -> i64 {
        let Some(every) = self.waits_every else { return begin_ns(step) };
        let cycle_ns = every * STEP_NS + self.pass_ms * MS;
        FIRST_STEP_NS + step / every * cycle_ns + step % every * (HOST_NS + GAP_NS)
    }

    /// The GPU is through with a step 10 ms after the one before, or after the begin of the first since it was waited for.
    fn lead_ns(self, step: i64) -> Option<i64> {
        let place = step % self.waits_every?;
        let ended_ns = place * (HOST_NS + GAP_NS) + self.wall_ns(step);
        self.leads.then(|| (place + 1) * STEP_NS - ended_ns)
    }

    /// Of the pass before a step.
    fn pass_ns(self, step: i64) -> i64 {
        match self.waits_every {
            Some(every) if step % every == 0 && step > 0 => self.pass_ms * MS,
            Some(_) => 0,
            None => 77_777,
        }
    }

    fn step(self, step: i64, moments: &[LedgerMoment]) -> StepRow {
        let peak = moments.iter().find(|row| row.moment == Moment::Peak);
        StepRow {
            step,
            warmup: step < self.warmup,
            started_at: start() + TimeDelta::nanoseconds(self.begin_ns(step)),
            wall_ns: self.wall_ns(step),
            loss: self.waits(step).then(|| loss(step)),
            tokens: Some(100),
            device_busy_pct: Some(if self.waits_every.is_some() { 20.0 } else { 90.0 }),
            cpu_wait_ns: Some(1_000_000),
            events: 100,
            dropped_events: 0,
            peak_bytes: peak.map(|row| row.bytes.total()),
            peak_phase: peak.map(|_| Phase::Backward),
            difference_bytes: peak.map(|_| 0),
            observer_ns: 1_000,
            rounding_bytes: None,
            cached_bytes: None,
            non_torch_bytes: None,
            transfer_ns: self.waits_every.map(|_| 6_000_000),
            sync_ns: self.waits_every.map(|_| 1_000_000),
            launch_ns: self.waits_every.map(|_| 500_000),
            lead_ns: self.lead_ns(step),
            optimizer_calls: Some(self.optimizer.into()),
        }
    }

    fn run(self, run_id: &str) -> RunRow {
        RunRow {
            schema_version: SCHEMA_VERSION,
            run_id: run_id.to_owned(),
            rank: 0,
            program: "made_up".to_owned(),
            status: RunStatus::Complete,
            reason: None,
            started_at: start(),
            finished_at: None,
            // More than a line of them.
            config: (10..30)
                .map(|at| (format!("option_{at}"), at.into()))
                .chain([("batch".to_owned(), self.batch.into())])
                .collect(),
            device: if self.waits_every.is_some() { "cuda:0" } else { "cpu" }.to_owned(),
            parameters: Some(3 * self.layers),
            trace: self.trace,
            capacity_bytes: None,
            out_of_memory: None,
            machine: Machine::default(),
            device_facts: DeviceFacts::default(),
            reference_rates: None,
            stepledger_version: "0.1.0".to_owned(),
            torch_version: None,
            steps: Some(self.steps),
            events: 1_000,
            dropped_events: 0,
            hook_ns_per_event: None,
            missing: Vec::new(),
        }
    }
}

/// Falls by a tenth a step.
pub fn loss(step: i64) -> f64 {
    5.0 - step as f64 / 10.0
}

fn start() -> DateTime<Utc> {
    // Between two microseconds, too.
    DateTime::from_timestamp_nanos(1_764_000_000_123_456_500)
}

pub fn begin_ns(step: i64) -> i64 {
    FIRST_STEP_NS + step * (STEP_NS + GAP_NS)
}

/// The step an instant belongs to, the gap before it included.
fn step_of(at_ns: i64) -> i64 {
    (at_ns - FIRST_STEP_NS + GAP_NS).max(0) / (STEP_NS + GAP_NS)
}

/// The phases of a step, from when to when.
const PHASES: [(Phase, i64, i64); 4] = [
    (Phase::Dataloader, 0, 1_000_000),
    (Phase::Forward, 1_000_000, 4_000_000),
    (Phase::Backward, 4_000_000, 8_000_000),
    (Phase::Optimizer, 8_000_000, 9_500_000),
];

/// Step and phase of an instant.
fn place(at_ns: i64) -> (Option<i64>, Option<Phase>) {
    let step = step_of(at_ns);
    let since = at_ns - begin_ns(step);
    if since < 0 {
        return (None, None);
    }
    let phase = PHASES.iter().find(|(_, begin, end)| (*begin..*end).contains(&since));
    (Some(step), Some(phase.map_or(Phase::Other, |(phase, ..)| *phase)))
}

struct Lifetimes(Vec<AllocationRow>);

impl Lifetimes {
    fn of(plan: Plan) -> Vec<AllocationRow> {
        let mut all = Lifetimes(Vec::new());
        for layer in 0..plan.layers {
            for (part, bytes) in [("attn.c_attn", 600), ("mlp.c_fc", 800)] {
                let row = all.add(1_000 + layer, None, bytes, Category::Parameter);
                row.name = Some(format!("transformer.h.{layer}.{part}.weight").into());
            }
        }
        all.add(2_000, None, 5_000, Category::Parameter).name = Some("transformer.wte.weight".into());
        (0..plan.steps).for_each(|step| all.step(step, plan));
        let mut rows = all.0;
        rows.sort_by_key(|row| row.at_ns);
        rows.iter_mut().enumerate().for_each(|(id, row)| row.id = id as i64);
        if plan.trace == Trace::Phases { Vec::new() } else { rows }
    }

    fn step(&mut self, step: i64, plan: Plan) {
        let begin = begin_ns(step);
        let at = |ns: i64| begin + ns;
        let stride = 2_400_000 / plan.layers;
        // Larger than everything else, and gone just before the step: no peak of it.
        self.add(begin - 400_000, Some(begin - 90), 1 << 30, Category::Workspace);
        self.add(at(100_000), Some(at(9_000_000)), 512 * plan.batch, Category::Input);
        for layer in 0..plan.layers {
            let now = 1_100_000 + layer * stride;
            let freed = Some(at(7_500_000 - layer * stride));
            self.scoped(at(now), freed, 1_000, Category::Activation, format!("h.{layer}.attn"));
            self.scoped(
                at(now + stride / 4),
                freed,
                2_000 + layer,
                Category::Activation,
                format!("h.{layer}.mlp"),
            );
            let temporary =
                self.add(at(now + stride / 3), Some(at(now + stride / 2)), 300, Category::Workspace);
            temporary.detail = Some(Detail::ForwardTemporary);
            temporary.op = Some("aten::linear".into());
            let now = 4_100_000 + (plan.layers - layer) * stride;
            let part = if layer % 2 == 0 { "attn.c_attn" } else { "mlp.c_fc" };
            // Freed early in the next step, as zero_grad does.
            let gone = (step + 1 < plan.steps).then(|| begin_ns(step + 1) + 50);
            let gradient = self.scoped(at(now), gone, 600, Category::Gradient, format!("h.{layer}"));
            gradient.name = Some(format!("transformer.h.{layer}.{part}.weight").into());
        }
        let kept = if plan.leak { None } else { Some(at(9_700_000)) };
        self.scoped(at(3_900_000), kept, 4, Category::Workspace, "loss".to_owned()).detail =
            Some(Detail::Output);
        self.add(at(4_050_000), Some(at(4_250_000)), 9_999, Category::Workspace);
        if step == 0 {
            self.add(at(8_100_000), None, 7_000, Category::AdamState);
            self.add(at(8_200_000), None, 1_200, Category::AdamState).name =
                Some("transformer.h.0.attn.c_attn.weight".into());
        }
    }

    fn scoped(
        &mut self,
        at_ns: i64,
        freed_ns: Option<i64>,
        bytes: i64,
        category: Category,
        scope: String,
    ) -> &mut AllocationRow {
        let row = self.add(at_ns, freed_ns, bytes, category);
        row.scope = Some(scope.into());
        row
    }

    fn add(
        &mut self,
        at_ns: i64,
        freed_ns: Option<i64>,
        bytes: i64,
        category: Category,
    ) -> &mut AllocationRow {
        let (step, phase) = place(at_ns);
        let (freed_step, freed_phase) = freed_ns.map_or((None, None), place);
        self.0.push(AllocationRow {
            id: 0,
            step,
            bytes,
            category,
            detail: None,
            name: None,
            phase,
            scope: None,
            op: None,
            thread: 0,
            at_ns,
            freed_ns,
            freed_step,
            freed_phase,
        });
        self.0.last_mut().unwrap()
    }
}

/// What is alive at an instant, by category.
pub fn alive(lifetimes: &[AllocationRow], at_ns: i64) -> ByCategory {
    let mut bytes = ByCategory::default();
    let lives = |row: &&AllocationRow| row.at_ns <= at_ns && row.freed_ns.is_none_or(|freed| freed > at_ns);
    lifetimes.iter().filter(lives).for_each(|row| bytes[row.category] += row.bytes);
    bytes
}

/// The instants of a step at which something changes, its begin included.
pub fn instants(lifetimes: &[AllocationRow], step: i64) -> Vec<i64> {
    let all = lifetimes.iter().flat_map(|row| [Some(row.at_ns), row.freed_ns]).flatten();
    let (begin, end) = (begin_ns(step), begin_ns(step) + STEP_NS);
    let mut instants: Vec<i64> = all.filter(|at| (begin..end).contains(at)).chain([begin]).collect();
    instants.sort_unstable();
    instants.dedup();
    instants
}

fn moments(lifetimes: &[AllocationRow], step: i64) -> Vec<LedgerMoment> {
    let row = |moment, at_ns| {
        let bytes = alive(lifetimes, at_ns);
        LedgerMoment { step, moment, at_ns, bytes, allocator_bytes: bytes.total() }
    };
    let ends =
        PHASES.iter().filter_map(|(phase, _, end)| Some(row(Moment::end_of(*phase)?, begin_ns(step) + end)));
    let total = |at_ns: &i64| (alive(lifetimes, *at_ns).total(), -at_ns);
    let peak = instants(lifetimes, step).into_iter().max_by_key(total).unwrap();
    ends.chain([row(Moment::Peak, peak), row(Moment::PeakDataloader, begin_ns(step))]).collect()
}

fn phases(step: i64, plan: Plan) -> Vec<PhaseRow> {
    let phase = |kind, phase: Phase, ns| row(step, kind, phase, phase.as_str(), None, ns);
    let share = |of_ten_ms: i64| of_ten_ms * plan.wall_ns(step) / STEP_NS;
    let mut rows: Vec<PhaseRow> =
        PHASES.iter().map(|(of, begin, end)| phase(SpanKind::Phase, *of, share(end - begin))).collect();
    rows.push(phase(SpanKind::Phase, Phase::Other, share(500_000)));
    // What ran between the steps is no part of them.
    rows.push(phase(SpanKind::Between, Phase::Validation, plan.pass_ns(step)));
    rows.push(scope(step, Phase::Validation, "h.0", None, 66_666));
    for layer in 0..plan.layers {
        let block = format!("h.{layer}");
        let [attn, mlp] = ["attn", "mlp"].map(|part| format!("{block}.{part}"));
        rows.push(scope(step, Phase::Forward, &block, None, 200_000 + step));
        rows.push(scope(step, Phase::Forward, &attn, Some(&block), 80_000 + 3 * step));
        rows.push(scope(step, Phase::Forward, &mlp, Some(&block), 100_000));
        if plan.trace == Trace::Ops {
            rows.push(row(step, SpanKind::Node, Phase::Backward, &block, None, 10_000));
            rows.push(row(step, SpanKind::Node, Phase::Backward, &mlp, Some(&block), 220_000 + step));
        }
    }
    rows.push(scope(step, Phase::Forward, "loss", None, 50_000));
    rows
}

fn scope(step: i64, phase: Phase, name: &str, parent: Option<&str>, total_ns: i64) -> PhaseRow {
    row(step, SpanKind::Scope, phase, name, parent, total_ns)
}

fn row(step: i64, kind: SpanKind, phase: Phase, name: &str, parent: Option<&str>, total_ns: i64) -> PhaseRow {
    let (name, parent) = (name.into(), parent.map(Arc::from));
    PhaseRow {
        step,
        kind,
        phase,
        name,
        parent,
        calls: 1,
        begin_ns: None,
        total_ns,
        device_ns: None,
        lead_ns: None,
    }
}
