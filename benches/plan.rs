//! How well a plan predicts: lines through some batches against runs at others, for each checkpointing policy.
//!
//! `cargo bench --bench plan [-- ROUNDS STEPS]`. Default GPT, everything interleaved in one process; the numbers are
//! those that `stepledger plan` would give, each at a capacity for which the batch is the largest that fits.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::error::Error;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use stepledger::plan::{Measured, Request, plan};
use stepledger::probe::Options;
use stepledger::record::{
    AllocationRow, BetweenRecords, RunRow, Sink, SinkError, StepPhases, StepRecords, StepRow,
};
use stepledger::stats::median;
use stepledger::train::{CheckpointPolicy, Config, train};

const POLICIES: [CheckpointPolicy; 3] =
    [CheckpointPolicy::None, CheckpointPolicy::Full, CheckpointPolicy::Every(2)];
const FITTED: [i64; 3] = [4, 8, 16];
const HELD_OUT: [i64; 3] = [6, 12, 24];

fn main() -> Result<(), Box<dyn Error>> {
    let numbers: Vec<i64> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let rounds = numbers.first().copied().unwrap_or(7);
    let steps = numbers.get(1).copied().unwrap_or(20);
    let mut runs: BTreeMap<(usize, i64), Vec<Measured>> = BTreeMap::new();
    for round in 0..rounds {
        let mut batches = [FITTED, HELD_OUT].concat();
        // The order turns around, so that a drift of the machine falls on all alike.
        if round % 2 == 1 {
            batches.reverse();
        }
        for (batch, place) in
            batches.iter().flat_map(|batch| (0..POLICIES.len()).map(move |place| (*batch, place)))
        {
            runs.entry((place, batch)).or_default().push(run(POLICIES[place], batch, steps)?);
        }
    }
    println!("{rounds} rounds of {steps} steps, default GPT; fitted at batches {FITTED:?}\n");
    println!(
        "{:>10}  {:>5}  {:>12}  {:>10}  {:>10}  {:>10}",
        "policy", "batch", "peak is off", "predicted", "measured", "step is off"
    );
    for (place, policy) in POLICIES.iter().enumerate() {
        for batch in HELD_OUT {
            report(&runs, place, policy, batch)?;
        }
    }
    Ok(())
}

fn report(
    runs: &BTreeMap<(usize, i64), Vec<Measured>>,
    place: usize,
    policy: &CheckpointPolicy,
    batch: i64,
) -> Result<(), Box<dyn Error>> {
    let seen = &runs[&(place, batch)];
    let fitted: Vec<Measured> = FITTED.iter().flat_map(|&batch| runs[&(place, batch)].clone()).collect();
    let peak = seen.iter().filter_map(|run| run.peak_bytes).max().ok_or("memory was not traced")?;
    let times: Vec<f64> = seen.iter().filter_map(|run| run.step_ms).collect();
    let measured_ms = median(&times).ok_or("no step was measured")?;
    // A byte in a thousand more, so that a peak that is a little too high still fits.
    let config = fitted[0].config.clone();
    let plan = plan(&Request { runs: fitted, ..Request::from_theory(config, peak + peak / 1000) })?;
    let word = policy.to_string();
    let planned = plan.policies.iter().find(|planned| planned.checkpoint.as_deref() == Some(word.as_str()));
    let planned =
        planned.filter(|planned| planned.max_batch == Some(batch)).ok_or("another batch was planned")?;
    let (bytes, ms) =
        planned.predicted_peak_bytes.zip(planned.predicted_step_ms).ok_or("nothing was predicted")?;
    let off = |predicted: f64, measured: f64| format!("{:+.2} %", 100.0 * (predicted - measured) / measured);
    println!(
        "{word:>10}  {batch:>5}  {:>12}  {ms:>7.1} ms  {measured_ms:>7.1} ms  {:>10}",
        off(bytes as f64, peak as f64),
        off(ms, measured_ms)
    );
    Ok(())
}

fn run(checkpoint: CheckpointPolicy, batch: i64, steps: i64) -> Result<Measured, Box<dyn Error>> {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as i32);
    let config = Config { checkpoint, batch, steps, warmup: 3, threads, ..Config::default() };
    let settings = match serde_json::to_value(&config)? {
        serde_json::Value::Object(settings) => settings,
        _ => serde_json::Map::new(),
    };
    let kept = Rc::new(RefCell::new(Vec::new()));
    let options = Options::new(config.model.as_str()).config(settings).warmup(config.warmup);
    let run = train(&config, options, Keeper(kept.clone()), &mut |_| (), &AtomicBool::new(false))?;
    Ok(Measured::of(&run, &kept.take(), &StepPhases::default()))
}

/// Keeps the steps' rows.
struct Keeper(Rc<RefCell<Vec<StepRow>>>);

impl Sink for Keeper {
    fn begin(&mut self, _run: &RunRow) -> Result<(), SinkError> {
        Ok(())
    }

    fn push(&mut self, records: StepRecords) {
        self.0.borrow_mut().push(records.step);
    }

    fn push_between(&mut self, _records: BetweenRecords) {}

    fn flush(&mut self, _open: &[AllocationRow]) -> Result<(), SinkError> {
        Ok(())
    }

    fn end(&mut self, _run: &RunRow, _open: &[AllocationRow]) -> Result<(), SinkError> {
        Ok(())
    }
}
