//! The toy models under each checkpointing policy: the same numbers as without, and less memory.
#![cfg(feature = "torch")]

mod common;

use std::sync::atomic::AtomicBool;

use common::{MemorySink, gpt, turn};
use stepledger::probe::Options;
use stepledger::record::{Category, Detail, Moment, Phase, SpanKind, StepRecords, Trace};
use stepledger::train::{
    Attention, CheckpointPolicy, Config, Loader, ModelKind, Precision, autocast, build, read_text, train,
};
use tch::nn::VarStore;
use tch::{Device, Kind, Tensor};

const POLICIES: [CheckpointPolicy; 4] = [
    CheckpointPolicy::Full,
    CheckpointPolicy::Every(2),
    CheckpointPolicy::Every(3),
    CheckpointPolicy::Selective,
];

fn small() -> Config {
    Config { layers: 3, width: 32, heads: 2, seq: 16, batch: 4, steps: 10, warmup: 0, threads: 1, ..gpt() }
}

fn steps(config: &Config, trace: Trace) -> Vec<StepRecords> {
    let sink = MemorySink::default();
    let options = Options::new("test").trace(trace);
    train(config, options, sink.clone(), &mut |_| (), &AtomicBool::new(false)).unwrap();
    let kept = sink.0.borrow();
    for step in &kept.steps {
        let unattributed: i64 = step.moments.iter().map(|row| row.bytes[Category::Unattributed]).sum();
        assert_eq!((step.step.difference_bytes, unattributed), (Some(0), 0), "{config:?}");
    }
    kept.steps.clone()
}

fn losses(config: &Config) -> Vec<f64> {
    steps(config, Trace::Allocations).iter().map(|step| step.step.loss.unwrap()).collect()
}

/// The gradients of the first step, by name.
fn gradients(config: &Config) -> Vec<(String, Tensor)> {
    tch::manual_seed(config.seed);
    let store = VarStore::new(Device::Cpu);
    let model = build(&store.root(), config).unwrap();
    let batch = Loader::start(read_text(None, config.seq).unwrap(), config).next().unwrap();
    let loss = || model.loss(&batch.tokens, &batch.targets).unwrap();
    let loss = match config.precision {
        Precision::AmpBf16 => autocast(Device::Cpu, Kind::BFloat16, loss).unwrap(),
        _ => loss(),
    };
    loss.backward();
    let mut gradients: Vec<_> = store.variables().into_iter().map(|(name, v)| (name, v.grad())).collect();
    gradients.sort_by(|(a, _), (b, _)| a.cmp(b));
    gradients
}

/// Losses of ten steps and the gradients of the first: bit for bit those without checkpointing.
fn is_bit_for_bit(config: &Config) {
    let _turn = turn();
    let (plain, plain_gradients) = (losses(config), gradients(config));
    for checkpoint in POLICIES {
        if checkpoint == CheckpointPolicy::Selective && config.model == ModelKind::Mlp {
            continue;
        }
        let config = Config { checkpoint, ..config.clone() };
        assert_eq!(losses(&config), plain, "{config:?}");
        for ((name, a), (_, b)) in gradients(&config).iter().zip(&plain_gradients) {
            assert!(a.equal(b), "{name} differs under {config:?}");
        }
    }
}

#[test]
fn without_dropout() {
    is_bit_for_bit(&small());
    is_bit_for_bit(&Config { attention: Attention::Math, ..small() });
}

#[test]
fn with_dropout() {
    is_bit_for_bit(&Config { dropout: 0.1, ..small() });
    is_bit_for_bit(&Config { dropout: 0.1, attention: Attention::Math, ..small() });
}

#[test]
fn with_micro_batches_and_gradients_that_stay() {
    is_bit_for_bit(&Config { accumulate: 2, dropout: 0.1, ..small() });
}

/// Under autocast too: the recomputation has the autocast state of the first run, and the same kernels.
#[test]
fn under_autocast() {
    is_bit_for_bit(&Config { precision: Precision::AmpBf16, dropout: 0.1, ..small() });
}

