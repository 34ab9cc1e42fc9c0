//! The flags of `stepledger run`. What they mean to the models is the engine's business.

use std::path::PathBuf;

use clap::Args;

use super::words::{at_least, bytes_of, mebibytes, number, one_of, whole, whole_path};
use crate::record::Trace;
use crate::theory::{AdamWKind, Attention, Checkpoint, Float, ModelKind, Precision, ZeroGrad};

const AFTER_HELP: &str = "\
The account is kept in <OUT>/<run id>/ as Parquet while the run goes on, so that a run that is killed can be read too. \
Ctrl-C finishes the step, keeps the account and exits with 130; a second Ctrl-C ends at once.

Examples:
  stepledger run --batch 16 --attention math
  stepledger run --model mlp --layers 8 --width 256
  stepledger run --data book.txt --seq 128 --steps 500
  stepledger run --dtype amp-bf16 --accumulate 4
  stepledger run --loader-delay-ms 50                     a slow input
  stepledger run --batch 64 --capacity-mb 64 --enforce    out of memory
  stepledger run --save-init w.safetensors --save-batches b.safetensors";

#[derive(Debug, Args)]
// A flag given twice means the last one, so that scripts can add to what others set.
#[command(allow_negative_numbers = true, args_override_self = true, after_long_help = AFTER_HELP)]
pub struct RunArgs {
    #[command(flatten, next_help_heading = "Model")]
    pub model: ModelArgs,
    #[command(flatten, next_help_heading = "Training")]
    pub training: TrainingArgs,
    #[command(flatten, next_help_heading = "Weights and batches")]
    pub files: FileArgs,
    #[command(flatten, next_help_heading = "Account")]
    pub account: AccountArgs,
}

#[derive(Debug, Args)]
pub struct ModelArgs {
    /// The model: a GPT in GPT-2's layout, or a plain stack of Linear and GELU
    #[arg(long, default_value_t = ModelKind::Gpt, value_parser = one_of::<ModelKind>(ModelKind::WORDS))]
    pub model: ModelKind,
    /// Blocks of the GPT, or layers of the MLP
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = whole::<i64>)]
    pub layers: i64,
    /// Width of the residual stream
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = whole::<i64>)]
    pub width: i64,
    /// Attention heads of the GPT; must divide the width [default: 4]
    #[arg(long, value_name = "N", value_parser = whole::<i64>)]
    pub heads: Option<i64>,
    /// Positions in a sequence
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = whole::<i64>)]
    pub seq: i64,
    /// The GPT's attention: by libtorch's fused kernel, or step by step [default: sdpa]
    #[arg(long, value_parser = one_of::<Attention>(Attention::WORDS))]
    pub attention: Option<Attention>,
    /// What parameters are kept in and computed with; amp-bf16: f32 parameters, forward under autocast
    #[arg(long, default_value_t = Precision::F32, value_parser = one_of::<Precision>(Precision::WORDS))]
    pub dtype: Precision,
    /// What backward computes again instead of keeping it: nothing, each block, groups of K blocks, or attention's
    /// core alone
    #[arg(long, value_name = "none|full|every:K|selective", default_value_t = Checkpoint::None)]
    pub checkpoint: Checkpoint,
    /// The share of numbers that dropout sets to 0
    #[arg(long, value_name = "P", default_value_t = 0.0, value_parser = number)]
    pub dropout: f64,
}

