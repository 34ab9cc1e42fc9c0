//! What a run of the toy models is told, and whether that can be done: as far as that can be judged before libtorch is
//! loaded, so that whoever asks for many runs hears of it before the first.

use std::fmt::Display;

use super::choices::{AdamWKind, Checkpoint, Float, Precision};
use super::shape::{Architecture, Shape};

/// A run, up to its files and its data.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// The sizes, and what else memory depends on.
    pub shape: Shape,
    /// Asked for even where the model has none.
    pub heads: i64,
    pub steps: i64,
    pub warmup: i64,
    pub sync_every: i64,
    pub dropout: f64,
    pub lr: f64,
    pub betas: (f64, f64),
    pub eps: f64,
    pub weight_decay: f64,
    pub pin_memory: bool,
    pub async_copy: bool,
    pub on_cpu: bool,
}

/// Why a run cannot be: the flag, its value, and what is allowed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SetupError {
    #[error("{flag} {value}: {allowed}")]
    Flag { flag: &'static str, value: String, allowed: String },
    #[error(
        "a step needs at least {floor_bytes} bytes (parameters, Adam's states, activations), and the machine has \
         {memory_bytes}; choose smaller --width, --layers, --batch or --seq"
    )]
    TooLarge { floor_bytes: i64, memory_bytes: i64 },
}

impl SetupError {
    pub fn flag(flag: &'static str, value: impl Display, allowed: impl Into<String>) -> Self {
        SetupError::Flag { flag, value: value.to_string(), allowed: allowed.into() }
    }
}

type Checked = Result<(), SetupError>;

/// Larger sizes are slips of the finger, and their products would not fit 64 bits.
const MAX_SIZE: i64 = 1 << 24;

/// The largest batch that `stepledger run` takes.
pub const MAX_BATCH: i64 = MAX_SIZE;

/// Each layer is a dozen tensors, whose bookkeeping outweighs what a tiny layer holds.
const MAX_LAYERS: i64 = 4096;

impl Setup {
    /// Refuses what cannot be run on a machine with so much memory, naming the flag, its value and what is allowed.
    pub fn check(&self, memory_bytes: Option<i64>) -> Checked {
        for (flag, value) in self.sizes() {
            check_range(flag, value, 1, MAX_SIZE)?;
        }
        check_range("--layers", self.shape.layers, 1, MAX_LAYERS)?;
        check_range("--warmup", self.warmup, 0, MAX_SIZE)?;
        check_range("--threads", self.shape.training.threads, 1, 1024)?;
        self.check_heads()?;
        check_range("--sync-every", self.sync_every, 1, MAX_SIZE)?;
        self.check_copies()?;
        self.check_checkpoint()?;
        if !(0.0..1.0).contains(&self.dropout) {
            return Err(SetupError::flag("--dropout", self.dropout, "allowed: from 0 to below 1"));
        }
        self.check_types()?;
        self.check_adamw()?;
        self.check_memory(memory_bytes)
    }

    fn sizes(&self) -> [(&'static str, i64); 6] {
        [
            ("--width", self.shape.width),
            ("--heads", self.heads),
            ("--seq", self.shape.seq),
            ("--batch", self.shape.batch),
            ("--accumulate", self.shape.training.accumulate),
            ("--steps", self.steps),
        ]
    }

    fn check_heads(&self) -> Checked {
        let Setup { shape: Shape { architecture, width, .. }, heads, .. } = self;
        match architecture {
            Architecture::Gpt { .. } if width % heads != 0 => {
                Err(SetupError::flag("--heads", heads, format!("--width {width} must be a multiple of it")))
            }
            _ => Ok(()),
        }
    }

    fn check_copies(&self) -> Checked {
        let set = [("--pin-memory", self.pin_memory), ("--async-copy", self.async_copy)];
        match set.into_iter().find(|(_, on)| *on && self.on_cpu) {
            None => Ok(()),
            Some((flag, _)) => Err(SetupError::flag(
                flag,
                "with --device cpu",
                "nothing is copied there; use --device cuda, or leave it out",
            )),
        }
    }

    fn check_checkpoint(&self) -> Checked {
        let Shape { checkpoint, layers, architecture, .. } = self.shape;
        let bad = |allowed: String| Err(SetupError::flag("--checkpoint", checkpoint, allowed));
        match checkpoint {
            Checkpoint::Every(blocks) if !(1..=layers).contains(&blocks) => {
                bad(format!("allowed: every:1 to every:{layers}, the number of --layers"))
            }
            Checkpoint::Selective if architecture == Architecture::Mlp => bad(
                "recomputes attention's core, and the MLP has no attention; allowed with --model mlp: none, full, every:K"
                    .to_owned(),
            ),
            _ => Ok(()),
        }
    }

    fn check_types(&self) -> Checked {
        let (precision, training) = (self.shape.precision, self.shape.training);
        let in_half = precision == Precision::Bf16;
        if training.master_weights && !in_half {
            let value = format!("with --dtype {precision}");
            let why = "needs --dtype bf16; these parameters are f32 themselves";
            return Err(SetupError::flag("--master-weights", value, why));
        }
        match training.state {
            Some(Float::Bf16) if !in_half || training.master_weights => Err(SetupError::flag(
                "--state-dtype",
                Float::Bf16,
                "needs --dtype bf16 without --master-weights, so that what is updated is bf16 too",
            )),
            _ => Ok(()),
        }
    }

    fn check_adamw(&self) -> Checked {
        let positive = |flag, value: f64| match value.is_finite() && value > 0.0 {
            true => Ok(()),
            false => Err(SetupError::flag(flag, value, "allowed: any number above 0")),
        };
        positive("--lr", self.lr)?;
        positive("--eps", self.eps)?;
        if !(self.weight_decay.is_finite() && self.weight_decay >= 0.0) {
            return Err(SetupError::flag("--weight-decay", self.weight_decay, "allowed: 0 or more"));
        }
        for beta in [self.betas.0, self.betas.1] {
            if !(0.0..1.0).contains(&beta) {
                return Err(SetupError::flag("--betas", beta, "allowed: from 0 to below 1"));
            }
        }
        match self.shape.training.adamw {
            AdamWKind::Kernel if self.on_cpu => Err(SetupError::kernel_needs_gpu()),
            _ => Ok(()),
        }
    }

    fn check_memory(&self, memory_bytes: Option<i64>) -> Checked {
        let floor_bytes = self.shape.floor_bytes();
        match memory_bytes {
            Some(memory_bytes) if self.on_cpu && floor_bytes > memory_bytes => {
                Err(SetupError::TooLarge { floor_bytes, memory_bytes })
            }
            _ => Ok(()),
        }
    }
}

impl SetupError {
    /// What becomes of `--adamw kernel` where there is no GPU.
    pub fn kernel_needs_gpu() -> Self {
        let allowed =
            "is a kernel for NVIDIA's GPUs, and takes --device cuda; on a CPU: fused, foreach, loop";
        SetupError::flag("--adamw", AdamWKind::Kernel, allowed)
    }
}

fn check_range(flag: &'static str, value: i64, low: i64, high: i64) -> Checked {
    match (low..=high).contains(&value) {
        true => Ok(()),
        false => Err(SetupError::flag(flag, value, format!("allowed: {low} to {high}"))),
    }
}
