//! Memory that a loop holds on to, found in a real run and blamed on the right scope.
#![cfg(feature = "torch")]

#[path = "common/program.rs"]
mod program;

use program::Runs;
use serde_json::Value;
use stepledger::probe::{Options, Probe, scope};
use stepledger::store::RunFolder;
use tch::kind::FLOAT_CPU;
use tch::nn::{self, Module};
use tch::{Device, Kind, Tensor};

/// A loop that keeps every loss as a tensor (of one number, detached), where a number would do.
#[test]
fn held_losses_are_found_and_blamed() {
    let runs = Runs::new();
    let mut probe = Probe::start(Options::new("holds"), RunFolder::new(runs.file("runs"))).unwrap();
    let store = nn::VarStore::new(Device::Cpu);
    let layer = nn::linear(store.root(), 16, 1, Default::default());
    probe.watch(&store);
    let mut losses = Vec::new();
    for _ in 0..20 {
        let mut step = probe.step();
        let x = step.dataloader(|| Tensor::ones([8, 16], FLOAT_CPU));
        let loss = step.forward(|| {
            let _scope = scope("loss");
            layer.forward(&x).mean(Kind::Float)
        });
        step.backward(|| loss.backward());
        losses.push(loss.detach());
        step.finish(None, 8).unwrap();
    }
    probe.finish().unwrap();
    let creeps = runs.show("")["findings"]["memory_creep"].clone();
    let [creep] = creeps.as_array().unwrap().as_slice() else { panic!("{creeps:#}") };
    assert_eq!(creep["category"], "workspace");
    assert_eq!(
        (&creep["bytes_per_step"], &creep["low"], &creep["high"]),
        (&4.0.into(), &4.0.into(), &4.0.into())
    );
    assert_eq!(
        (&creep["blame"]["place"], &creep["blame"]["blocks"]),
        (&"loss".into(), &20.into()),
        "{creep:#}"
    );
}

#[test]
fn the_default_run_does_not_creep() {
    let runs = Runs::new();
    for flags in [
        "--steps 20 --warmup 0",
        "--steps 20 --warmup 2 --model mlp",
        "--steps 15 --warmup 2 --zero-grad zero",
    ] {
        runs.run(flags);
        assert_eq!(runs.show("")["findings"]["memory_creep"], Value::Array(vec![]), "{flags}");
    }
}
