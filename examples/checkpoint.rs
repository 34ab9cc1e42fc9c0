//! Residual blocks, trained by the same loop with and without activation checkpointing: the losses are the same, and
//! the accounts say what it saves in memory and costs in time.
//!
//! `cargo run --release --example checkpoint [FOLDER OF RUNS]`, then `stepledger show RUN` for each of the two.

use std::error::Error;

use stepledger::probe::{Options, Probe, scope};
use stepledger::store::RunFolder;
use stepledger::train::checkpoint_one;
use tch::nn::{self, OptimizerConfig};
use tch::{Device, Kind, TchError, Tensor, kind::FLOAT_CPU};

const BLOCKS: i64 = 6;
const WIDTH: i64 = 64;
const BATCH: i64 = 512;
const STEPS: usize = 10;

/// LayerNorm, Linear, GELU, Linear, dropout, and the residual around them.
struct Block {
    norm: nn::LayerNorm,
    fc: nn::Linear,
    proj: nn::Linear,
}

impl Block {
    fn new(path: &nn::Path) -> Self {
        Block {
            norm: nn::layer_norm(path / "norm", vec![WIDTH], Default::default()),
            fc: nn::linear(path / "fc", WIDTH, 4 * WIDTH, Default::default()),
            proj: nn::linear(path / "proj", 4 * WIDTH, WIDTH, Default::default()),
        }
    }

    /// A closure that holds the same parameters: what a segment must be.
    fn segment(&self) -> impl Fn(Tensor) -> Result<Tensor, TchError> + Send + 'static {
        let [gain, shift] =
            [&self.norm.ws, &self.norm.bs].map(|tensor| tensor.as_ref().unwrap().shallow_clone());
        let [fc, proj] = [&self.fc, &self.proj].map(|linear| nn::Linear {
            ws: linear.ws.shallow_clone(),
            bs: linear.bs.as_ref().map(Tensor::shallow_clone),
        });
        move |x| {
            let mut hidden = x.f_layer_norm([WIDTH], Some(&gain), Some(&shift), 1e-5, true)?;
            hidden = hidden.f_linear(&fc.ws, fc.bs.as_ref())?;
            hidden = hidden.f_gelu("none")?;
            hidden = hidden.f_linear(&proj.ws, proj.bs.as_ref())?;
            hidden = hidden.f_dropout(0.1, true)?;
            x.f_add(&hidden)
        }
    }
}

fn forward(blocks: &[Block], x: &Tensor, checkpointed: bool) -> Result<Tensor, TchError> {
    let mut hidden = x.shallow_clone();
    for (number, block) in blocks.iter().enumerate() {
        let name = format!("h.{number}");
        let _scope = scope(&name);
        hidden = match checkpointed {
            true => checkpoint_one(&name, hidden, block.segment())?,
            false => block.segment()(hidden)?,
        };
    }
    Ok(hidden)
}

/// Trains towards the batch turned round and keeps the account in `out`; returns the run's id and the last loss.
pub fn train(out: &str, checkpointed: bool) -> Result<(String, f64), Box<dyn Error>> {
    tch::manual_seed(1);
    let name = if checkpointed { "checkpointed" } else { "plain" };
    let mut probe = Probe::start(Options::new(name).warmup(1), RunFolder::new(out))?;
    let store = nn::VarStore::new(Device::Cpu);
    let blocks: Vec<_> = (0..BLOCKS).map(|number| Block::new(&(store.root() / number))).collect();
    let mut adam = nn::Adam::default().build(&store, 1e-3)?;
    probe.watch(&store);
    let mut last = f64::NAN;
    for _ in 0..STEPS {
        let mut step = probe.step();
        let x = step.dataloader(|| Tensor::randn([BATCH, WIDTH], FLOAT_CPU));
        adam.zero_grad();
        let loss = step.forward(|| -> Result<_, TchError> {
            forward(&blocks, &x, checkpointed)?.f_sub(&x.f_flip([1])?)?.f_square()?.f_mean(Kind::Float)
        })?;
        step.backward(|| loss.f_backward())?;
        step.optimizer(|| adam.step());
        last = loss.double_value(&[]);
        step.finish(last, BATCH)?;
    }
    Ok((probe.finish()?.run_id, last))
}

fn main() -> Result<(), Box<dyn Error>> {
    let out = std::env::args().nth(1).unwrap_or_else(|| "runs".to_owned());
    for checkpointed in [false, true] {
        let (run_id, loss) = train(&out, checkpointed)?;
        println!("{run_id}: loss {loss}");
    }
    Ok(())
}