#[test]
fn of_the_mlp() {
    is_bit_for_bit(&Config { model: ModelKind::Mlp, dropout: 0.1, ..small() });
}

#[test]
fn recomputation_is_timed_inside_backward_and_its_activations_say_so() {
    let _turn = turn();
    for trace in [Trace::Allocations, Trace::Ops] {
        let config = Config { checkpoint: CheckpointPolicy::Full, steps: 2, ..small() };
        let step = steps(&config, trace).pop().unwrap();
        let row = |kind, name: &str| {
            step.phases
                .iter()
                .find(|row| row.kind == kind && row.phase == Phase::Backward && &*row.name == name)
        };
        let backward = row(SpanKind::Phase, "backward").unwrap();
        let recompute = row(SpanKind::Scope, "recompute").unwrap();
        assert_eq!(recompute.calls, config.layers);
        assert!(recompute.total_ns > 0 && recompute.total_ns < backward.total_ns);
        assert!(row(SpanKind::Scope, "recompute.h.2").is_some());
        // Nodes are without it: together they fit into backward.
        let nodes = step.phases.iter().filter(|row| row.kind == SpanKind::Node);
        assert!(nodes.map(|row| row.total_ns).sum::<i64>() + recompute.total_ns <= backward.total_ns);
        let number = Some(step.step.step);
        let made =
            || step.ended.iter().filter(|row| row.step == number && row.phase == Some(Phase::Backward));
        let recomputed: Vec<_> = made().filter(|row| row.category == Category::Activation).collect();
        assert!(recomputed.iter().all(|row| row.detail == Some(Detail::Recomputed)));
        assert!(recomputed.iter().all(|row| row.scope.as_deref().unwrap().starts_with("recompute.h.")));
        // What each block keeps without checkpointing, but for its input, which is there already.
        let plain = Config { checkpoint: CheckpointPolicy::None, ..config.clone() };
        let forward = steps(&plain, trace).pop().unwrap();
        let kept = |scope: &str| -> i64 {
            let of_step =
                forward.ended.iter().filter(|row| row.step == number && row.category == Category::Activation);
            of_step
                .filter(|row| row.scope.as_deref().is_some_and(|s| s.starts_with(scope)))
                .map(|row| row.bytes)
                .sum()
        };
        // A block's last sum, made in the scope of the block, is the next one's input.
        let stream = 4 * config.tokens_per_step() * config.width;
        let blocks = kept("h.") - config.layers * stream;
        assert_eq!(recomputed.iter().map(|row| row.bytes).sum::<i64>(), blocks);
    }
}

/// With every block a segment: forward leaves the blocks' inputs and the head's own; at the peak there is one block's
/// worth of activations more, at most, and the rest is workspace, gradients and what is always there.
#[test]
fn full_keeps_the_blocks_inputs_and_works_on_one_block_at_a_time() {
    let _turn = turn();
    for layers in [2, 5, 9] {
        let config = Config { layers, checkpoint: CheckpointPolicy::Full, steps: 2, ..small() };
        let Config { width, heads, seq, .. } = config;
        let positions = config.tokens_per_step();
        let step = steps(&config, Trace::Allocations).pop().unwrap();
        let at = |moment| *step.moments.iter().find(|row| row.moment == moment).unwrap();
        let stream = 4 * positions * width;
        // Norm's input and output with its statistics, log-softmax, positions, total weight.
        let head = 2 * stream + 8 * positions + 4 * positions * 256 + 8 * seq + 4;
        let forward_end = layers * stream + head;
        assert_eq!(at(Moment::ForwardEnd).bytes[Category::Activation], forward_end);
        // Both norms' outputs and statistics, the sum between the halves, attention, and the MLP twice as wide as 4.
        let block = positions * (4 * 15 * width + 16 + 4 * heads);
        let peak = at(Moment::Peak).bytes[Category::Activation];
        assert!(peak <= forward_end + block, "{layers} layers: {peak} of {forward_end} + {block}");
    }
}
