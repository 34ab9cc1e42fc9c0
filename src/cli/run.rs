//! `stepledger run`: a toy model under instruments.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde_json::{Map, Value};

use super::progress::Progress;
use super::{DONE, Exit, INTERRUPTED, Outcome, show};
use crate::probe::{Options, machine};
use crate::record::{RunRow, RunStatus, Trace};
use crate::report::summarize;
use crate::store::{Dataset, RunFolder};
use crate::train::{AdamWConfig, Attention, Config, Files, ModelKind, TrainError, device, train};

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub struct RunArgs {
    #[command(flatten, next_help_heading = "Model")]
    model: ModelArgs,
    #[command(flatten, next_help_heading = "Training")]
    training: TrainingArgs,
    #[command(flatten, next_help_heading = "Weights and batches")]
    files: FileArgs,
    #[command(flatten, next_help_heading = "Account")]
    account: AccountArgs,
}

#[derive(Debug, Args)]
struct ModelArgs {
    /// The model: a GPT in GPT-2's layout, or a plain stack of Linear and GELU
    #[arg(long, value_enum, default_value_t = ModelName::Gpt)]
    model: ModelName,
    /// Blocks of the GPT, or layers of the MLP
    #[arg(long, value_name = "N", default_value_t = 4)]
    layers: i64,
    /// Width of the residual stream
    #[arg(long, value_name = "N", default_value_t = 128)]
    width: i64,
    /// Attention heads; must divide the width
    #[arg(long, value_name = "N", default_value_t = 4)]
    heads: i64,
    /// Positions in a sequence
    #[arg(long, value_name = "N", default_value_t = 64)]
    seq: i64,
    /// Attention by libtorch's fused kernel, or step by step
    #[arg(long, value_enum, default_value_t = AttentionName::Sdpa)]
    attention: AttentionName,
}

#[derive(Debug, Args)]
struct TrainingArgs {
    /// Sequences in a batch
    #[arg(long, value_name = "N", default_value_t = 8)]
    batch: i64,
    /// Measured steps
    #[arg(long, value_name = "N", default_value_t = 100)]
    steps: i64,
    /// Steps before the measured ones; recorded, but in no statistic
    #[arg(long, value_name = "N", default_value_t = 10)]
    warmup: i64,
    /// Of the initial weights and of the batches
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: i64,
    /// AdamW's learning rate
    #[arg(long, value_name = "X", default_value_t = 1e-3)]
    lr: f64,
    /// AdamW's two decay rates
    #[arg(long, value_name = "B1,B2", value_delimiter = ',', num_args = 1, default_value = "0.9,0.95")]
    betas: Vec<f64>,
    /// Added to AdamW's denominator
    #[arg(long, value_name = "X", default_value_t = 1e-8)]
    eps: f64,
    /// Decoupled weight decay, of all parameters alike
    #[arg(long, value_name = "X", default_value_t = 0.1)]
    weight_decay: f64,
    /// Threads that libtorch computes with [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<i32>,
    /// cpu, cuda or cuda:N; there is no falling back
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
    /// Text to train on, any file, read as bytes [default: the sums that come with the program]
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Slow the loader down by this much a batch, to see what a slow input looks like
    #[arg(long, value_name = "N", default_value_t = 0)]
    loader_delay_ms: u64,
}

