//! What counts as an activation, on graphs small enough to know by hand which tensors autograd keeps.
#![cfg(feature = "torch")]

mod common;

use common::{MemorySink, turn};
use stepledger::probe::{Options, Probe};
use stepledger::record::{AllocationRow, Category, Detail, Moment, Trace};
use stepledger::train::autocast;
use tch::kind::FLOAT_CPU;
use tch::{Device, Kind, Tensor};

/// Bytes of the one leaf, and of every tensor of its shape.
const WHOLE: i64 = 4 * 64 * 64;

/// What forward leaves behind.
struct Left {
    activation: i64,
    /// Every lifetime, ended or not.
    lifetimes: Vec<AllocationRow>,
}

impl Left {
    fn bytes(&self, detail: Detail) -> i64 {
        self.lifetimes.iter().filter(|row| row.detail == Some(detail)).map(|row| row.bytes).sum()
    }
}

/// Runs one step: `forward` from a leaf of 64 × 64, backward from the sum of what it returns.
fn step(trace: Trace, forward: impl Fn(&Tensor) -> Tensor) -> Left {
    let _turn = turn();
    let sink = MemorySink::default();
    let mut probe = Probe::start(Options::new("by_hand").trace(trace), sink.clone()).unwrap();
    let leaf = Tensor::rand([64, 64], FLOAT_CPU).set_requires_grad(true);
    let mut step = probe.step();
    let loss = step.forward(|| forward(&leaf).sum(Kind::Float));
    step.backward(|| loss.backward());
    step.finish(loss.double_value(&[]), None).unwrap();
    probe.finish().unwrap();
    let kept = sink.0.borrow();
    let records = &kept.steps[0];
    assert_eq!(records.step.difference_bytes, Some(0));
    let end = records.moments.iter().find(|row| row.moment == Moment::ForwardEnd).unwrap();
    assert_eq!(end.bytes[Category::Unattributed], 0);
    let between = kept.between.iter().flat_map(|records| &records.ended);
    Left {
        activation: end.bytes[Category::Activation],
        lifetimes: records.ended.iter().chain(between).chain(&kept.open).cloned().collect(),
    }
}

fn activation(forward: impl Fn(&Tensor) -> Tensor) -> i64 {
    step(Trace::Allocations, forward).activation
}

#[test]
fn a_result_that_backward_needs_is_one() {
    // exp's derivative is its result; a sum needs only a shape.
    assert_eq!(activation(|x| x.exp()), WHOLE);
    assert_eq!(activation(|x| x.exp().exp()), 2 * WHOLE);
    // A product with a number needs nothing.
    assert_eq!(activation(|x| x * 3.0), 0);
}

#[test]
fn an_operation_in_place_does_not_count_twice() {
    // relu keeps its result, which is the product's own storage.
    assert_eq!(activation(|x| (x * 3.0).relu_()), WHOLE);
    assert_eq!(activation(|x| (x * 3.0).exp_()), WHOLE);
}

#[test]
fn views_and_aliases_count_once_by_storage() {
    assert_eq!(
        activation(|x| {
            let y = x.exp();
            let (turned, alias) = (y.transpose(0, 1), y.view([64, 64]));
            turned.matmul(&alias)
        }),
        WHOLE
    );
    // Half of a storage keeps all of it.
    assert_eq!(activation(|x| x.exp().narrow(0, 0, 32).square()), WHOLE);
}

#[test]
fn what_is_kept_as_a_result_and_as_an_input_counts_once() {
    // tanh keeps its result; the product keeps the same tensor as both its inputs.
    assert_eq!(
        activation(|x| {
            let t = x.tanh();
            &t * &t
        }),
        WHOLE
    );
}

#[test]
fn what_merely_outlives_forward_is_output() {
    let kept = std::cell::RefCell::new(None);
    let left = step(Trace::Allocations, |x| {
        let logits = x * 3.0;
        *kept.borrow_mut() = Some(logits.shallow_clone());
        logits
    });
    // The logits, and the loss.
    assert_eq!((left.activation, left.bytes(Detail::Output)), (0, WHOLE + 4));
}

#[test]
fn gradients_of_activations_are_workspace() {
    let left = step(Trace::Allocations, |x| x.exp().exp());
    // The inner exp's is one; the outer one's becomes the leaf's gradient.
    assert!(left.bytes(Detail::ActivationGradient) >= WHOLE, "{:?}", left.lifetimes);
    let gradients = left.lifetimes.iter().filter(|row| row.category == Category::Gradient);
    assert!(gradients.map(|row| row.bytes).all(|bytes| bytes == WHOLE));
}

/// Autocast's copy of a weight that backward needs is an activation of its own kind; the copy of a bias, which it
/// does not need, goes with the region.
#[test]
fn autocasts_copies_of_weights_have_a_detail() {
    let bias = Tensor::zeros([64], FLOAT_CPU).set_requires_grad(true);
    let left = step(Trace::Allocations, |weight| {
        let x = Tensor::rand([16, 64], FLOAT_CPU).set_requires_grad(true);
        let product = autocast(Device::Cpu, Kind::BFloat16, || x.linear(weight, Some(&bias)));
        product.unwrap().to_kind(Kind::Float)
    });
    let rows = |bytes: i64| left.lifetimes.iter().filter(move |row| row.bytes == bytes);
    let copy = (Category::Activation, Some(Detail::AutocastWeightCopy));
    assert_eq!(rows(WHOLE / 2).filter(|row| (row.category, row.detail) == copy).count(), 1);
    // The input in half precision, which the weight's gradient is made from.
    assert_eq!(left.activation, WHOLE / 2 + 2 * 16 * 64);
    let bias_copy = rows(2 * 64).map(|row| row.detail).next().unwrap();
    assert_eq!(bias_copy, Some(Detail::ForwardTemporary));
}

/// What an operator makes for itself never leaves it.
#[test]
fn scratch_is_told_apart_where_operators_are_traced() {
    // A product with a matrix that is not contiguous in a way that bmm takes: it is copied inside.
    let forward = |x: &Tensor| {
        x.matmul(&x.unsqueeze(0).expand([4, 64, 64], false).transpose(1, 2)).sum_dim_intlist(
            0i64,
            false,
            Kind::Float,
        )
    };
    let left = step(Trace::Ops, forward);
    let scratch: Vec<_> =
        left.lifetimes.iter().filter(|row| row.detail == Some(Detail::KernelScratch)).collect();
    assert!(!scratch.is_empty(), "{:#?}", left.lifetimes);
    for row in scratch {
        assert!(row.op.is_some() && row.freed_phase == row.phase, "{row:?}");
    }
    let coarse = step(Trace::Allocations, forward);
    assert_eq!(coarse.activation, left.activation);
    assert!(coarse.lifetimes.iter().all(|row| row.detail != Some(Detail::KernelScratch) && row.op.is_none()));
}
