//! The flags of `stepledger run` as the configuration that such a run would record.

use serde_json::{Map, Value, json};

use super::contents::contents;
use super::run_args::{ModelArgs, TrainingArgs};

/// A run's configuration, by the names that its `run.parquet` has.
pub fn settings(model: &ModelArgs, training: &TrainingArgs) -> Map<String, Value> {
    let value = json!({
        "model": model.model,
        "layers": model.layers,
        "width": model.width,
        "heads": model.heads(),
        "seq": model.seq,
        "batch": training.batch,
        "accumulate": training.accumulate,
        "dtype": model.dtype,
        "steps": training.steps,
        "warmup": training.warmup,
        "seed": training.seed,
        "attention": model.attention(),
        "checkpoint": model.checkpoint,
        "dropout": model.dropout,
        "zero_grad": training.zero_grad,
        "adamw": training.adamw,
        "state_dtype": training.state_dtype,
        "master_weights": training.master_weights,
        "lr": training.lr,
        "betas": training.betas,
        "eps": training.eps,
        "weight_decay": training.weight_decay,
        "threads": training.threads.unwrap_or_else(all_cores),
        "sync_every": training.sync_every,
        "pin_memory": training.pin_memory,
        "async_copy": training.async_copy,
        "loader_delay_ms": training.loader_delay_ms,
        "data": training.data,
    });
    let mut settings = match value {
        Value::Object(settings) => settings,
        _ => Map::new(),
    };
    // Recorded where they were asked for.
    let sizes = KERNEL_SIZES.into_iter().zip([training.block_size, training.tile_size]);
    settings.extend(sizes.filter_map(|(name, size)| Some((name.to_owned(), size?.into()))));
    settings.extend(contents(training.data.as_deref(), None));
    settings
}

/// The kernel's sizes, which have a default of their own.
pub const KERNEL_SIZES: [&str; 2] = ["block_size", "tile_size"];

/// The threads that a run has unless it is told otherwise.
pub fn all_cores() -> i32 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as i32)
}
