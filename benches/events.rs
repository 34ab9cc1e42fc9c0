//! What one allocator event costs, from 10³ to 10⁶ events a step: in the hook while the step runs, and in the
//! ledger after it.
//!
//! `cargo bench --bench events`. Each size makes and drops small tensors in one forward, bare and under a
//! probe in turn; the hook's cost is the difference of the medians, the ledger's is the observer's own time.

use std::cell::RefCell;
use std::error::Error;
use std::rc::Rc;
use std::time::Instant;

use stepledger::probe::{BYTES_PER_EVENT, Options, Probe};
use stepledger::record::{AllocationRow, BetweenRecords, RunRow, Sink, SinkError, StepRecords, StepRow};
use stepledger::stats::median;
use tch::{Device, Kind, Tensor};

const ROUNDS: usize = 7;

fn main() -> Result<(), Box<dyn Error>> {
    println!("ns an event, {ROUNDS} rounds; at most {BYTES_PER_EVENT} bytes of memory an unread event\n");
    println!("{:>10}  {:>8}  {:>8}  {:>8}", "events", "hook", "ledger", "dropped");
    for events in [1_000, 10_000, 100_000, 1_000_000] {
        let (mut bare, mut hooked, mut filed, mut dropped) = (vec![], vec![], vec![], 0);
        for _ in 0..ROUNDS {
            bare.push(work(events) / events as f64);
            let (seconds, observer, lost) = observed(events)?;
            hooked.push(seconds / events as f64);
            filed.push(observer / events as f64);
            dropped += lost;
        }
        let middle = |values: &[f64]| median(values).unwrap_or(f64::NAN);
        let hook = middle(&hooked) - middle(&bare);
        println!("{events:>10}  {:>8.1}  {:>8.1}  {dropped:>8}", hook * 1e9, middle(&filed) * 1e9);
    }
    Ok(())
}

/// Makes and drops `events / 2` tensors; returns the seconds it took.
fn work(events: u64) -> f64 {
    let begin = Instant::now();
    for _ in 0..events / 2 {
        let tensor = Tensor::empty([16], (Kind::Float, Device::Cpu));
        std::hint::black_box(&tensor);
    }
    begin.elapsed().as_secs_f64()
}

/// The same in the last two thirds of several equal steps under a probe: seconds a step, the observer's seconds
/// a step, events dropped. A loop has many steps: the observer's memory is there after the first, and small ones are
/// filed several at a time.
fn observed(events: u64) -> Result<(f64, f64, i64), Box<dyn Error>> {
    let third = 1 + 4096 / events as usize;
    let seen = Rc::new(RefCell::new(Vec::new()));
    let mut probe = Probe::start(Options::new("bench"), Counter { steps: seen.clone(), spent: None })?;
    let mut seconds = Vec::new();
    for _ in 0..3 * third {
        let mut step = probe.step();
        seconds.push(step.forward(|| work(events)));
        step.finish(None, None)?;
    }
    probe.finish()?;
    let observer_ns: i64 = seen.borrow()[third..].iter().map(|step| step.observer_ns).sum();
    let dropped = seen.borrow().iter().map(|step| step.dropped_events).sum();
    let steps = 2.0 * third as f64;
    Ok((seconds[third..].iter().sum::<f64>() / steps, observer_ns as f64 / 1e9 / steps, dropped))
}

/// Keeps the steps' rows alone, and gives the room of the others back, as a run's folder does.
struct Counter {
    steps: Rc<RefCell<Vec<StepRow>>>,
    spent: Option<Vec<AllocationRow>>,
}

impl Sink for Counter {
    fn begin(&mut self, _run: &RunRow) -> Result<(), SinkError> {
        Ok(())
    }

    fn push(&mut self, records: StepRecords) {
        self.steps.borrow_mut().push(records.step);
        self.spent = Some(records.ended);
    }

    fn spent(&mut self) -> Option<Vec<AllocationRow>> {
        self.spent.take()
    }

    fn push_between(&mut self, _records: BetweenRecords) {}

    fn flush(&mut self, _open: &[AllocationRow]) -> Result<(), SinkError> {
        Ok(())
    }

    fn end(&mut self, _run: &RunRow, _open: &[AllocationRow]) -> Result<(), SinkError> {
        Ok(())
    }
}
