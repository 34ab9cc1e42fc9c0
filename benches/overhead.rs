//! What the instruments cost: the same steps bare and instrumented, interleaved in one process.
//!
//! `cargo bench --bench overhead [-- ROUNDS STEPS]`. Two figures, each a ratio of medians:
//!
//! - `step`: from one step's begin to the next one's, filing included. One model is trained in short turns, bare and
//!   under probes that keep their accounts on disk, so that all ways find the same memory and the same minute of the
//!   machine; beside it, the middle half of the turns' own ratios tells how sure it is;
//! - `run`: a whole run over its steps, a fresh model of the same weights each time: this counts starting the probe,
//!   writing the dataset (which a thread of its own does, on the same cores) and closing it, too.

use std::error::Error;
use std::time::{Duration, Instant};

use stepledger::probe::{Options, Probe, scope};
use stepledger::record::Trace;
use stepledger::stats::{median, quantile};
use stepledger::store::RunFolder;
use stepledger::train::{AdamW, Config, Loader, Model, build, read_text};
use tch::nn::VarStore;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let numbers: Vec<i64> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let rounds = numbers.first().copied().unwrap_or(9);
    let steps = numbers.get(1).copied().unwrap_or(110);
    println!(
        "{rounds} rounds (small GPT: {}): each {TURNS_A_ROUND} turns of {TURN} steps, and a run of {steps}; ratio of \
         medians to bare",
        5 * rounds
    );
    let small = Config { batch: 1, width: 64, ..gpt(steps) };
    // The small one's times scatter more, and take less time.
    for (name, config, times) in [("default GPT", gpt(steps), 1), ("small GPT (batch 1, width 64)", small, 5)]
    {
        compare(name, &config, times * rounds)?;
    }
    ranges()
}

fn gpt(steps: i64) -> Config {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as i32);
    Config { steps, warmup: 0, threads, ..Config::default() }
}

/// How a turn is watched; `None` for not at all.
type Way = (&'static str, Option<Trace>);

const WAYS: [Way; 5] = [
    ("bare", None),
    // What the same ratio says where there is no difference.
    ("bare again", None),
    ("--trace phases", Some(Trace::Phases)),
    ("--trace allocations", Some(Trace::Allocations)),
    ("--trace ops", Some(Trace::Ops)),
];

/// Steps of a turn, and those at its beginning that are not counted: the caches are still full of the turn before.
const TURN: i64 = 25;
const SETTLING: usize = 3;
/// Turns in each way for each round.
const TURNS_A_ROUND: i64 = 4;

fn compare(name: &str, config: &Config, rounds: i64) -> Outcome<()> {
    println!("\n{name}");
    let steps = steps(config, rounds * TURNS_A_ROUND)?;
    let runs = runs(config, rounds)?;
    let bare: Vec<f64> = steps[0].iter().map(|turn| middle(turn)).collect();
    let all = |turns: &[Vec<f64>]| middle(&turns.concat());
    for (place, (way, _)) in WAYS.iter().enumerate() {
        let turns = &steps[place];
        let ratios: Vec<f64> = turns.iter().zip(&bare).map(|(turn, bare)| middle(turn) / bare).collect();
        let [low, high] = [0.25, 0.75].map(|q| quantile(&ratios, q).unwrap_or(f64::NAN));
        println!(
            "  {way:20} {:8.3} ms   step {:.3} ({low:.2} to {high:.2})   run {:.3}",
            all(turns) * 1e3,
            all(turns) / all(&steps[0]),
            middle(&runs[place]) / middle(&runs[0])
        );
    }
    Ok(())
}

fn middle(values: &[f64]) -> f64 {
    median(values).unwrap_or(f64::NAN)
}

/// The ways in the order of a round, shuffled anew for each: a drift of the machine falls on all alike, and so
/// does what a way leaves behind for the next one (a file system still at work, other caches).
fn order(round: i64) -> impl Iterator<Item = usize> {
    stepledger::sweep::order(WAYS.len(), 1, round as u64).into_iter().map(|turn| turn.cell)
}

/// Of each way the turns, of each turn its steps' seconds: all of one model.
fn steps(config: &Config, turns: i64) -> Outcome<Vec<Vec<Vec<f64>>>> {
    let mut training =
        Training::new(&Config { steps: (turns + 1) * TURN * WAYS.len() as i64, ..config.clone() })?;
    let mut steps = vec![Vec::new(); WAYS.len()];
    // Once unmeasured: gradients and states are made, and libtorch's thread pools.
    training.turn(None, TURN)?;
    for turn in 0..turns {
        for way in order(turn) {
            let seconds = training.turn(WAYS[way].1, TURN)?.0;
            steps[way].push(seconds[SETTLING..].to_vec());
        }
    }
    Ok(steps)
}

/// Of each way the runs, each as its seconds a step.
fn runs(config: &Config, rounds: i64) -> Outcome<Vec<Vec<f64>>> {
    let mut runs = vec![Vec::new(); WAYS.len()];
    for round in 0..rounds {
        for way in order(round) {
            let whole = Training::new(config)?.turn(WAYS[way].1, config.steps)?.1;
            runs[way].push(whole.as_secs_f64() / config.steps as f64);
        }
    }
    Ok(runs)
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

impl Training {
    /// Trains so many steps; returns each one's seconds, and what the whole turn took.
    fn turn(&mut self, trace: Option<Trace>, steps: i64) -> Outcome<(Vec<f64>, Duration)> {
        match trace {
            None => self.bare(steps),
            Some(trace) => self.instrumented(trace, steps),
        }
    }

    fn bare(&mut self, steps: i64) -> Outcome<(Vec<f64>, Duration)> {
        let begin = Instant::now();
        let mut begins = Vec::new();
        for _ in 0..steps {
            begins.push(Instant::now());
            self.optimizer.clear_gradients()?;
            let batch = self.loader.next()?;
            let loss = self.model.loss(&batch.tokens, &batch.targets)?;
            loss.f_backward()?;
            self.optimizer.step()?;
            loss.f_double_value(&[])?;
        }
        Ok((seconds(&begins), begin.elapsed()))
    }

    fn instrumented(&mut self, trace: Trace, steps: i64) -> Outcome<(Vec<f64>, Duration)> {
        let out = tempfile::tempdir()?;
        let begin = Instant::now();
        let mut probe = Probe::start(Options::new("bench").trace(trace), RunFolder::new(out.path()))?;
        probe.watch(&self.store);
        let mut begins = Vec::new();
        for _ in 0..steps {
            begins.push(Instant::now());
            let mut step = probe.step();
            self.optimizer.clear_gradients()?;
            let batch = step.dataloader(|| self.loader.next())?;
            let tokens = batch.tokens.numel() as i64;
            let loss = step.forward(|| self.model.loss(&batch.tokens, &batch.targets))?;
            step.backward(|| loss.f_backward())?;
            step.optimizer(|| self.optimizer.step())?;
            let loss = loss.f_double_value(&[])?;
            step.finish(loss, tokens)?;
        }
        probe.finish()?;
        Ok((seconds(&begins), begin.elapsed()))
    }
}

fn seconds(begins: &[Instant]) -> Vec<f64> {
    begins.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect()
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
