//! A made-up run that looks like the default GPT's: the same plan every step, times that jitter.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::json;
use stepledger::record::*;

pub const LIFETIMES_A_STEP: i64 = 190;
pub const PARAMETERS: i64 = 52;
const STEP_NS: i64 = 50_000_000;
const BLOCKS: usize = 4;

/// One step's rows, as `DatasetWriter::push` takes them.
pub type StepRows = (StepRow, Vec<PhaseRow>, Vec<LedgerMoment>, Vec<AllocationRow>);

pub fn instant(micros: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(1_764_000_000_000_000 + micros).unwrap()
}

pub fn run(run_id: &str, status: RunStatus) -> RunRow {
    let ended = status != RunStatus::Running;
    RunRow {
        schema_version: SCHEMA_VERSION,
        run_id: run_id.to_owned(),
        rank: 0,
        program: "gpt".to_owned(),
        status,
        reason: (status == RunStatus::Failed).then(|| "the loss is not a number".to_owned()),
        started_at: instant(0),
        finished_at: ended.then(|| instant(9_000_000)),
        config: json!({"layers": 4, "width": 128, "batch": 8, "betas": [0.5, 0.75]})
            .as_object()
            .unwrap()
            .clone(),
        device: "cpu".to_owned(),
        parameters: Some(842_496),
        trace: Trace::Allocations,
        capacity_bytes: None,
        out_of_memory: None,
        machine: Machine {
            host: Some("desk".to_owned()),
            os: Some("Linux 6.8".to_owned()),
            logical_cpus: Some(2),
            memory_bytes: Some(8 << 30),
            torch_threads: Some(2),
            cpu: None,
        },
        device_facts: DeviceFacts::default(),
        reference_rates: Some(ReferenceRates::Calibrated(rates())),
        stepledger_version: "0.1.0".to_owned(),
        torch_version: Some("2.11.0".to_owned()),
        steps: ended.then_some(200),
        events: if ended { 41_800 } else { 0 },
        dropped_events: 0,
        hook_ns_per_event: Some(38.5),
        missing: vec!["device_ns: there is no GPU clock on cpu".to_owned()],
    }
}

fn rates() -> DeviceRates {
    let rate = |median| MeasuredRate { median, q1: 0.9 * median, q3: 1.1 * median, rounds: 5 };
    DeviceRates {
        device: "cpu".to_owned(),
        card: None,
        threads: Some(2),
        // Kept to the second.
        measured_at: DateTime::from_timestamp(1_763_000_000, 0).unwrap(),
        stepledger: "0.1.0".to_owned(),
        torch: "2.11.0".to_owned(),
        array_bytes: None,
        caches_bytes: None,
        copy_gb_s: rate(27.4),
        triad_gb_s: rate(31.1),
        matmul_f32_tflop_s: rate(0.1502),
        matmul_bf16_tflop_s: rate(0.0003),
        // Not kept yet when the frozen datasets were made.
        matmul_f32_rows: None,
        matmul_bf16_rows: None,
        fma_f32_tflop_s: None,
    }
}

/// The lifetimes that no step ends.
pub fn open() -> Vec<AllocationRow> {
    (0..PARAMETERS).map(parameter).collect()
}

fn parameter(id: i64) -> AllocationRow {
    AllocationRow {
        id,
        step: None,
        bytes: 512 << (id % 8),
        category: Category::Parameter,
        detail: None,
        name: Some(format!("transformer.h.{}.weight_{id}", id % 4).into()),
        phase: None,
        scope: None,
        op: None,
        thread: 0,
        at_ns: 1_000 * id,
        freed_ns: None,
        freed_step: None,
        freed_phase: None,
    }
}

