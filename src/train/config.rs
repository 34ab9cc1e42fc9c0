//! What a run of the toy models is told to do, and whether that can be done.

use std::path::PathBuf;

use serde::Serialize;
use tch::Device;

use super::error::TrainError;
use super::kernel::needs_gpu;
use crate::theory::{
    AdamWKind, Architecture, Attention, Checkpoint, Float, ModelKind, Precision, Shape, Training, ZeroGrad,
};

/// AdamW's numbers, and how it is computed and kept.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AdamWConfig {
    #[serde(rename = "adamw")]
    pub kind: AdamWKind,
    /// `None`: the type of what is updated, the parameters or the master weights.
    pub state_dtype: Option<Float>,
    /// Keeps an f32 copy of half-precision parameters, which is what is updated.
    pub master_weights: bool,
    /// Threads a block of the kernel; `None`: its default, or no kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_size: Option<u32>,
    /// Elements a thread of the kernel; `None`: its default, or no kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tile_size: Option<u32>,
    pub lr: f64,
    pub betas: (f64, f64),
    pub eps: f64,
    pub weight_decay: f64,
}

/// How batches get to a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct CopyConfig {
    /// From memory that the system does not page, which the GPU can read by itself.
    pub pin_memory: bool,
    /// Without waiting for the copy, which takes pinned memory to make a difference.
    pub async_copy: bool,
}

/// One run of a toy model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Config {
    pub model: ModelKind,
    pub layers: i64,
    pub width: i64,
    pub heads: i64,
    pub seq: i64,
    pub batch: i64,
    /// Micro-batches of `batch` sequences whose gradients make one step.
    pub accumulate: i64,
    #[serde(rename = "dtype")]
    pub precision: Precision,
    /// Measured steps; the warm-up ones come before.
    pub steps: i64,
    pub warmup: i64,
    pub seed: i64,
    pub attention: Attention,
    pub checkpoint: Checkpoint,
    /// The share of numbers that dropout sets to 0: in the embedding, in attention and in both residuals.
    pub dropout: f64,
    pub zero_grad: ZeroGrad,
    #[serde(flatten)]
    pub adamw: AdamWConfig,
    pub threads: i32,
    /// The loss is read every so many steps, and after the first and the last.
    pub sync_every: i64,
    #[serde(flatten)]
    pub copy: CopyConfig,
    pub loader_delay_ms: u64,
    /// `None`: the text that comes with the program.
    pub data: Option<PathBuf>,
    #[serde(skip)]
    pub device: Device,
    #[serde(skip)]
    pub files: Files,
}

/// What is read and written beside the records.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Files {
    pub init: Option<PathBuf>,
    pub save_init: Option<PathBuf>,
    pub save: Option<PathBuf>,
    pub save_batches: Option<PathBuf>,
}

impl Default for Config {
    /// What `stepledger run` does without flags, on two threads.
    fn default() -> Self {
        Config {
            model: ModelKind::Gpt,
            layers: 4,
            width: 128,
            heads: 4,
            seq: 64,
            batch: 8,
            accumulate: 1,
            precision: Precision::F32,
            steps: 100,
            warmup: 10,
            seed: 1,
            attention: Attention::Sdpa,
            checkpoint: Checkpoint::None,
            dropout: 0.0,
            zero_grad: ZeroGrad::None,
            adamw: AdamWConfig::default(),
            threads: 2,
            sync_every: 1,
            copy: CopyConfig::default(),
            loader_delay_ms: 0,
            data: None,
            device: Device::Cpu,
            files: Files::default(),
        }
    }
}

impl Default for AdamWConfig {
    fn default() -> Self {
        AdamWConfig {
            kind: AdamWKind::Fused,
            state_dtype: None,
            master_weights: false,
            block_size: None,
            tile_size: None,
            lr: 1e-3,
            betas: (0.9, 0.95),
            eps: 1e-8,
            weight_decay: 0.1,
        }
    }
}

impl Config {
    /// Steps in all, warm-up included.
    pub fn total_steps(&self) -> i64 {
        self.warmup + self.steps
    }

    /// Tokens that one step trains on.
    pub fn tokens_per_step(&self) -> i64 {
        self.batch * self.seq * self.accumulate
    }

    /// Whether the loss of this step is read.
    pub fn reads_loss(&self, step: i64) -> bool {
        step % self.sync_every == 0 || step + 1 == self.total_steps()
    }

    /// The sizes that theory goes by.
    pub fn shape(&self) -> Shape {
        let Config { layers, width, seq, batch, heads, attention, precision, .. } = *self;
        let architecture = match self.model {
            ModelKind::Gpt => Architecture::Gpt { heads, attention },
            ModelKind::Mlp => Architecture::Mlp,
        };
        let training = Training {
            adamw: self.adamw.kind,
            state: self.adamw.state_dtype,
            master_weights: self.adamw.master_weights,
            accumulate: self.accumulate,
            zero_grad: self.zero_grad,
            threads: i64::from(self.threads),
        };
        Shape { architecture, layers, width, seq, batch, precision, checkpoint: self.checkpoint, training }
    }

