//! What the instruments cost: the same steps bare and instrumented, interleaved in one process.
//!
//! `cargo bench --bench overhead [-- ROUNDS STEPS]`. A round trains a fresh model of the same weights for the same
//! steps each way: bare, and under a probe that keeps its account on disk. Two figures, each a ratio of medians:
//!
//! - `step`: from one step's begin to the next one's, filing included, over the steps of all rounds;
//! - `run`: a whole run over its steps, over all rounds: this counts starting the probe, writing the dataset (which a
//!   thread of its own does, on the same cores) and closing it, too.

use std::error::Error;
use std::time::{Duration, Instant};

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
    println!(
        "{rounds} rounds (small GPT: {}) of {steps} steps each way; ratio of medians to the bare step",
        3 * rounds
    );
    let small = Config { batch: 1, width: 64, ..gpt(steps) };
    // The small one's times scatter more, and take less time.
    for (name, config, times) in [("default GPT", gpt(steps), 1), ("small GPT (batch 1, width 64)", small, 3)]
    {
        compare(name, &config, times * rounds)?;
    }
    ranges()
}

fn gpt(steps: i64) -> Config {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as i32);
    Config { steps, warmup: 0, threads, ..Config::default() }
}

/// What one round took, in seconds.
struct Times {
    steps: Vec<f64>,
    /// The whole run, over its steps.
    run: f64,
}

/// One way to run the steps.
type Way = (&'static str, fn(&Config) -> Outcome<Times>);

const WAYS: [Way; 4] = [
    ("bare", bare),
    ("--trace phases", |config| instrumented(config, Trace::Phases)),
    ("--trace allocations", |config| instrumented(config, Trace::Allocations)),
    ("--trace ops", |config| instrumented(config, Trace::Ops)),
];

fn compare(name: &str, config: &Config, rounds: i64) -> Outcome<()> {
    let mut seconds: Vec<(Vec<f64>, Vec<f64>)> = vec![Default::default(); WAYS.len()];
    // Once unmeasured: libtorch makes its thread pools and kernel caches.
    bare(config)?;
    for round in 0..rounds {
        // The order turns around, so that a drift of the machine falls on all alike.
        let order: Vec<usize> =
            if round % 2 == 0 { (0..WAYS.len()).collect() } else { (0..WAYS.len()).rev().collect() };
        for way in order {
            let times = (WAYS[way].1)(config)?;
            // The first steps of a model make its gradients' and states' memory.
            seconds[way].0.extend(&times.steps[times.steps.len().min(5)..]);
            seconds[way].1.push(times.run);
        }
    }
    println!("\n{name}");
    let middle = |times: &[f64]| median(times).unwrap_or(f64::NAN);
    let (step, run) = (middle(&seconds[0].0), middle(&seconds[0].1));
    for ((way, _), (steps, runs)) in WAYS.iter().zip(&seconds) {
        let (step_ratio, run_ratio) = (middle(steps) / step, middle(runs) / run);
        println!("  {way:20} {:8.3} ms   step {step_ratio:.3}   run {run_ratio:.3}", middle(steps) * 1e3);
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
        let optimizer = AdamW::new(config.adamw, store.trainable_variables(), None)?;
        let loader = Loader::start(read_text(None, config.seq)?, config);
        Ok(Training { model, optimizer, loader, store })
    }
}

fn bare(config: &Config) -> Outcome<Times> {
    let mut training = Training::new(config)?;
    let begin = Instant::now();
    let mut begins = Vec::new();
    for _ in 0..config.steps {
        begins.push(Instant::now());
        training.optimizer.clear_gradients()?;
        let batch = training.loader.next()?;
        let loss = training.model.loss(&batch.tokens, &batch.targets)?;
        loss.f_backward()?;
        training.optimizer.step()?;
        loss.f_double_value(&[])?;
    }
    Ok(times(&begins, begin.elapsed()))
}

fn instrumented(config: &Config, trace: Trace) -> Outcome<Times> {
    let out = tempfile::tempdir()?;
    let start = Instant::now();
    let mut probe = Probe::start(Options::new("bench").trace(trace), RunFolder::new(out.path()))?;
    let started = start.elapsed();
    let mut training = Training::new(config)?;
    let begin = Instant::now();
    probe.watch(&training.store);
    let mut begins = Vec::new();
    for _ in 0..config.steps {
        begins.push(Instant::now());
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
    Ok(times(&begins, started + begin.elapsed()))
}

fn times(begins: &[Instant], whole: Duration) -> Times {
    let steps = begins.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
    Times { steps, run: whole.as_secs_f64() / begins.len() as f64 }
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
