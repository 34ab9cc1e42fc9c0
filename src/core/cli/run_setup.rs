//! Whether `stepledger run` can do what its flags say: told before libtorch is loaded, and of a sweep before its first
//! run.

use super::run_args::{ModelArgs, RunArgs, TrainingArgs};
use super::settings::all_cores;
use crate::record::Trace;
use crate::theory::{AdamWKind, Architecture, Attention, ModelKind, Setup, SetupError, Shape, Training};

impl RunArgs {
    /// Refuses what no run on this machine can do, naming the flag, its value and what is allowed.
    pub fn check(&self, memory_bytes: Option<i64>) -> Result<(), SetupError> {
        self.setup()?.check(memory_bytes)?;
        if self.account.enforce && self.account.trace == Trace::Phases {
            let allowed = "it takes --trace allocations or ops, whose hook keeps the limit";
            return Err(SetupError::flag("--enforce", "with --trace phases", allowed));
        }
        Ok(())
    }

    /// The run that is asked for.
    pub fn setup(&self) -> Result<Setup, SetupError> {
        setup(&self.model, &self.training)
    }
}

/// The run that these flags ask for.
pub fn setup(model: &ModelArgs, training: &TrainingArgs) -> Result<Setup, SetupError> {
    model.check_attention()?;
    training.check_tiling()?;
    Ok(Setup {
        shape: shape(model, training),
        heads: model.heads(),
        steps: training.steps,
        warmup: training.warmup,
        sync_every: training.sync_every,
        dropout: model.dropout,
        lr: training.lr,
        betas: training.two_betas()?,
        eps: training.eps,
        weight_decay: training.weight_decay,
        pin_memory: training.pin_memory,
        async_copy: training.async_copy,
        on_cpu: is_cpu(&training.device)?,
    })
}

impl ModelArgs {
    pub fn heads(&self) -> i64 {
        self.heads.unwrap_or(4)
    }

    pub fn attention(&self) -> Attention {
        self.attention.unwrap_or(Attention::Sdpa)
    }

    /// Refuses what was asked of attention where the model has none: kept in the run's configuration it would tell apart
    /// what is the same.
    pub fn check_attention(&self) -> Result<(), SetupError> {
        let heads = self.heads.map(|heads| ("--heads", heads.to_string()));
        let attention = self.attention.map(|kind| ("--attention", kind.to_string()));
        match heads.or(attention) {
            Some((flag, value)) if self.model == ModelKind::Mlp => {
                let allowed = "the MLP has no attention; leave it out, or train --model gpt";
                Err(SetupError::flag(flag, value, allowed))
            }
            _ => Ok(()),
        }
    }
}

impl TrainingArgs {
    /// Refuses sizes of the kernel where there is none. Which there are the kernel knows.
    fn check_tiling(&self) -> Result<(), SetupError> {
        let sizes = [("--block-size", self.block_size), ("--tile-size", self.tile_size)];
        match sizes.into_iter().find_map(|(flag, size)| Some((flag, size?))) {
            Some((flag, size)) if self.adamw != AdamWKind::Kernel => {
                let allowed = format!("is for --adamw kernel, and this is --adamw {}", self.adamw);
                Err(SetupError::flag(flag, size, allowed))
            }
            _ => Ok(()),
        }
    }

    /// AdamW's two decay rates.
    pub fn two_betas(&self) -> Result<(f64, f64), SetupError> {
        match self.betas[..] {
            [beta1, beta2] => Ok((beta1, beta2)),
            _ => Err(SetupError::flag(
                "--betas",
                format!("{:?}", self.betas),
                "allowed: two numbers, such as 0.9,0.95",
            )),
        }
    }
}

fn shape(model: &ModelArgs, training: &TrainingArgs) -> Shape {
    let architecture = match model.model {
        ModelKind::Gpt => Architecture::Gpt { heads: model.heads(), attention: model.attention() },
        ModelKind::Mlp => Architecture::Mlp,
    };
    Shape {
        architecture,
        layers: model.layers,
        width: model.width,
        seq: model.seq,
        batch: training.batch,
        precision: model.dtype,
        checkpoint: model.checkpoint,
        training: Training {
            adamw: training.adamw,
            state: training.state_dtype,
            master_weights: training.master_weights,
            accumulate: training.accumulate,
            zero_grad: training.zero_grad,
            threads: i64::from(training.threads.unwrap_or_else(all_cores)),
        },
    }
}

/// Whether this names the CPU rather than a GPU; which GPUs there are libtorch knows.
fn is_cpu(device: &str) -> Result<bool, SetupError> {
    // As runs are told apart by it: neither `+7` nor `07`.
    let numbered = |digits: &str| digits.parse().is_ok_and(|number: u16| number.to_string() == digits);
    match device {
        "cpu" => Ok(true),
        "cuda" => Ok(false),
        _ if device.strip_prefix("cuda:").is_some_and(numbered) => Ok(false),
        _ => Err(SetupError::flag("--device", device, "allowed: cpu, cuda, cuda:0, cuda:1, …")),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command, FromArgMatches};

    use super::*;

    fn args(flags: &str) -> RunArgs {
        let command = RunArgs::augment_args(Command::new("run").no_binary_name(true));
        RunArgs::from_arg_matches(&command.get_matches_from(flags.split_whitespace())).unwrap()
    }

    #[test]
    fn what_cannot_be_run_is_named_with_what_can() {
        for (flags, expected) in [
            ("--batch 0", "--batch 0: allowed: 1 to"),
            ("--steps 0", "--steps 0: allowed: 1 to"),
            ("--checkpoint every:0", "--checkpoint every:0: allowed: every:1 to every:4"),
            ("--layers 1 --checkpoint every:2", "--checkpoint every:2: allowed: every:1 to every:1"),
            ("--model mlp --checkpoint selective", "the MLP has no attention"),
            ("--model mlp --heads 4", "--heads 4: the MLP has no attention"),
            ("--model mlp --attention math", "--attention math: the MLP has no attention"),
            ("--heads 3", "--heads 3: --width 128 must be a multiple of it"),
            ("--dropout 1", "--dropout 1: allowed: from 0 to below 1"),
            ("--betas 0.9", "--betas [0.9]: allowed: two numbers"),
            ("--lr 0", "--lr 0: allowed: any number above 0"),
            ("--device tpu", "--device tpu: allowed: cpu, cuda"),
            ("--device cuda:+7", "--device cuda:+7: allowed: cpu, cuda"),
            ("--device cuda:07", "--device cuda:07: allowed: cpu, cuda"),
            ("--pin-memory", "--pin-memory with --device cpu"),
            ("--adamw kernel", "takes --device cuda"),
            ("--tile-size 8", "--tile-size 8: is for --adamw kernel, and this is --adamw fused"),
            ("--master-weights", "needs --dtype bf16"),
            ("--capacity-mb 4 --enforce --trace phases", "it takes --trace allocations or ops"),
            ("--width 65536 --layers 4000", "and the machine has 1073741824"),
        ] {
            let error = args(flags).check(Some(1 << 30)).unwrap_err().to_string();
            assert!(error.contains(expected), "{flags}: {error}");
        }
        let small = "--width 16 --heads 2 --layers 1 --seq 8 --batch 1";
        assert_eq!(args(small).check(Some(1 << 20)), Ok(()));
        assert_eq!(args("--device cuda:1 --pin-memory").check(None), Ok(()));
        assert_eq!(args("--model mlp").check(None), Ok(()));
    }
}
