//! What recomputation costs, measured over theory: the default GPT without checkpointing and under each policy,
//! interleaved in one process.
//!
//! `cargo bench --bench checkpoint [-- ROUNDS STEPS]`. `step` is the ratio of medians to the step without
//! checkpointing; `recompute` what recomputation adds to forward and backward (optimizer, data and the rest left out),
//! and beside it what the matrix products alone say.

use std::cell::RefCell;
use std::error::Error;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use stepledger::probe::Options;
use stepledger::record::{
    AllocationRow, BetweenRecords, Phase, RECOMPUTE, RunRow, Sink, SinkError, SpanKind, StepRecords, Trace,
};
use stepledger::stats::median;
use stepledger::train::{CheckpointPolicy, Config, train};

const POLICIES: [CheckpointPolicy; 4] =
    [CheckpointPolicy::None, CheckpointPolicy::Full, CheckpointPolicy::Every(2), CheckpointPolicy::Selective];

fn main() -> Result<(), Box<dyn Error>> {
    let numbers: Vec<i64> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let rounds = numbers.first().copied().unwrap_or(7);
    let steps = numbers.get(1).copied().unwrap_or(30);
    let mut seen: Vec<Seen> = POLICIES.iter().map(|_| Seen::default()).collect();
    for round in 0..rounds {
        // The order turns around, so that a drift of the machine falls on all alike.
        let mut order: Vec<usize> = (0..POLICIES.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for place in order {
            seen[place].extend(run(POLICIES[place], steps)?);
        }
    }
    println!("{rounds} rounds of {steps} steps each way, default GPT\n");
    println!("{:>10}  {:>10}  {:>6}  {:>22}", "policy", "step", "ratio", "recompute / theory");
    let middle = |values: &[f64]| median(values).unwrap_or(f64::NAN);
    let base = middle(&seen[0].step_ms);
    for (policy, seen) in POLICIES.iter().zip(&seen) {
        let (step, share) = (middle(&seen.step_ms), middle(&seen.share));
        let theory = config(*policy, steps).shape().recompute_share();
        let over_theory = match theory > 0.0 {
            true => format!("{:.1} % / {:.1} % = {:.2}", 100.0 * share, 100.0 * theory, share / theory),
            false => "—".to_owned(),
        };
        println!("{policy:>10}  {step:7.2} ms  {:6.3}  {over_theory:>22}", step / base);
    }
    Ok(())
}

fn config(checkpoint: CheckpointPolicy, steps: i64) -> Config {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as i32);
    Config { checkpoint, steps, warmup: 5, threads, ..Config::default() }
}

/// Of each measured step: its time, and recomputation's share of the model's own work.
#[derive(Debug, Default)]
struct Seen {
    step_ms: Vec<f64>,
    share: Vec<f64>,
}

impl Seen {
    fn extend(&mut self, other: Seen) {
        self.step_ms.extend(other.step_ms);
        self.share.extend(other.share);
    }
}

fn run(checkpoint: CheckpointPolicy, steps: i64) -> Result<Seen, Box<dyn Error>> {
    let kept = Rc::new(RefCell::new(Seen::default()));
    let options = Options::new("bench").trace(Trace::Phases).warmup(5);
    train(&config(checkpoint, steps), options, Keeper(kept.clone()), &mut |_| (), &AtomicBool::new(false))?;
    Ok(kept.take())
}

struct Keeper(Rc<RefCell<Seen>>);

impl Sink for Keeper {
    fn begin(&mut self, _run: &RunRow) -> Result<(), SinkError> {
        Ok(())
    }

    fn push(&mut self, records: StepRecords) {
        if records.step.warmup {
            return;
        }
        let of = |wanted: fn(SpanKind, Phase, &str) -> bool| -> f64 {
            let rows = records.phases.iter().filter(|row| wanted(row.kind, row.phase, &row.name));
            rows.map(|row| row.total_ns as f64).sum()
        };
        let model =
            of(|kind, phase, _| kind == SpanKind::Phase && matches!(phase, Phase::Forward | Phase::Backward));
        let again =
            of(|kind, phase, name| kind == SpanKind::Scope && phase == Phase::Backward && name == RECOMPUTE);
        let mut seen = self.0.borrow_mut();
        seen.step_ms.push(records.step.wall_ns as f64 / 1e6);
        seen.share.push(again / (model - again));
    }

    fn push_between(&mut self, _records: BetweenRecords) {}

    fn flush(&mut self, _open: &[AllocationRow]) -> Result<(), SinkError> {
        Ok(())
    }

    fn end(&mut self, _run: &RunRow, _open: &[AllocationRow]) -> Result<(), SinkError> {
        Ok(())
    }
}