pub fn step(step: i64) -> StepRows {
    let mut dice = Dice(step as u64);
    let phases = phases(step, &mut dice);
    let wall_ns = phases.iter().filter(|row| row.kind == SpanKind::Phase).map(|row| row.total_ns).sum();
    let row = StepRow {
        step,
        warmup: step < 3,
        started_at: instant(step * STEP_NS / 1_000),
        wall_ns,
        loss: Some(4.0 / (1.0 + step as f64)),
        tokens: Some(512),
        device_busy_pct: Some(97.5),
        cpu_wait_ns: Some(dice.about(50_000)),
        events: 2 * LIFETIMES_A_STEP,
        dropped_events: 0,
        peak_bytes: Some(50_000_000),
        peak_phase: Some(Phase::Backward),
        difference_bytes: Some(0),
        observer_ns: dice.about(200_000),
        rounding_bytes: None,
        cached_bytes: None,
        non_torch_bytes: None,
        transfer_ns: None,
        sync_ns: None,
        launch_ns: None,
        lead_ns: None,
        optimizer_calls: None,
    };
    (row, phases, moments(step, &mut dice), lifetimes(step, &mut dice))
}

fn phases(step: i64, dice: &mut Dice) -> Vec<PhaseRow> {
    let row = |kind, phase: Phase, name: &str, parent: Option<String>, total_ns| PhaseRow {
        step,
        kind,
        phase,
        name: name.into(),
        parent: parent.map(Arc::from),
        calls: 1,
        total_ns,
        begin_ns: None,
        device_ns: None,
        lead_ns: None,
    };
    let shares = [
        (Phase::Dataloader, 100),
        (Phase::Forward, 3),
        (Phase::Backward, 2),
        (Phase::Optimizer, 8),
        (Phase::Other, 90),
    ];
    let phases = shares
        .map(|(phase, share)| row(SpanKind::Phase, phase, phase.as_str(), None, dice.about(STEP_NS / share)));
    let mut rows = phases.to_vec();
    for block in (0..BLOCKS).map(|block| format!("h.{block}")) {
        rows.push(row(SpanKind::Scope, Phase::Forward, &block, None, dice.about(STEP_NS / 12)));
        for part in ["ln_1", "attn", "ln_2", "mlp", "mlp.gelu"] {
            let scope = format!("{block}.{part}");
            rows.push(row(
                SpanKind::Scope,
                Phase::Forward,
                &scope,
                Some(block.clone()),
                dice.about(STEP_NS / 40),
            ));
        }
    }
    rows.push(row(SpanKind::Scope, Phase::Forward, "loss", None, dice.about(STEP_NS / 50)));
    rows
}

fn moments(step: i64, dice: &mut Dice) -> Vec<LedgerMoment> {
    use Moment::*;
    let all = [
        ForwardEnd,
        BackwardEnd,
        OptimizerEnd,
        Peak,
        PeakDataloader,
        PeakForward,
        PeakBackward,
        PeakOptimizer,
    ];
    all.iter().map(|&moment| ledger_moment(step, moment, dice)).collect()
}

fn ledger_moment(step: i64, moment: Moment, dice: &mut Dice) -> LedgerMoment {
    let mut bytes = ByCategory::default();
    for (place, category) in Category::ALL.iter().copied().enumerate().filter(|(place, _)| *place < 7) {
        bytes[category] = 4_096 * (moment as i64 + 1) * (place as i64 + 3);
    }
    let at_ns = step * STEP_NS + dice.about(STEP_NS / 10 * (moment as i64 + 1));
    LedgerMoment { step, moment, at_ns, bytes, allocator_bytes: bytes.total() }
}

/// Ended ones, in the order in which they ended.
fn lifetimes(step: i64, dice: &mut Dice) -> Vec<AllocationRow> {
    let first = PARAMETERS + step * LIFETIMES_A_STEP;
    let mut rows: Vec<_> =
        (0..LIFETIMES_A_STEP).map(|place| lifetime(step, place, first + place, dice)).collect();
    rows.sort_by_key(|row| row.freed_ns);
    rows
}

