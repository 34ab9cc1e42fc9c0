//! What a run of the toy models is told to do, and whether that can be done.

use std::path::PathBuf;

use serde::Serialize;
use tch::Device;

use super::error::TrainError;
use crate::theory::{
    AdamWKind, Architecture, Attention, Checkpoint, Float, ModelKind, Precision, Setup, Shape, Training,
    ZeroGrad,
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
    /// The loss is read in every so manieth measured step, and in the first, the last, and the last of the warm-up: on a GPU
    /// the host waits then, so that the measured steps are whole cycles from one wait to the next.
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
        step == 0 || step + 1 == self.total_steps() || (step + 1 - self.warmup) % self.sync_every == 0
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

    /// What can be judged of it without libtorch.
    pub fn setup(&self) -> Setup {
        let AdamWConfig { lr, betas, eps, weight_decay, .. } = self.adamw;
        Setup {
            shape: self.shape(),
            heads: self.heads,
            steps: self.steps,
            warmup: self.warmup,
            sync_every: self.sync_every,
            dropout: self.dropout,
            lr,
            betas,
            eps,
            weight_decay,
            pin_memory: self.copy.pin_memory,
            async_copy: self.copy.async_copy,
            on_cpu: self.device == Device::Cpu,
        }
    }

    /// Refuses what cannot be run, naming the flag, its value and what is allowed.
    pub fn check(&self, memory_bytes: Option<i64>) -> Result<(), TrainError> {
        self.adamw.tiling()?;
        Ok(self.setup().check(memory_bytes)?)
    }
}
