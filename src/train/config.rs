//! What a run of the toy models is told to do, and whether that can be done.

use std::path::PathBuf;

use serde::Serialize;
use tch::Device;

use super::error::TrainError;
use crate::theory::{Architecture, Attention, Precision, Shape, Training};

/// Which toy model to train.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelKind {
    /// GPT-2's layout at any size.
    Gpt,
    /// A stack of Linear and GELU, applied to each position alone.
    Mlp,
}

impl ModelKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            ModelKind::Gpt => "gpt",
            ModelKind::Mlp => "mlp",
        }
    }
}

/// AdamW's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AdamWConfig {
    pub lr: f64,
    pub betas: (f64, f64),
    pub eps: f64,
    pub weight_decay: f64,
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
    /// Measured steps; the warm-up ones come before.
    pub steps: i64,
    pub warmup: i64,
    pub seed: i64,
    pub attention: Attention,
    #[serde(flatten)]
    pub adamw: AdamWConfig,
    pub threads: i32,
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
            steps: 100,
            warmup: 10,
            seed: 1,
            attention: Attention::Sdpa,
            adamw: AdamWConfig::default(),
            threads: 2,
            loader_delay_ms: 0,
            data: None,
            device: Device::Cpu,
            files: Files::default(),
        }
    }
}

impl Default for AdamWConfig {
    fn default() -> Self {
        AdamWConfig { lr: 1e-3, betas: (0.9, 0.95), eps: 1e-8, weight_decay: 0.1 }
    }
}

impl Config {
    /// Steps in all, warm-up included.
    pub fn total_steps(&self) -> i64 {
        self.warmup + self.steps
    }

    /// Tokens that one step trains on.
    pub fn tokens_per_step(&self) -> i64 {
        self.batch * self.seq
    }

    /// The sizes that theory goes by.
    pub fn shape(&self) -> Shape {
        let Config { layers, width, seq, batch, heads, attention, threads, .. } = *self;
        let architecture = match self.model {
            ModelKind::Gpt => Architecture::Gpt { heads, attention },
            ModelKind::Mlp => Architecture::Mlp,
        };
        let training = Training { threads: i64::from(threads), ..Training::default() };
        Shape { architecture, layers, width, seq, batch, precision: Precision::F32, training }
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
        self.adamw.check()?;
        self.check_memory(memory_bytes)
    }

    fn sizes(&self) -> [(&'static str, i64); 5] {
        [
            ("--width", self.width),
            ("--heads", self.heads),
            ("--seq", self.seq),
            ("--batch", self.batch),
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

impl AdamWConfig {
    fn check(&self) -> Result<(), TrainError> {
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
}
