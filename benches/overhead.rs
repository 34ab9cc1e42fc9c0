//! What the instruments cost: the same steps bare and instrumented, interleaved in one process.
//!
//! `cargo bench --bench overhead [-- ROUNDS STEPS]`. A round trains two fresh models of the same weights
//! for the same steps: one bare, one under a probe that keeps its account on disk. The instrumented time
//! counts starting the probe, filing every step, writing the dataset and closing it. The figure is the
//! ratio of the medians over all rounds.

use std::error::Error;
use std::time::Instant;

use stepledger::probe::{Options, Probe, scope};
use stepledger::record::Trace;
use stepledger::stats::median;
use stepledger::store::RunFolder;
use stepledger::train::{AdamW, Config, Loader, Model, build, read_text};
use tch::nn::VarStore;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let numbers: Vec<i64> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let rounds = numbers.first().copied().unwrap_or(9);
    let steps = numbers.get(1).copied().unwrap_or(110);
    println!("{rounds} rounds of {steps} steps each way; ratio of medians to the bare step");
    let small = Config { batch: 1, width: 64, ..gpt(steps) };
    for (name, config) in [("default GPT", gpt(steps)), ("small GPT (batch 1, width 64)", small)] {
        compare(name, &config, rounds)?;
    }
    ranges()
}

fn gpt(steps: i64) -> Config {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as i32);
    Config { steps, warmup: 0, threads, ..Config::default() }
}

/// One way to run the steps; returns seconds a step.
type Way = (&'static str, fn(&Config) -> Outcome<f64>);

const WAYS: [Way; 4] = [
    ("bare", bare),
    ("--trace phases", |config| instrumented(config, Trace::Phases)),
    ("--trace allocations", |config| instrumented(config, Trace::Allocations)),
    ("--trace ops", |config| instrumented(config, Trace::Ops)),
];

fn compare(name: &str, config: &Config, rounds: i64) -> Outcome<()> {
    let mut seconds = vec![Vec::new(); WAYS.len()];
    // Once unmeasured: libtorch makes its thread pools and kernel caches.
    bare(config)?;
    for round in 0..rounds {
        // The order turns around, so that a drift of the machine falls on all alike.
        let order: Vec<usize> =
            if round % 2 == 0 { (0..WAYS.len()).collect() } else { (0..WAYS.len()).rev().collect() };
        for way in order {
            seconds[way].push((WAYS[way].1)(config)?);
        }
    }
    println!("\n{name}");
    let base = median(&seconds[0]).unwrap_or(f64::NAN);
    for ((way, _), times) in WAYS.iter().zip(&seconds) {
        let middle = median(times).unwrap_or(f64::NAN);
        println!("  {way:20} {:8.3} ms a step   ratio {:.4}", middle * 1e3, middle / base);
    }
    Ok(())
}

struct Training {
    model: Box<dyn Model>,
    optimizer: AdamW,
    loader: Loader,
    store: VarStore,
}

impl Training {
    fn new(config: &Config) -> Outcome<Self> {
        tch::set_num_threads(config.threads);
        tch::manual_seed(config.seed);
        let store = VarStore::new(config.device);
        let model = build(&store.root(), config)?;
        let optimizer = AdamW::new(config.adamw, store.trainable_variables(), None);
        let loader = Loader::start(read_text(None, config.seq)?, config);
        Ok(Training { model, optimizer, loader, store })
    }
}

fn bare(config: &Config) -> Outcome<f64> {
    let mut training = Training::new(config)?;
    let begin = Instant::now();
    for _ in 0..config.steps {
        training.optimizer.clear_gradients()?;
        let batch = training.loader.next()?;
        let loss = training.model.loss(&batch.tokens, &batch.targets)?;
        loss.f_backward()?;
        training.optimizer.step()?;
        loss.f_double_value(&[])?;
    }
    Ok(begin.elapsed().as_secs_f64() / config.steps as f64)
}

fn instrumented(config: &Config, trace: Trace) -> Outcome<f64> {
    let out = tempfile::tempdir()?;
    let start = Instant::now();
    let mut probe = Probe::start(Options::new("bench").trace(trace), RunFolder::new(out.path()))?;
    let mut elapsed = start.elapsed();
    let mut training = Training::new(config)?;
    let begin = Instant::now();
    probe.watch(&training.store);
    for _ in 0..config.steps {
        let mut step = probe.step();
        training.optimizer.clear_gradients()?;
        let batch = step.dataloader(|| training.loader.next())?;
        let loss = step.forward(|| training.model.loss(&batch.tokens, &batch.targets))?;
        step.backward(|| loss.f_backward())?;
        step.optimizer(|| training.optimizer.step())?;
        let loss = loss.f_double_value(&[])?;
        step.finish(loss, config.tokens_per_step())?;
    }
    probe.finish()?;
    elapsed += begin.elapsed();
    Ok(elapsed.as_secs_f64() / config.steps as f64)
}

/// What a scope costs where no probe runs, and where one does: two clock readings and an NVTX range, which
/// goes nowhere unless a tool is attached.
fn ranges() -> Outcome<()> {
    println!("\na scope without a probe: {:.1} ns", scopes());
    let out = tempfile::tempdir()?;
    let mut probe = Probe::start(Options::new("bench").trace(Trace::Phases), RunFolder::new(out.path()))?;
    let mut step = probe.step();
    let observed = step.forward(scopes);
    step.finish(None, None)?;
    probe.finish()?;
    println!("a scope under a probe, its NVTX range included: {observed:.1} ns");
    Ok(())
}

/// Nanoseconds a scope.
fn scopes() -> f64 {
    const SCOPES: u32 = 1_000_000;
    let begin = Instant::now();
    for _ in 0..SCOPES {
        std::hint::black_box(scope("bench"));
    }
    begin.elapsed().as_secs_f64() * 1e9 / f64::from(SCOPES)
}
