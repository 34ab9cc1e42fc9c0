//! AdamW's kernel on the host, against the formula in double precision.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use stepledger::device::{Hyper, Storage, TENSORS};

use crate::bf16::{nearest, widened};
use crate::tensors::{Array, Kernel, Tensor};

const STEPS: u64 = 50;
/// Relative to the largest value that the number has had: some pass through zero.
const TOLERANCE: f64 = 1e-6;

const HYPER: Hyper = Hyper { lr: 1e-2, betas: (0.9, 0.95), eps: 1e-8, weight_decay: 0.1 };

/// Lengths, and how many elements the parameter (with its states) and its gradient lie behind a multiple of 16 bytes.
/// With the smallest chunks (512) some have whole ones, with the largest (8192) two.
const TENSORS_OF_ALL_KINDS: [(usize, usize, usize); 14] = [
    (1, 0, 0),
    (3, 1, 1),
    (0, 0, 0),
    (5, 2, 0),
    (127, 0, 3),
    (511, 0, 0),
    (512, 0, 0),
    (513, 0, 0),
    (1024, 1, 1),
    (1025, 0, 1),
    (2049, 3, 0),
    (4099, 0, 0),
    (8192, 4, 4),
    (8195, 0, 0),
];

/// A number on its way, and the largest that it has been.
#[derive(Debug, Clone, Copy, Default)]
struct Number {
    value: f64,
    largest: f64,
}

impl Number {
    fn new(value: f32) -> Number {
        Number { value: f64::from(value), largest: f64::from(value).abs() }
    }

    fn set(&mut self, value: f64) {
        self.value = value;
        self.largest = self.largest.max(value.abs());
    }

    fn error(&self, found: f32) -> f64 {
        (f64::from(found) - self.value).abs() / self.largest.max(f64::MIN_POSITIVE)
    }
}

/// What AdamW keeps of an element.
#[derive(Debug, Clone, Copy, Default)]
struct Element {
    param: Number,
    exp_avg: Number,
    exp_avg_sq: Number,
}

impl Element {
    /// The formula of Loshchilov & Hutter 2019, algorithm 2, as PyTorch reads it.
    fn step(&mut self, g: f64, hyper: Hyper, count: u64) {
        let Hyper { lr, betas: (beta1, beta2), eps, weight_decay } = hyper;
        let unbiased = |beta: f64| 1.0 - beta.powi(i32::try_from(count).unwrap());
        self.exp_avg.set(beta1 * self.exp_avg.value + (1.0 - beta1) * g);
        self.exp_avg_sq.set(beta2 * self.exp_avg_sq.value + (1.0 - beta2) * g * g);
        let (m, v) = (self.exp_avg.value / unbiased(beta1), self.exp_avg_sq.value / unbiased(beta2));
        self.param.set(self.param.value * (1.0 - lr * weight_decay) - lr * m / (v.sqrt() + eps));
    }
}

fn tensors(storage: Storage, random: &mut ChaCha8Rng) -> Vec<Tensor> {
    TENSORS_OF_ALL_KINDS.map(|(numel, skew, grad)| Tensor::new(storage, numel, skew, grad, random)).into()
}

fn step(kernel: &Kernel, storage: Storage, tensors: &mut [Tensor], hyper: Hyper, count: u64) {
    let operands: Vec<_> = tensors.iter_mut().map(Tensor::operands).collect();
    kernel.step(storage, &operands, hyper, count);
    for tensor in tensors {
        tensor.check_guards();
        assert_eq!(tensor.step.floats(), [count as f32]);
    }
}

/// f32, and f32 masters of bf16: the whole way, beside one in f64. Returns the largest error.
fn follow(kernel: &Kernel, storage: Storage, hyper: Hyper) -> f64 {
    let random = &mut ChaCha8Rng::seed_from_u64(7);
    let mut tensors = tensors(storage, random);
    let element = |param| Element { param: Number::new(param), ..Element::default() };
    let mut references: Vec<Vec<Element>> =
        tensors.iter().map(|tensor| tensor.updated().into_iter().map(element).collect()).collect();
    let mut largest = 0.0f64;
    for count in 1..=STEPS {
        for (tensor, reference) in tensors.iter_mut().zip(&mut references) {
            let grads = tensor.new_grads(random);
            reference.iter_mut().zip(grads).for_each(|(element, g)| element.step(f64::from(g), hyper, count));
        }
        step(kernel, storage, &mut tensors, hyper, count);
        for (tensor, reference) in tensors.iter().zip(&references) {
            let found =
                tensor.updated().into_iter().zip(tensor.exp_avgs.floats()).zip(tensor.exp_avg_sqs.floats());
            for (((param, exp_avg), exp_avg_sq), element) in found.zip(reference) {
                let errors = [
                    element.param.error(param),
                    element.exp_avg.error(exp_avg),
                    element.exp_avg_sq.error(exp_avg_sq),
                ];
                // Each by itself: `max` passes over what is no number.
                let near = errors.iter().all(|&error| error <= TOLERANCE);
                assert!(near, "{storage:?}, step {count}: {errors:?} of {element:?}");
                largest = errors.into_iter().fold(largest, f64::max);
            }
            if storage == Storage::Bf16Masters {
                // Bit for bit: what is rounded is at hand.
                let rounded: Vec<u16> = tensor.updated().iter().map(|&m| nearest(f64::from(m))).collect();
                assert_eq!(tensor.params.bits(), rounded);
            }
        }
    }
    largest
}

