//! What the instruments cost on a GPU: the same steps bare and under a probe, interleaved.

use std::time::Instant;

use stepledger::probe::{Options, Probe};
use stepledger::record::Trace;
use stepledger::stats::median;
use stepledger::store::RunFolder;
use stepledger::train::{AdamW, Config, Loader, Model, build, read_text};
use tch::Device;
use tch::nn::VarStore;

use super::Outcome;
use super::row::Row;

/// A model's first steps make its gradients, its states and the allocator's cache.
const UNCOUNTED: usize = 5;

pub fn overhead(device: Device) -> Outcome<Vec<Row>> {
    // A rehearsal shows that it runs, and takes no longer than that needs.
    let (steps, rounds) = if device == Device::Cpu { (UNCOUNTED as i64 + 3, 1) } else { (60, 3) };
    let small = Config { device, steps, ..Config::default() };
    let mut rows = vec![ratio("overhead: default GPT", &small, rounds, false, 1.2)?];
    rows.push(match device {
        Device::Cuda(_) => ratio("overhead: GPT of 200M parameters, bf16", &large(device), 2, true, 1.05)?,
        _ => Row::not_run("overhead: GPT of 200M parameters, bf16", "for a GPU"),
    });
    Ok(rows)
}

fn large(device: Device) -> Config {
    Config { device, layers: 16, width: 1024, heads: 16, seq: 256, batch: 8, steps: 25, ..Config::default() }
}

/// Medians of instrumented to bare steps, each with what is done between the steps.
fn ratio(check: &str, config: &Config, rounds: usize, bf16: bool, most: f64) -> Outcome<Row> {
    let (mut bare_s, mut observed_s) = (Vec::new(), Vec::new());
    bare(config, bf16)?;
    for _ in 0..rounds {
        bare_s.extend(bare(config, bf16)?);
        observed_s.extend(observed(config, bf16)?);
    }
    let middle = |times: &[f64]| median(times).unwrap_or(f64::NAN);
    let (bare, observed) = (middle(&bare_s), middle(&observed_s));
    let got = format!("{:.3} ({:.2} ms bare)", observed / bare, bare * 1e3);
    Ok(Row::timed(config.device, check, format!("at most {most}"), got, observed / bare <= most))
}

struct Training {
    model: Box<dyn Model>,
    optimizer: AdamW,
    loader: Loader,
    store: VarStore,
}

impl Training {
    fn new(config: &Config, bf16: bool) -> Outcome<Self> {
        tch::manual_seed(config.seed);
        let mut store = VarStore::new(config.device);
        let model = build(&store.root(), config)?;
        if bf16 {
            store.bfloat16();
        }
        let optimizer = AdamW::new(config.adamw, store.trainable_variables(), None)?;
        let loader = Loader::start(read_text(None, config.seq)?, config);
        Ok(Training { model, optimizer, loader, store })
    }
}

/// Seconds from one step's begin to the next one's.
fn bare(config: &Config, bf16: bool) -> Outcome<Vec<f64>> {
    let mut training = Training::new(config, bf16)?;
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
    Ok(between(&begins))
}

fn observed(config: &Config, bf16: bool) -> Outcome<Vec<f64>> {
    let out = tempfile::tempdir()?;
    let options = Options::new("device_checks").trace(Trace::Allocations).device(config.device);
    let mut probe = Probe::start(options, RunFolder::new(out.path()))?;
    let mut training = Training::new(config, bf16)?;
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
        step.finish(loss.f_double_value(&[])?, config.tokens_per_step())?;
    }
    probe.finish()?;
    Ok(between(&begins))
}

fn between(begins: &[Instant]) -> Vec<f64> {
    let begins = &begins[UNCOUNTED.min(begins.len())..];
    begins.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect()
}
