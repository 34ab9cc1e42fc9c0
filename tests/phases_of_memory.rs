//! Memory that outlives a step or is made outside one: accumulated and kept gradients, validation, optimizers.
#![cfg(feature = "torch")]

mod common;

use std::sync::atomic::AtomicBool;

use common::{MemorySink, gpt, turn};
use stepledger::probe::{Options, Probe};
use stepledger::record::{Category, Detail, LedgerMoment, Moment, Phase, SpanKind, StepRecords};
use stepledger::train::{AdamWConfig, AdamWKind, Config, ZeroGrad, train};
use tch::kind::FLOAT_CPU;
use tch::nn::{self, Module, ModuleT};
use tch::{Device, Kind, Tensor};

/// The records of the last step.
fn last_step(config: &Config) -> StepRecords {
    let sink = MemorySink::default();
    train(config, Options::new("test"), sink.clone(), &mut |_| (), &AtomicBool::new(false)).unwrap();
    let kept = sink.0.borrow();
    for step in &kept.steps {
        assert_eq!((step.step.difference_bytes, step.step.dropped_events), (Some(0), 0));
        let unattributed = step.moments.iter().map(|row| row.bytes[Category::Unattributed]).sum::<i64>();
        assert_eq!(unattributed, 0, "{config:?}");
    }
    kept.steps.last().unwrap().clone()
}

fn at(records: &StepRecords, moment: Moment) -> LedgerMoment {
    *records.moments.iter().find(|row| row.moment == moment).unwrap()
}

fn small() -> Config {
    Config { layers: 2, width: 32, heads: 2, seq: 16, batch: 4, ..gpt() }
}

fn with_adamw(kind: AdamWKind) -> Config {
    Config { adamw: AdamWConfig { kind, ..AdamWConfig::default() }, ..small() }
}

#[test]
fn gradients_set_to_zero_are_there_in_the_next_forward_and_in_the_peak() {
    let _turn = turn();
    let parameters = small().shape().parameters();
    let gone = last_step(&small());
    assert_eq!(at(&gone, Moment::ForwardEnd).bytes[Category::Gradient], 0);
    let kept = last_step(&Config { zero_grad: ZeroGrad::Zero, ..small() });
    assert_eq!(at(&kept, Moment::ForwardEnd).bytes[Category::Gradient], 4 * parameters);
    assert_eq!(at(&kept, Moment::Peak).bytes[Category::Gradient], 4 * parameters);
    let peaks = [&kept, &gone].map(|step| step.step.peak_bytes.unwrap());
    assert!(peaks[0] >= peaks[1] + 4 * parameters, "{peaks:?}");
}

#[test]
fn micro_batches_add_up_gradients_and_no_activations() {
    let _turn = turn();
    let config = Config { accumulate: 3, ..small() };
    let (parameters, activations) = (config.shape().parameters(), config.shape().activation_bytes());
    let step = last_step(&config);
    assert_eq!(step.step.tokens, Some(3 * 4 * 16));
    let forward = at(&step, Moment::ForwardEnd);
    // The last of three forwards: the gradients of the first two are there, their activations are not.
    assert_eq!(forward.bytes[Category::Gradient], 4 * parameters);
    assert_eq!(forward.bytes[Category::Activation], activations);
    assert_eq!(at(&step, Moment::PeakForward).bytes[Category::Activation], activations);
    let forwards = step.phases.iter().find(|row| row.kind == SpanKind::Phase && row.phase == Phase::Forward);
    assert_eq!(forwards.unwrap().calls, 3);
}

#[test]
fn foreach_needs_a_further_copy_of_the_parameters_and_says_so() {
    let _turn = turn();
    let parameters = small().shape().parameters();
    let extra = |kind| {
        let step = last_step(&with_adamw(kind));
        let (peak, end) = (at(&step, Moment::PeakOptimizer), at(&step, Moment::OptimizerEnd));
        let temporary =
            |row: &&stepledger::record::AllocationRow| row.detail == Some(Detail::OptimizerTemporary);
        let most = step.ended.iter().filter(temporary).map(|row| row.bytes).max().unwrap_or(0);
        // All that is workspace as the optimizer is highest is told to be its temporaries, and the loss.
        let lives = |row: &&stepledger::record::AllocationRow| {
            row.at_ns <= peak.at_ns && row.freed_ns.is_none_or(|freed_ns| freed_ns > peak.at_ns)
        };
        let told: i64 = step.ended.iter().filter(temporary).filter(lives).map(|row| row.bytes).sum();
        assert_eq!(told, peak.bytes[Category::Workspace] - end.bytes[Category::Workspace], "{kind}");
        (peak.bytes.total() - end.bytes.total(), most)
    };
    // The roots of the second moments, all at once; beside them the number 1 that counts the steps on is gone.
    let (foreach, _) = extra(AdamWKind::Foreach);
    assert!((4 * parameters..4 * parameters + 64).contains(&foreach), "{foreach} of {parameters}");
    // One tensor's root, and its quotient: twice the embedding, which is the largest.
    let (single, largest) = extra(AdamWKind::Loop);
    assert_eq!(largest, 4 * 256 * 32);
    assert!((2 * largest..2 * largest + 64).contains(&single), "{single}");
    let (fused, _) = extra(AdamWKind::Fused);
    assert!(fused < 64, "{fused}");
}

