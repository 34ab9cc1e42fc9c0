//! Recomputation that is left at the last tensor backward needs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use stepledger::train::Checkpoint;
use tch::{Kind, Tensor};

use crate::common::turn;
use crate::{Stack, assert_same, leaf, loss, taken_gradient};

#[test]
fn the_gradients_are_the_same() {
    let _turn = turn();
    let stack = Stack::new(3, 16, 8, 0.1);
    let plain = stack.step(false);
    tch::manual_seed(1);
    let mut hidden = stack.x.shallow_clone();
    for block in &stack.blocks {
        let block = block.clone();
        hidden = Checkpoint::new("block").stop_early().run_one(hidden, move |x| block.forward(x)).unwrap();
    }
    let loss = loss(hidden).unwrap();
    loss.backward();
    let ours: Vec<_> = std::iter::once(loss.detach()).chain(stack.parameters().map(taken_gradient)).collect();
    assert_same(&ours, &plain);
}

#[test]
fn what_comes_after_the_last_saved_tensor_does_not_run() {
    let _turn = turn();
    let (x, weight) = (leaf(&[2, 4]), leaf(&[4, 4]));
    let (begun, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (begins, ends, captured) = (begun.clone(), ended.clone(), weight.shallow_clone());
    let output = Checkpoint::new("early").stop_early().run_one(x.shallow_clone(), move |x| {
        begins.fetch_add(1, Ordering::Relaxed);
        let product = x.f_exp()?.f_matmul(&captured)?;
        ends.fetch_add(1, Ordering::Relaxed);
        product.f_add(&x)
    });
    output.unwrap().sum(Kind::Float).backward();
    assert_eq!((begun.load(Ordering::Relaxed), ended.load(Ordering::Relaxed)), (2, 1));
    let ours = [&x, &weight].map(taken_gradient);
    (x.exp().matmul(&weight) + &x).sum(Kind::Float).backward();
    assert_same(&ours, &[&x, &weight].map(taken_gradient));
}

/// An outer segment ends as an inner one in it saves its input.
#[test]
fn nested() {
    let _turn = turn();
    let x = leaf(&[4]);
    let output = Checkpoint::new("outer").stop_early().run_one(x.shallow_clone(), |x| {
        let inner = Checkpoint::new("inner").stop_early();
        inner.run_one(x.f_exp()?, |x: Tensor| x.f_sin()?.f_exp()?.f_add_scalar(1.0))
    });
    output.unwrap().sum(Kind::Float).backward();
    let ours = taken_gradient(&x);
    (x.exp().sin().exp() + 1.0).sum(Kind::Float).backward();
    assert_same(&[ours], &[taken_gradient(&x)]);
}

/// Errors are still errors.
#[test]
fn an_error_before_that() {
    let _turn = turn();
    let runs = AtomicUsize::new(0);
    let output = Checkpoint::new("bad").stop_early().run_one(leaf(&[4]), move |x| {
        let y = x.f_exp()?;
        if runs.fetch_add(1, Ordering::Relaxed) == 0 { y.f_sin() } else { y.f_view([3])?.f_sin() }
    });
    let error = output.unwrap().sum(Kind::Float).f_backward().unwrap_err().to_string();
    assert!(error.contains("segment \"bad\"") && error.contains("invalid for input of size 4"), "{error}");
}
