//! AdamW's kernel on the host, beside libtorch's own fused operator on the same numbers.

use stepledger::device::{Hyper, Storage};
use stepledger::theory::{AdamWKind, Float};
use stepledger::train::{AdamW, AdamWConfig};
use tch::{Kind, Tensor as Torch};

use self::rounding::NEIGHBOURS;
use crate::tensors::{Kernel, Tensor};

#[path = "../common/rounding.rs"]
mod rounding;

const STEPS: u64 = 20;
const SHAPES: [&[i64]; 5] = [&[7], &[33, 65], &[1], &[128, 64], &[2049]];

fn hyper() -> Hyper {
    let AdamWConfig { lr, betas, eps, weight_decay, .. } = AdamWConfig::default();
    Hyper { lr, betas, eps, weight_decay }
}

fn floats(tensor: &Torch) -> Vec<f32> {
    let flat = tensor.detach().to_kind(Kind::Float).reshape([-1]);
    Vec::try_from(&flat).unwrap()
}

/// libtorch's side: parameters, and the optimizer that has them too.
struct Fused {
    params: Vec<Torch>,
    optimizer: AdamW,
}

impl Fused {
    fn new(storage: Storage) -> Fused {
        let config = AdamWConfig {
            kind: AdamWKind::Fused,
            state_dtype: (storage != Storage::Bf16).then_some(Float::F32),
            master_weights: storage == Storage::Bf16Masters,
            ..AdamWConfig::default()
        };
        let values: Vec<Torch> =
            SHAPES.iter().map(|&shape| Torch::randn(shape, tch::kind::FLOAT_CPU)).collect();
        let kind = if storage == Storage::F32 { Kind::Float } else { Kind::BFloat16 };
        let leaf = |values: &Torch| values.to_kind(kind).copy().set_requires_grad(true);
        let params: Vec<Torch> = values.iter().map(leaf).collect();
        let masters = config.master_weights.then_some(values);
        let optimizer =
            AdamW::new(config, params.iter().map(Torch::shallow_clone).collect(), masters).unwrap();
        Fused { params, optimizer }
    }

    /// What is updated, at the beginning.
    fn values(&self) -> Vec<Vec<f32>> {
        let masters: Vec<_> = self.optimizer.masters().map(|(_, master)| floats(master)).collect();
        if masters.is_empty() { self.params.iter().map(floats).collect() } else { masters }
    }

    /// A step with gradients that are made for each parameter; returns them.
    fn step(&mut self, gradient: impl Fn(&Torch) -> Torch) -> Vec<Vec<f32>> {
        self.optimizer.clear_gradients().unwrap();
        for param in &self.params {
            (param * gradient(param)).sum(param.kind()).backward();
        }
        let grads = self.params.iter().map(|param| floats(&param.grad())).collect();
        self.optimizer.step().unwrap();
        grads
    }
}

/// The largest difference, by the largest value, of two lists; no number where there is one that is none.
fn difference(one: &[f32], other: &[f32]) -> f32 {
    let larger = |a: f32, b: f32| if a.is_nan() || b.is_nan() { f32::NAN } else { a.max(b) };
    let largest = |values: &mut dyn Iterator<Item = f32>| values.map(f32::abs).fold(0.0, larger);
    assert_eq!(one.len(), other.len());
    let apart = largest(&mut one.iter().zip(other).map(|(a, b)| a - b));
    apart / largest(&mut one.iter().copied()).max(f32::MIN_POSITIVE)
}

#[test]
fn a_difference_to_what_is_no_number_is_none() {
    assert_eq!(difference(&[1.0, 2.0], &[1.5, 2.0]), 0.25);
    for spoiled in [[f32::NAN, 2.0], [1.0, f32::NAN]] {
        assert!(difference(&spoiled, &[1.0, 2.0]).is_nan());
        assert!(difference(&[1.0, 2.0], &spoiled).is_nan());
    }
}

/// The kernel's tensors, with the operator's values.
fn ours(fused: &Fused, storage: Storage) -> Vec<Tensor> {
    fused.values().iter().map(|values| Tensor::of(storage, values, 0, 0)).collect()
}