/// The three ways are the same formula: the losses are equal to a few units in the last place.
#[test]
fn the_three_ways_of_adamw_agree() {
    let _turn = turn();
    let loss = |kind| last_step(&Config { steps: 6, ..with_adamw(kind) }).step.loss.unwrap();
    let losses = [AdamWKind::Fused, AdamWKind::Foreach, AdamWKind::Loop].map(loss);
    for other in &losses[1..] {
        assert!((losses[0] - other).abs() < 1e-5, "{losses:?}");
    }
}

#[test]
fn a_validation_pass_has_a_phase_of_its_own_and_is_in_no_steps_peak() {
    let _turn = turn();
    let sink = MemorySink::default();
    let mut probe = Probe::start(Options::new("validates"), sink.clone()).unwrap();
    let store = nn::VarStore::new(Device::Cpu);
    let layer = nn::linear(store.root(), 16, 1, Default::default());
    probe.watch(&store);
    for _ in 0..2 {
        let mut step = probe.step();
        let x = step.dataloader(|| Tensor::ones([8, 16], FLOAT_CPU));
        let loss = step.forward(|| layer.forward(&x).sum(Kind::Float));
        step.backward(|| loss.backward());
        step.finish(loss.double_value(&[]), 8).unwrap();
        let loss = probe.validation(|| {
            tch::no_grad(|| layer.forward(&Tensor::ones([4096, 16], FLOAT_CPU)).sum(Kind::Float))
        });
        assert!(loss.unwrap().double_value(&[]).is_finite());
    }
    probe.finish().unwrap();
    let kept = sink.0.borrow();
    let held = 4096 * 16 * 4;
    for (number, between) in kept.between.iter().take(2).enumerate() {
        let row = between.phases.iter().find(|row| row.kind == SpanKind::Between).unwrap();
        assert_eq!((row.phase, row.step), (Phase::Validation, number as i64 + 1));
        let peak = between.moments.iter().find(|row| row.moment == Moment::PeakValidation).unwrap();
        assert!(peak.bytes.total() >= held && peak.bytes[Category::Unattributed] == 0, "{peak:?}");
        let temporaries = between.ended.iter().filter(|row| row.detail == Some(Detail::ValidationTemporary));
        assert!(temporaries.map(|row| row.bytes).sum::<i64>() >= held);
    }
    for step in &kept.steps {
        assert!(step.step.peak_bytes.unwrap() < held && step.step.difference_bytes == Some(0));
        // The step's own time still adds up without it.
        let phases = step.phases.iter().filter(|row| row.kind == SpanKind::Phase);
        assert_eq!(phases.map(|row| row.total_ns).sum::<i64>(), step.step.wall_ns);
    }
}

#[test]
fn batch_norms_statistics_are_buffers() {
    let _turn = turn();
    let sink = MemorySink::default();
    let mut probe = Probe::start(Options::new("batch_norm"), sink.clone()).unwrap();
    let store = nn::VarStore::new(Device::Cpu);
    let norm = nn::batch_norm1d(store.root(), 24, Default::default());
    probe.watch(&store);
    let mut step = probe.step();
    let x = step.dataloader(|| Tensor::rand([8, 24], FLOAT_CPU));
    let loss = step.forward(|| norm.forward_t(&x, true).sum(Kind::Float));
    step.backward(|| loss.backward());
    step.finish(loss.double_value(&[]), 8).unwrap();
    probe.finish().unwrap();
    let end = at(&sink.0.borrow().steps[0], Moment::BackwardEnd);
    // Mean and variance; weight and bias.
    assert_eq!((end.bytes[Category::Buffer], end.bytes[Category::Parameter]), (2 * 4 * 24, 2 * 4 * 24));
    assert_eq!((end.bytes[Category::Gradient], end.bytes[Category::Unattributed]), (2 * 4 * 24, 0));
}

/// An embedding's gradient is sparse: the values of the rows met, and their indices.
#[test]
fn a_sparse_gradient_is_a_gradient_with_both_its_parts() {
    let _turn = turn();
    let sink = MemorySink::default();
    let store = nn::VarStore::new(Device::Cpu);
    let config = nn::EmbeddingConfig { sparse: true, ..Default::default() };
    let embedding = nn::embedding(store.root() / "embedding", 100, 16, config);
    let head = nn::linear(store.root() / "head", 16, 1, Default::default());
    let mut probe = Probe::start(Options::new("sparse"), sink.clone()).unwrap();
    probe.watch(&store);
    for _ in 0..3 {
        let mut step = probe.step();
        // As set to none: tch has no such call for a sparse one.
        store.variables().into_values().filter(|v| v.grad().defined()).for_each(|v| drop(v.grad().zero_()));
        let tokens = step.dataloader(|| Tensor::from_slice(&[1i64, 2, 3, 4]));
        let loss = step.forward(|| head.forward(&embedding.forward(&tokens)).sum(Kind::Float));
        step.backward(|| loss.backward());
        drop((tokens, loss));
        step.finish(None, None).unwrap();
    }
    probe.finish().unwrap();
    let kept = sink.0.borrow();
    for records in &kept.steps {
        let end = at(records, Moment::BackwardEnd);
        assert_eq!(end.bytes[Category::Unattributed], 0, "step {}", end.step);
    }
    // Four rows of 16 numbers, four indices of 8 bytes; dense, a weight of 16 and a bias.
    let first = at(&kept.steps[0], Moment::BackwardEnd);
    assert_eq!(first.bytes[Category::Gradient], 4 * 16 * 4 + 4 * 8 + 4 * 16 + 4);
}