/// An array in f32 holds the exact numbers to within the tolerance; one in bf16 holds their nearest, where the exact ones
/// are known to within f32's rounding.
fn check_array(array: &Array, exact: impl Iterator<Item = Number>) {
    for (found, exact) in array.floats().into_iter().zip(exact) {
        let slack = TOLERANCE * exact.largest;
        let bounds = [exact.value - slack, exact.value + slack];
        let [low, high] = match array.is_half() {
            true => bounds.map(|bound| f64::from(widened(nearest(bound)))),
            false => bounds,
        };
        assert!((low..=high).contains(&f64::from(found)), "{found:e} for {exact:?}");
    }
}

/// Numbers kept in bf16: step by step, each from what the one before left, since each rounds.
fn check_rounding(kernel: &Kernel, storage: Storage, hyper: Hyper) {
    let random = &mut ChaCha8Rng::seed_from_u64(8);
    let mut tensors = tensors(storage, random);
    for count in 1..=STEPS {
        let mut references = Vec::new();
        for tensor in &mut tensors {
            let grads = tensor.new_grads(random);
            let states = tensor.exp_avgs.floats().into_iter().zip(tensor.exp_avg_sqs.floats());
            let before =
                tensor.updated().into_iter().zip(states).map(|(param, (exp_avg, exp_avg_sq))| Element {
                    param: Number::new(param),
                    exp_avg: Number::new(exp_avg),
                    exp_avg_sq: Number::new(exp_avg_sq),
                });
            let mut elements: Vec<Element> = before.collect();
            elements.iter_mut().zip(grads).for_each(|(element, g)| element.step(f64::from(g), hyper, count));
            references.push(elements);
        }
        step(kernel, storage, &mut tensors, hyper, count);
        for (tensor, elements) in tensors.iter().zip(&references) {
            check_array(&tensor.params, elements.iter().map(|element| element.param));
            check_array(&tensor.exp_avgs, elements.iter().map(|element| element.exp_avg));
            check_array(&tensor.exp_avg_sqs, elements.iter().map(|element| element.exp_avg_sq));
        }
    }
}

fn check(block_size: u32, tile_size: u32, hyper: Hyper) {
    let kernel = Kernel::new(block_size, tile_size);
    let errors = [Storage::F32, Storage::Bf16Masters].map(|storage| follow(&kernel, storage, hyper));
    println!(
        "{block_size} threads of {tile_size}: largest error f32 {:.1e}, masters {:.1e}",
        errors[0], errors[1]
    );
    for storage in [Storage::Bf16, Storage::Bf16F32States] {
        check_rounding(&kernel, storage, hyper);
    }
}

#[test]
fn small_chunks_follow_the_formula() {
    check(128, 4, HYPER);
}

#[test]
fn the_default_tiling_follows_the_formula() {
    check(256, 8, HYPER);
}

#[test]
fn large_tiles_follow_the_formula() {
    check(128, 32, Hyper { weight_decay: 0.0, betas: (0.9, 0.999), ..HYPER });
}

#[test]
fn large_blocks_follow_the_formula() {
    check(1024, 8, Hyper { lr: 0.1, eps: 1e-3, betas: (0.3, 0.4), ..HYPER });
}

#[test]
fn more_tensors_than_one_launch_takes_are_all_updated() {
    let random = &mut ChaCha8Rng::seed_from_u64(9);
    let kernel = Kernel::new(128, 4);
    let new = |i: usize, random: &mut ChaCha8Rng| Tensor::new(Storage::F32, 17 * i % 700, i % 4, 0, random);
    let mut tensors: Vec<Tensor> = (0..2 * TENSORS + 5).map(|i| new(i, random)).collect();
    let mut expected = Vec::new();
    for tensor in &mut tensors {
        let grads = tensor.new_grads(random);
        let updated = |(param, g): (f32, f32)| {
            let mut element = Element { param: Number::new(param), ..Element::default() };
            element.step(f64::from(g), HYPER, 1);
            element.param
        };
        expected.push(tensor.updated().into_iter().zip(grads).map(updated).collect::<Vec<Number>>());
    }
    step(&kernel, Storage::F32, &mut tensors, HYPER, 1);
    for (tensor, expected) in tensors.iter().zip(&expected) {
        for (found, expected) in tensor.updated().into_iter().zip(expected) {
            assert!(expected.error(found) <= TOLERANCE, "{found} {expected:?}");
        }
    }
}

/// What a gradient that is no number does, it does to its own element alone.
#[test]
fn a_gradient_that_is_no_number_spoils_its_own_element() {
    let random = &mut ChaCha8Rng::seed_from_u64(10);
    let kernel = Kernel::new(128, 4);
    for storage in Storage::ALL {
        let mut tensors = vec![Tensor::new(storage, 600, 0, 0, random)];
        let mut grads = tensors[0].new_grads(random);
        (grads[5], grads[599]) = (f32::NAN, f32::INFINITY);
        tensors[0].grads.set(&grads);
        step(&kernel, storage, &mut tensors, HYPER, 1);
        let params = tensors[0].params.floats();
        let spoilt: Vec<usize> = (0..600).filter(|&i| !params[i].is_finite()).collect();
        assert_eq!(spoilt, [5, 599], "{storage:?}");
    }
}