#[derive(Debug, Args)]
struct FileArgs {
    /// Load the initial weights, by name
    #[arg(long, value_name = "FILE.safetensors")]
    init: Option<PathBuf>,
    /// Write the weights as they are before the first step
    #[arg(long, value_name = "FILE.safetensors")]
    save_init: Option<PathBuf>,
    /// Write the weights as they are after the last step
    #[arg(long, value_name = "FILE.safetensors")]
    save: Option<PathBuf>,
    /// Write the tokens used: int64 `tokens` [steps, batch, seq + 1], warm-up included
    #[arg(long, value_name = "FILE.safetensors")]
    save_batches: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct AccountArgs {
    /// The folder of runs; this one gets a folder of its own in it
    #[arg(long, value_name = "DIR", default_value = "runs")]
    out: PathBuf,
    /// How deep to look: times only, or every allocation too
    #[arg(long, value_enum, default_value_t = TraceName::Allocations)]
    trace: TraceName,
    /// Make the records safe every N steps: what a crash can cost at most
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    flush_every: u32,
    /// Print the account as one JSON object, as `show --json` does
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ModelName {
    Gpt,
    Mlp,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum AttentionName {
    Sdpa,
    Math,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum TraceName {
    Phases,
    Allocations,
}

/// Trains, keeps the account, and prints it.
pub fn run(args: &RunArgs) -> Outcome {
    let config = config(args).map_err(Exit::input)?;
    let folder = RunFolder::new(&args.account.out);
    let mut progress = Progress::new(config.total_steps() as u64, args.account.quiet);
    let stop = stop_flag()?;
    let outcome = train(&config, options(args, &config)?, folder, &mut |step| progress.step(step), &stop);
    progress.finish();
    let run = outcome.map_err(|error| if error.is_input() { Exit::input(error) } else { error.into() })?;
    print_account(args, &run)?;
    Ok(if run.status == RunStatus::Interrupted { INTERRUPTED } else { DONE })
}

fn print_account(args: &RunArgs, run: &RunRow) -> anyhow::Result<()> {
    let dir = args.account.out.join(&run.run_id);
    let account = show::read(&Dataset::open(&dir)?)?;
    show::print(&summarize(&account, None)?, args.account.json)?;
    if !args.account.quiet {
        eprintln!("kept in {}", dir.display());
    }
    Ok(())
}

fn config(args: &RunArgs) -> Result<Config, TrainError> {
    let RunArgs { model, training, files, .. } = args;
    let config = Config {
        model: match model.model {
            ModelName::Gpt => ModelKind::Gpt,
            ModelName::Mlp => ModelKind::Mlp,
        },
        layers: model.layers,
        width: model.width,
        heads: model.heads,
        seq: model.seq,
        batch: training.batch,
        steps: training.steps,
        warmup: training.warmup,
        seed: training.seed,
        attention: match model.attention {
            AttentionName::Sdpa => Attention::Sdpa,
            AttentionName::Math => Attention::Math,
        },
        adamw: AdamWConfig {
            lr: training.lr,
            betas: betas(&training.betas)?,
            eps: training.eps,
            weight_decay: training.weight_decay,
        },
        threads: training.threads.unwrap_or_else(all_cores),
        loader_delay_ms: training.loader_delay_ms,
        data: training.data.clone(),
        device: device(&training.device)?,
        files: Files {
            init: files.init.clone(),
            save_init: files.save_init.clone(),
            save: files.save.clone(),
            save_batches: files.save_batches.clone(),
        },
    };
    config.check(machine().memory_bytes)?;
    Ok(config)
}

fn betas(values: &[f64]) -> Result<(f64, f64), TrainError> {
    match values {
        &[beta1, beta2] => Ok((beta1, beta2)),
        _ => Err(TrainError::Flag {
            flag: "--betas",
            value: format!("{values:?}"),
            allowed: "allowed: two numbers, such as 0.9,0.95".to_owned(),
        }),
    }
}

fn all_cores() -> i32 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as i32)
}

fn options(args: &RunArgs, config: &Config) -> anyhow::Result<Options> {
    let mut settings = match serde_json::to_value(config)? {
        Value::Object(settings) => settings,
        _ => Map::new(),
    };
    settings.insert("init".into(), serde_json::to_value(&config.files.init)?);
    let trace = match args.account.trace {
        TraceName::Phases => Trace::Phases,
        TraceName::Allocations => Trace::Allocations,
    };
    Ok(Options::new(config.model.as_str())
        .config(settings)
        .trace(trace)
        .warmup(config.warmup)
        .flush_every(args.account.flush_every as usize)
        .device(config.device))
}

/// Becomes true at the first Ctrl-C (or SIGTERM); the second one ends the process at once.
fn stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // In this order: the first signal still finds the flag down.
        signal_hook::flag::register_conditional_shutdown(signal, i32::from(INTERRUPTED), stop.clone())
            .and_then(|_| signal_hook::flag::register(signal, stop.clone()))
            .context("Ctrl-C cannot be caught")?;
    }
    Ok(stop)
}
