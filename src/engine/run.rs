//! `stepledger run`: a toy model under instruments.

use serde_json::{Map, Value};
use stepledger_core::cli::{
    DONE, Exit, INTERRUPTED, OUT_OF_MEMORY, Outcome, RunArgs, all_cores, contents, note, print, read,
    stop_flag,
};

use super::progress::Progress;
use super::reference::reference_rates;
use crate::probe::{Options, check_libtorch, machine};
use crate::record::{RunRow, RunStatus};
use crate::report::{Asked, summarize};
use crate::rules::Lang;
use crate::store::{Dataset, RunFolder};
use crate::train::{AdamWConfig, Config, CopyConfig, Files, TrainError, device, train};

/// Trains, keeps the account, and prints it.
pub fn run(args: &RunArgs) -> Outcome {
    check_libtorch().map_err(Exit::input)?;
    let config = config(args).map_err(Exit::input)?;
    many_threads(config.threads, all_cores()).into_iter().for_each(note);
    let folder = RunFolder::new(&args.account.out);
    let mut progress = Progress::new(config.total_steps() as u64, args.account.quiet);
    let stop = stop_flag()?;
    let outcome = train(&config, options(args, &config)?, folder, &mut |step| progress.step(step), &stop);
    progress.finish();
    let run = outcome.map_err(|error| told(error, args))?;
    print_account(args, &run)?;
    Ok(match run.status {
        RunStatus::Interrupted => INTERRUPTED,
        RunStatus::OutOfMemory => OUT_OF_MEMORY,
        _ => DONE,
    })
}

/// Threads without a core of their own wait for each other at the end of every operation.
fn many_threads(threads: i32, cores: i32) -> Option<String> {
    (threads > cores).then(|| {
        format!(
            "note: --threads {threads} are more than the {cores} cores there are, and may take many times as long; \
             leave it out for one a core"
        )
    })
}

/// Bad input ends with its own exit code; for the rest, what was kept until then is pointed to.
fn told(error: TrainError, args: &RunArgs) -> anyhow::Error {
    match error.is_input() {
        true => Exit::input(error),
        false => anyhow::anyhow!(
            "{error}; what was recorded before, if anything, can be read with `stepledger show --out {}`",
            args.account.out.display()
        ),
    }
}

fn print_account(args: &RunArgs, run: &RunRow) -> anyhow::Result<()> {
    let dir = args.account.out.join(&run.run_id);
    let account = read(&Dataset::open(&dir)?, None)?;
    let asked = Asked { capacity_mb: args.account.capacity_mb, lang: Lang::En };
    print(&summarize(&account, None)?, &asked, args.account.json)?;
    if !args.account.quiet {
        note(format_args!("kept in {}", dir.display()));
    }
    Ok(())
}

fn config(args: &RunArgs) -> Result<Config, TrainError> {
    let RunArgs { model, training, files, .. } = args;
    let config = Config {
        model: model.model,
        layers: model.layers,
        width: model.width,
        heads: model.heads(),
        seq: model.seq,
        batch: training.batch,
        accumulate: training.accumulate,
        steps: training.steps,
        warmup: training.warmup,
        seed: training.seed,
        attention: model.attention(),
        checkpoint: model.checkpoint,
        dropout: model.dropout,
        precision: model.dtype,
        zero_grad: training.zero_grad,
        adamw: AdamWConfig {
            kind: training.adamw,
            state_dtype: training.state_dtype,
            master_weights: training.master_weights,
            block_size: training.block_size,
            tile_size: training.tile_size,
            lr: training.lr,
            betas: training.two_betas()?,
            eps: training.eps,
            weight_decay: training.weight_decay,
        },
        threads: training.threads.unwrap_or_else(all_cores),
        sync_every: training.sync_every,
        copy: CopyConfig { pin_memory: training.pin_memory, async_copy: training.async_copy },
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
    config.adamw.tiling()?;
    args.check(machine().memory_bytes)?;
    Ok(config)
}

fn options(args: &RunArgs, config: &Config) -> anyhow::Result<Options> {
    let mut settings = match serde_json::to_value(config)? {
        Value::Object(settings) => settings,
        _ => Map::new(),
    };
    settings.insert("init".into(), serde_json::to_value(&config.files.init)?);
    settings.extend(contents(config.data.as_deref(), config.files.init.as_deref()));
    Ok(Options::new(config.model.as_str())
        .run_id(args.account.run_id.clone())
        .config(settings)
        .trace(args.account.trace)
        .warmup(config.warmup)
        .flush_every(args.account.flush_every as usize)
        .device(config.device)
        .reference_rates(reference_rates(&args.training.device, config.threads))
        .limit(args.account.limit_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_threads_than_cores_are_warned_of() {
        assert!(many_threads(1000, 2).is_some_and(|told| told.contains("1000 are more than the 2 cores")));
        assert_eq!((many_threads(2, 2), many_threads(1, 2)), (None, None));
    }
}