fn lifetime(step: i64, place: i64, id: i64, dice: &mut Dice) -> AllocationRow {
    // What is the same in every step depends on the place alone.
    let mut plan = Dice(place as u64 + 1_000);
    let at_ns =
        step * STEP_NS + STEP_NS * place / LIFETIMES_A_STEP + dice.about(STEP_NS / LIFETIMES_A_STEP / 2);
    let phase = if place < 80 {
        Phase::Forward
    } else if place < 160 {
        Phase::Backward
    } else {
        Phase::Optimizer
    };
    let (category, detail, life) = match (phase, plan.roll(3)) {
        (Phase::Forward, 0) => (Category::Workspace, Some(Detail::ForwardTemporary), STEP_NS / 500),
        (Phase::Forward, _) => (Category::Activation, None, STEP_NS * (170 - place) / 190),
        (Phase::Backward, 0) => (Category::Gradient, None, STEP_NS * (190 - place) / 190),
        (Phase::Backward, _) => (Category::Workspace, Some(Detail::ActivationGradient), STEP_NS / 100),
        _ => (Category::Workspace, Some(Detail::OptimizerTemporary), STEP_NS / 1_000),
    };
    AllocationRow {
        id,
        step: Some(step),
        bytes: 512 << plan.roll(12),
        category,
        detail,
        name: (category == Category::Gradient)
            .then(|| format!("transformer.h.{}.weight_{place}", place % 4).into()),
        phase: Some(phase),
        scope: (phase == Phase::Forward).then(|| format!("h.{}.attn", place / 20).into()),
        op: None,
        thread: plan.roll(2) as i32,
        at_ns,
        freed_ns: Some(at_ns + dice.about(life)),
        freed_step: Some(step),
        freed_phase: Some(if category == Category::Activation { Phase::Backward } else { phase }),
    }
}

/// A small generator of repeatable chance (splitmix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> i64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % sides) as i64
    }

    /// `value`, up to a tenth more or less.
    fn about(&mut self, value: i64) -> i64 {
        value - value / 10 + self.roll(value as u64 / 5 + 1)
    }
}

/// An experiment against a run called `baseline`.
pub fn experiment() -> Vec<ExperimentRow> {
    let row = |result: &str, changed| ExperimentRow {
        recorded_at: instant(0),
        baseline_run_id: "baseline".to_owned(),
        baseline_config: r#"{"batch":8}"#.to_owned(),
        variable: "batch".to_owned(),
        baseline_value: Some("8".to_owned()),
        changed_value: Some("16".to_owned()),
        result: result.to_owned(),
        baseline: 10.0,
        changed,
        change: changed - 10.0,
        change_pct: Some(10.0 * (changed - 10.0)),
        evidence: EvidenceLevel::SmokeTest,
        why: "one run a side".to_owned(),
    };
    vec![row("step_ms", 12.0), row("peak_bytes", 15.0)]
}

/// A cell of a sweep.
pub fn sweep() -> SweepRow {
    SweepRow {
        cell: 1,
        batch: Some(8),
        checkpoint: Some("none".to_owned()),
        accumulate: Some(1),
        dtype: Some("f32".to_owned()),
        attention: Some("sdpa".to_owned()),
        adamw: Some("fused".to_owned()),
        seq: Some(64),
        status: RunStatus::Complete,
        reason: None,
        repeats: 2,
        runs: vec!["a-c01-r1".to_owned(), "a-c01-r2".to_owned()],
        step_ms: Some(10.0),
        step_ms_low: Some(9.5),
        step_ms_high: Some(10.5),
        tokens_per_s: Some(51_200.0),
        tokens_per_s_low: Some(48_762.0),
        tokens_per_s_high: Some(53_895.0),
        peak_bytes: Some(28_964_568),
        activation_bytes: Some(17_895_940),
        recompute_pct: Some(0.0),
        capacity_bytes: Some(64 << 20),
        fits: Some(true),
        pareto: true,
        evidence: Some(EvidenceLevel::SmokeTest),
        why: Some("2 interleaved runs; it takes 5".to_owned()),
    }
}