/// The kernel's step with these gradients.
fn update(kernel: &Kernel, storage: Storage, ours: &mut [Tensor], grads: &[Vec<f32>], count: u64) {
    for (tensor, grads) in ours.iter_mut().zip(grads) {
        tensor.grads.set(grads);
    }
    let operands: Vec<_> = ours.iter_mut().map(Tensor::operands).collect();
    kernel.step(storage, &operands, hyper(), count);
}

/// Relative to a tensor's largest number: f32 adds up in another order, bf16 may be rounded apart once.
fn tolerance(storage: Storage) -> f32 {
    if storage == Storage::F32 { 1e-6 } else { NEIGHBOURS as f32 }
}

/// After some steps from the same start, with the same gradients, all is the same to within the tolerance.
fn check(storage: Storage) {
    tch::manual_seed(3);
    let kernel = Kernel::new(256, 8);
    let mut fused = Fused::new(storage);
    let mut ours = ours(&fused, storage);
    for count in 1..=STEPS {
        update(&kernel, storage, &mut ours, &fused.step(Torch::randn_like), count);
    }
    let theirs: Vec<(usize, Vec<f32>)> =
        fused.optimizer.states().map(|(place, state)| (place, floats(state))).collect();
    for (place, tensor) in ours.iter().enumerate() {
        let of_place: Vec<&Vec<f32>> =
            theirs.iter().filter(|(at, _)| *at == place).map(|(_, values)| values).collect();
        let apart = [
            difference(&floats(&fused.params[place]), &tensor.params.floats()),
            difference(of_place[0], &tensor.exp_avgs.floats()),
            difference(of_place[1], &tensor.exp_avg_sqs.floats()),
        ];
        println!("{storage:?} {:?}: {apart:?}", SHAPES[place]);
        assert!(
            apart.iter().all(|&apart| apart <= tolerance(storage)),
            "{storage:?} {:?}: {apart:?}",
            SHAPES[place]
        );
        assert_eq!(of_place[2], &tensor.step.floats());
    }
    for (master, tensor) in fused.optimizer.masters().zip(&ours) {
        assert!(difference(&floats(master.1), &tensor.updated()) <= 1e-6);
    }
}

/// One gradient whose square f32 does not hold, and small ones after it: what libtorch survives, the kernel does. At the
/// larger of the two what is kept of the square is infinite in both, and the parameters hardly move any more.
#[test]
fn a_gradient_whose_square_overflows_leaves_the_numbers_that_libtorch_leaves() {
    let kernel = Kernel::new(256, 8);
    for storage in Storage::ALL {
        for large in [3e19, 1e25] {
            tch::manual_seed(4);
            let mut fused = Fused::new(storage);
            let mut ours = ours(&fused, storage);
            for count in 1..=5 {
                let gradient = if count == 1 { large } else { 1.0 };
                let grads = fused.step(|param| param.full_like(gradient));
                update(&kernel, storage, &mut ours, &grads, count);
                for (param, tensor) in fused.params.iter().zip(&ours) {
                    let (theirs, found) = (floats(param), tensor.params.floats());
                    assert!(
                        found.iter().all(|value| value.is_finite()),
                        "{storage:?} {large:e}, step {count}"
                    );
                    assert!(
                        difference(&theirs, &found) <= tolerance(storage),
                        "{storage:?} {large:e}, step {count}"
                    );
                }
            }
            let squares = ours.iter().flat_map(|tensor| tensor.exp_avg_sqs.floats());
            assert!(squares.into_iter().all(|square| square.is_infinite() == (large > 1e20)), "{storage:?}");
        }
    }
}

#[test]
fn f32_is_updated_as_by_the_fused_operator() {
    check(Storage::F32);
}

#[test]
fn bf16_is_updated_as_by_the_fused_operator_but_for_single_roundings() {
    for storage in [Storage::Bf16, Storage::Bf16F32States, Storage::Bf16Masters] {
        check(storage);
    }
}
