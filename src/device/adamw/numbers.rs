//! The numbers of AdamW's formula, as the kernel takes them.

use std::num::NonZeroU64;

/// What AdamW is told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hyper {
    pub lr: f64,
    pub betas: (f64, f64),
    pub eps: f64,
    pub weight_decay: f64,
}

/// The factors of one step, each computed in f64 and rounded once; `Numbers` in kernels/adamw.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Numbers {
    keep1: f32,
    take1: f32,
    take2: f32,
    decay: f32,
    step_size: f32,
    inverse_root: f32,
    eps: f32,
    count: f32,
}

impl Numbers {
    /// Of step number `count`, the first being 1: before it there is nothing whose bias could be corrected.
    pub fn new(hyper: Hyper, count: NonZeroU64) -> Numbers {
        let count = count.get();
        let Hyper { lr, betas: (beta1, beta2), eps, weight_decay } = hyper;
        let unbiased = |beta: f64| 1.0 - beta.powf(count as f64);
        Numbers {
            keep1: beta1 as f32,
            take1: (1.0 - beta1) as f32,
            take2: (1.0 - beta2) as f32,
            decay: (lr * weight_decay) as f32,
            step_size: (lr / unbiased(beta1)) as f32,
            inverse_root: (1.0 / unbiased(beta2).sqrt()) as f32,
            eps: eps as f32,
            count: count as f32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(hyper: Hyper, count: u64) -> Numbers {
        Numbers::new(hyper, NonZeroU64::new(count).unwrap())
    }

    #[test]
    fn the_corrections_are_those_of_the_step() {
        let hyper = Hyper { lr: 0.5, betas: (0.5, 0.75), eps: 1e-8, weight_decay: 0.25 };
        let first = numbers(hyper, 1);
        assert_eq!((first.step_size, first.inverse_root, first.decay, first.count), (1.0, 2.0, 0.125, 1.0));
        // lr / (1 − ½²), 1 / √(1 − ¾²)
        let second = numbers(hyper, 2);
        assert_eq!((second.step_size, second.inverse_root), ((0.5 / 0.75) as f32, 1.5118579));
        // Without memory there is nothing to correct.
        let none = numbers(Hyper { betas: (0.0, 0.0), ..hyper }, 7);
        assert_eq!((none.step_size, none.inverse_root, none.take1), (0.5, 1.0, 1.0));
    }
}