#[derive(Debug, Args)]
pub struct TrainingArgs {
    /// Sequences in a batch
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = whole::<i64>)]
    pub batch: i64,
    /// Micro-batches a step: gradients of so many batches are added up before the optimizer runs
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<i64>)]
    pub accumulate: i64,
    /// What becomes of the gradients before a step: freed, or set to zero in place
    #[arg(long, default_value_t = ZeroGrad::None, value_parser = one_of::<ZeroGrad>(ZeroGrad::WORDS))]
    pub zero_grad: ZeroGrad,
    /// Measured steps
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = whole::<i64>)]
    pub steps: i64,
    /// Steps before the measured ones; recorded, but in no statistic
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = whole::<i64>)]
    pub warmup: i64,
    /// Of the initial weights and of the batches
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<i64>)]
    pub seed: i64,
    /// How AdamW is computed: one kernel, all tensors at once operation by operation (needs a further copy of the
    /// parameters), one tensor after the other, or (on a GPU) a kernel of this program's own
    #[arg(long, default_value_t = AdamWKind::Fused, value_parser = one_of::<AdamWKind>(AdamWKind::WORDS))]
    pub adamw: AdamWKind,
    /// With --adamw kernel: threads a block (128, 256, 512 or 1024) [default: 256]
    #[arg(long, value_name = "N", value_parser = at_least(1_u32))]
    pub block_size: Option<u32>,
    /// With --adamw kernel: elements a thread (4, 8, 16 or 32; at most 8192 a block) [default: 8]
    #[arg(long, value_name = "N", value_parser = at_least(1_u32))]
    pub tile_size: Option<u32>,
    /// The type of Adam's states [default: that of what is updated, the parameters or the master weights]
    #[arg(long, value_parser = one_of::<Float>(Float::WORDS))]
    pub state_dtype: Option<Float>,
    /// With --dtype bf16: keep an f32 copy of the parameters, and update that
    #[arg(long)]
    pub master_weights: bool,
    /// AdamW's learning rate
    #[arg(long, value_name = "X", default_value_t = 1e-3, value_parser = number)]
    pub lr: f64,
    /// AdamW's two decay rates
    #[arg(long, value_name = "B1,B2", value_delimiter = ',', num_args = 1, default_value = "0.9,0.95", value_parser = number)]
    pub betas: Vec<f64>,
    /// Added to AdamW's denominator
    #[arg(long, value_name = "X", default_value_t = 1e-8, value_parser = number)]
    pub eps: f64,
    /// Decoupled weight decay, of all parameters alike
    #[arg(long, value_name = "X", default_value_t = 0.1, value_parser = number)]
    pub weight_decay: f64,
    /// Threads that libtorch computes with [default: all cores]
    #[arg(long, value_name = "N", value_parser = whole::<i32>)]
    pub threads: Option<i32>,
    /// cpu, cuda or cuda:N; there is no falling back
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    pub device: String,
    /// Text to train on, any file, read as bytes [default: the sums that come with the program]
    // As it is kept, so that the account says from anywhere which file it was.
    #[arg(long, value_name = "FILE", value_parser = whole_path())]
    pub data: Option<PathBuf>,
    /// Read the loss every N measured steps, and in the first, the last, and the last of the warm-up; on a GPU the host
    /// waits for the device then, and runs ahead of it in between: a step's time is told over cycles of N steps. Steps
    /// without have no loss in the account
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<i64>)]
    pub sync_every: i64,
    /// Copy batches to the GPU from pinned memory; needs --device cuda
    #[arg(long)]
    pub pin_memory: bool,
    /// Do not wait for a batch's copy to the GPU; needs --device cuda, and takes effect with --pin-memory
    #[arg(long)]
    pub async_copy: bool,
    /// Slow the loader down by this much a batch, to see what a slow input looks like
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = at_least(0_u64))]
    pub loader_delay_ms: u64,
}

#[derive(Debug, Args)]
pub struct FileArgs {
    /// Load the initial weights, by name
    #[arg(long, value_name = "FILE.safetensors", value_parser = whole_path())]
    pub init: Option<PathBuf>,
    /// Write the weights as they are before the first step
    #[arg(long, value_name = "FILE.safetensors")]
    pub save_init: Option<PathBuf>,
    /// Write the weights as they are after the last step
    #[arg(long, value_name = "FILE.safetensors")]
    pub save: Option<PathBuf>,
    /// Write the tokens used: int64 `tokens` [steps, batch, seq + 1], warm-up included
    #[arg(long, value_name = "FILE.safetensors")]
    pub save_batches: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct AccountArgs {
    /// The folder of runs; this one gets a folder of its own in it
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub out: PathBuf,
    /// The run's name, which is that of its folder too [default: made of the time and the model]
    #[arg(long, value_name = "NAME")]
    pub run_id: Option<String>,
    /// How deep to look: times only; every allocation too; or also which operator made each, and what backward
    /// spends on each scope
    #[arg(long, default_value_t = Trace::Allocations, value_parser = one_of::<Trace>(Trace::WORDS))]
    pub trace: Trace,
    /// The memory to fit into, in MiB [default: the device's]
    #[arg(long, value_name = "N", value_parser = mebibytes)]
    pub capacity_mb: Option<f64>,
    /// Make --capacity-mb real: an allocation beyond it fails, and the run ends as out_of_memory (exit code 3)
    #[arg(long, requires = "capacity_mb")]
    pub enforce: bool,
    /// Make the records safe every N steps: what a crash can cost at most
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = at_least(1_u32))]
    pub flush_every: u32,
    /// Print the account as one JSON object, as `show --json` does
    #[arg(long)]
    pub json: bool,
    /// Show no progress
    #[arg(long, short)]
    pub quiet: bool,
}

impl AccountArgs {
    /// The limit to put on the allocator.
    pub fn limit_bytes(&self) -> Option<i64> {
        self.capacity_mb.filter(|_| self.enforce).map(bytes_of)
    }
}
