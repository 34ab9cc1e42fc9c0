//! A hand-written training loop under instruments: a small convolution net with batch norm, trained by
//! tch's own Adam. The lines that speak to `probe` and `step` are all the glue there is.
//!
//! `cargo run --release --example own_loop [FOLDER OF RUNS]`, then `stepledger show`.

use std::error::Error;

use stepledger::probe::{Options, Probe};
use stepledger::store::RunFolder;
use tch::nn::{self, ModuleT, OptimizerConfig};
use tch::{Device, Kind, Tensor};

const CLASSES: i64 = 4;
const BATCH: i64 = 16;
const SIDE: i64 = 12;

fn network(root: &nn::Path) -> nn::SequentialT {
    let padded = nn::ConvConfig { padding: 1, ..Default::default() };
    nn::seq_t()
        .add(nn::conv2d(root / "conv_1", 1, 8, 3, padded))
        .add(nn::batch_norm2d(root / "norm_1", 8, Default::default()))
        .add_fn(|x| x.relu().max_pool2d_default(2))
        .add(nn::conv2d(root / "conv_2", 8, 16, 3, padded))
        .add(nn::batch_norm2d(root / "norm_2", 16, Default::default()))
        .add_fn(|x| x.relu().max_pool2d_default(2).flat_view())
        .add(nn::linear(root / "head", 16 * (SIDE / 4) * (SIDE / 4), CLASSES, Default::default()))
}

/// Noise with a bright square, whose quadrant is the class.
fn batch() -> (Tensor, Tensor) {
    let labels = Tensor::randint(CLASSES, [BATCH], (Kind::Int64, Device::Cpu));
    let images = Tensor::randn([BATCH, 1, SIDE, SIDE], (Kind::Float, Device::Cpu));
    for image in 0..BATCH {
        let class = labels.int64_value(&[image]);
        let half = SIDE / 2;
        let _ = images
            .get(image)
            .narrow(1, class / 2 * half, half)
            .narrow(2, class % 2 * half, half)
            .g_add_scalar_(1.0);
    }
    (images, labels)
}

/// Trains for 20 steps and keeps the account in `out`; returns the run's id.
pub fn train(out: &str) -> Result<String, Box<dyn Error>> {
    // The probe comes first, so that the model's own memory is seen; on a GPU (`Options::device`) also before the seed.
    let mut probe = Probe::start(Options::new("own_loop").warmup(2), RunFolder::new(out))?;
    tch::manual_seed(1);
    let store = nn::VarStore::new(Device::Cpu);
    let net = network(&store.root());
    let mut adam = nn::Adam::default().build(&store, 1e-3)?;
    probe.watch(&store);
    for _ in 0..20 {
        let mut step = probe.step();
        let (images, labels) = step.dataloader(batch);
        adam.zero_grad();
        let loss = step.forward(|| net.forward_t(&images, true).cross_entropy_for_logits(&labels));
        step.backward(|| loss.backward());
        step.optimizer(|| adam.step());
        step.finish(loss.double_value(&[]), BATCH)?;
    }
    Ok(probe.finish()?.run_id)
}

fn main() -> Result<(), Box<dyn Error>> {
    let out = std::env::args().nth(1).unwrap_or_else(|| "runs".to_owned());
    println!("{}", train(&out)?);
    Ok(())
}