    /// Refuses what cannot be run, naming the flag, its value and what is allowed.
    pub fn check(&self, memory_bytes: Option<i64>) -> Result<(), TrainError> {
        for (flag, value) in self.sizes() {
            check_range(flag, value, 1, MAX_SIZE)?;
        }
        check_range("--layers", self.layers, 1, MAX_LAYERS)?;
        check_range("--warmup", self.warmup, 0, MAX_SIZE)?;
        check_range("--threads", i64::from(self.threads), 1, 1024)?;
        if self.model == ModelKind::Gpt && self.width % self.heads != 0 {
            let Config { width, heads, .. } = self;
            return Err(TrainError::flag(
                "--heads",
                heads,
                format!("--width {width} must be a multiple of it"),
            ));
        }
        check_range("--sync-every", self.sync_every, 1, MAX_SIZE)?;
        self.copy.check(self.device)?;
        self.check_checkpoint()?;
        if !(0.0..1.0).contains(&self.dropout) {
            return Err(TrainError::flag("--dropout", self.dropout, "allowed: from 0 to below 1".to_owned()));
        }
        self.adamw.check(self.precision)?;
        if self.adamw.kind == AdamWKind::Kernel && self.device == Device::Cpu {
            return Err(needs_gpu());
        }
        self.check_memory(memory_bytes)
    }

    fn check_checkpoint(&self) -> Result<(), TrainError> {
        let bad = |allowed: String| Err(TrainError::flag("--checkpoint", self.checkpoint, allowed));
        match self.checkpoint {
            Checkpoint::Every(blocks) if !(1..=self.layers).contains(&blocks) => {
                bad(format!("allowed: every:1 to every:{}, the number of --layers", self.layers))
            }
            Checkpoint::Selective if self.model == ModelKind::Mlp => bad(
                "recomputes attention's core, and the MLP has no attention; allowed with --model mlp: none, full, every:K"
                    .to_owned(),
            ),
            _ => Ok(()),
        }
    }

    fn sizes(&self) -> [(&'static str, i64); 6] {
        [
            ("--width", self.width),
            ("--heads", self.heads),
            ("--seq", self.seq),
            ("--batch", self.batch),
            ("--accumulate", self.accumulate),
            ("--steps", self.steps),
        ]
    }

    fn check_memory(&self, memory_bytes: Option<i64>) -> Result<(), TrainError> {
        let floor_bytes = self.shape().floor_bytes();
        match memory_bytes {
            Some(memory_bytes) if self.device == Device::Cpu && floor_bytes > memory_bytes => {
                Err(TrainError::TooLarge { floor_bytes, memory_bytes })
            }
            _ => Ok(()),
        }
    }
}

/// Larger sizes are slips of the finger, and their products would not fit 64 bits.
const MAX_SIZE: i64 = 1 << 24;

/// Each layer is a dozen tensors, whose bookkeeping outweighs what a tiny layer holds.
const MAX_LAYERS: i64 = 4096;

fn check_range(flag: &'static str, value: i64, low: i64, high: i64) -> Result<(), TrainError> {
    match (low..=high).contains(&value) {
        true => Ok(()),
        false => Err(TrainError::flag(flag, value, format!("allowed: {low} to {high}"))),
    }
}

impl CopyConfig {
    fn check(self, device: Device) -> Result<(), TrainError> {
        let set = [("--pin-memory", self.pin_memory), ("--async-copy", self.async_copy)];
        match set.into_iter().find(|(_, on)| *on && device == Device::Cpu) {
            None => Ok(()),
            Some((flag, _)) => Err(TrainError::flag(
                flag,
                "with --device cpu",
                "nothing is copied there; use --device cuda, or leave it out".to_owned(),
            )),
        }
    }
}

impl AdamWConfig {
    fn check(&self, precision: Precision) -> Result<(), TrainError> {
        self.check_types(precision)?;
        self.tiling()?;
        let positive = |flag, value: f64| match value.is_finite() && value > 0.0 {
            true => Ok(()),
            false => Err(TrainError::flag(flag, value, "allowed: any number above 0".to_owned())),
        };
        positive("--lr", self.lr)?;
        positive("--eps", self.eps)?;
        if !(self.weight_decay.is_finite() && self.weight_decay >= 0.0) {
            return Err(TrainError::flag(
                "--weight-decay",
                self.weight_decay,
                "allowed: 0 or more".to_owned(),
            ));
        }
        for beta in [self.betas.0, self.betas.1] {
            if !(0.0..1.0).contains(&beta) {
                return Err(TrainError::flag("--betas", beta, "allowed: from 0 to below 1".to_owned()));
            }
        }
        Ok(())
    }

    fn check_types(&self, precision: Precision) -> Result<(), TrainError> {
        let in_half = precision == Precision::Bf16;
        if self.master_weights && !in_half {
            let value = format!("with --dtype {precision}");
            let why = "needs --dtype bf16; these parameters are f32 themselves".to_owned();
            return Err(TrainError::flag("--master-weights", value, why));
        }
        match self.state_dtype {
            Some(Float::Bf16) if !in_half || self.master_weights => Err(TrainError::flag(
                "--state-dtype",
                Float::Bf16,
                "needs --dtype bf16 without --master-weights, so that what is updated is bf16 too".to_owned(),
            )),
            _ => Ok(()),
        }
    }
}
