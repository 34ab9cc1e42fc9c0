//! What goes wrong in a segment is an error with its name, in forward and in backward.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use stepledger::train::{checkpoint, checkpoint_one};
use tch::{Kind, TchError, Tensor, kind::FLOAT_CPU};

use crate::common::turn;
use crate::leaf;

/// Says how often it has been asked.
fn counter() -> impl Fn() -> usize + Send + Clone + 'static {
    let calls = Arc::new(AtomicUsize::new(0));
    move || calls.fetch_add(1, Ordering::Relaxed)
}

#[track_caller]
fn assert_says<T>(outcome: Result<T, TchError>, parts: &[&str]) {
    let error = outcome.err().expect("an error").to_string();
    for part in parts.iter().chain(&["checkpointed segment \"bad\""]) {
        assert!(error.contains(part), "no {part:?} in: {error}");
    }
    assert!(!error.contains("Exception raised from"), "{error}");
}

/// Backward through a segment that does one thing in forward and another in recomputation.
fn changed(
    first: impl Fn(&Tensor) -> Result<Vec<Tensor>, TchError> + Send + 'static,
    then: impl Fn(&Tensor) -> Result<Vec<Tensor>, TchError> + Send + 'static,
) -> Result<(), TchError> {
    let x = leaf(&[4, 4]);
    let run = counter();
    let outputs = checkpoint("bad", vec![x.shallow_clone()], move |inputs| {
        if run() == 0 { first(&inputs[0]) } else { then(&inputs[0]) }
    })?;
    outputs[0].f_sum(Kind::Float)?.f_backward()
}

fn exp(x: &Tensor) -> Result<Vec<Tensor>, TchError> {
    Ok(vec![x.f_exp()?])
}

#[test]
fn an_error_in_forward() {
    let _turn = turn();
    let outcome = checkpoint_one("bad", leaf(&[4, 4]), |x| x.f_matmul(&Tensor::ones([5], FLOAT_CPU)));
    assert_says(outcome, &["size mismatch"]);
    // Also where nothing is saved.
    let outcome = tch::no_grad(|| checkpoint_one("bad", leaf(&[4]), |x| x.f_view([3])));
    assert_says(outcome, &["invalid for input of size 4"]);
}

#[test]
fn a_panic_in_forward() {
    let _turn = turn();
    let outcome = checkpoint_one("bad", leaf(&[4]), |x| panic!("dimension {}", x.dim()));
    assert_says(outcome, &["panicked: dimension 1"]);
}

#[test]
fn an_error_or_a_panic_in_recomputation() {
    let _turn = turn();
    let outcome = changed(exp, |x| Ok(vec![x.f_view([3])?]));
    assert_says(outcome, &["in recomputation", "invalid for input of size 16"]);
    let outcome = changed(exp, |_| panic!("too late"));
    assert_says(outcome, &["in recomputation", "panicked: too late"]);
    // An operation that tch itself panics at.
    let outcome = changed(exp, |x| Ok(vec![x.view([3])]));
    assert_says(outcome, &["in recomputation", "panicked", "invalid for input of size 16"]);
    // All is well again afterwards.
    assert!(changed(exp, exp).is_ok());
}

#[test]
fn an_error_in_a_segment_in_a_segment() {
    let _turn = turn();
    let run = counter();
    let outer = checkpoint_one("outer", leaf(&[4]), move |x| {
        let run = run.clone();
        let inner = move |x: Tensor| if run() == 2 { x.f_view([3]) } else { x.f_exp() };
        checkpoint_one("bad", x.f_sin()?, inner)
    });
    let outcome = outer.unwrap().sum(Kind::Float).f_backward();
    assert_says(outcome, &["in recomputation", "invalid for input of size 4"]);
}

#[test]
fn other_outputs_than_in_forward() {
    let _turn = turn();
    let outcome = changed(exp, |x| Ok(vec![x.f_exp()?, x.f_exp()?]));
    assert_says(outcome, &["it gave 1 outputs in forward and gives 2 in recomputation"]);
    let outcome = changed(exp, |x| Ok(vec![x.f_exp()?.f_view([2, 8])?]));
    assert_says(outcome, &["output 0 was [4, 4] Float on Cpu in forward and is [2, 8] Float"]);
    let outcome = changed(exp, |x| Ok(vec![x.f_exp()?.f_to_kind(Kind::Double)?]));
    assert_says(outcome, &["output 0 was [4, 4] Float on Cpu in forward and is [4, 4] Double"]);
}

#[test]
fn other_operators_than_in_forward() {
    let _turn = turn();
    let outcome = changed(exp, |x| Ok(vec![x.f_exp()?.f_sin()?]));
    assert_says(outcome, &["2 tensors for backward in recomputation and saved 1 in forward"]);
    let narrow = |x: &Tensor| -> Result<_, TchError> { Ok(vec![x.f_narrow(0, 0, 2)?.f_exp()?]) };
    let outcome = changed(narrow, |x| Ok(vec![x.f_exp()?.f_narrow(0, 0, 2)?]));
    assert_says(outcome, &["tensor 0", "was [2, 4] Float", "is [4, 4] Float"]);
}

#[test]
fn an_input_as_output() {
    let _turn = turn();
    let outcome = checkpoint_one("bad", leaf(&[4]), Ok);
    assert_says(outcome, &["returns its input 0 itself", "clone it"]);
    let copy = checkpoint_one("good", leaf(&[4]), |x| Ok(x.copy()));
    assert!(copy.is_ok());
}

#[test]
fn an_input_modified_in_place() {
    let _turn = turn();
    // By the segment.
    let outcome = checkpoint_one("bad", leaf(&[4]) * 1.0, |mut x| x.f_add_scalar_(1.0)?.f_exp());
    assert_says(outcome, &["modifies its input 0 in place"]);
    // By others, before backward.
    let mut x = leaf(&[4]) * 1.0;
    let output = checkpoint_one("bad", x.shallow_clone(), |x| x.f_exp()).unwrap();
    let _ = x.detach().f_add_scalar_(1.0).unwrap();
    let _ = x.f_add_scalar_(1.0).unwrap();
    let outcome = output.sum(Kind::Float).f_backward();
    assert_says(outcome, &["its input 0", "modified by an inplace operation", "expected version 0"]);
}

/// Without the check the gradient would be that of other weights; PyTorch does not tell.
#[test]
fn a_parameter_modified_before_backward() {
    let _turn = turn();
    let mut weight = leaf(&[4, 4]);
    let captured = weight.shallow_clone();
    let output = checkpoint_one("bad", leaf(&[2, 4]), move |x| x.f_linear(&captured, None::<&Tensor>));
    let _ = tch::no_grad(|| weight.f_add_scalar_(1.0).unwrap());
    let outcome = output.unwrap().sum(Kind::Float).f_backward();
    assert_says(outcome, &["modified in place since forward"]);
}

/// An error without checkpointing too, there of libtorch's.
#[test]
fn a_saved_tensor_modified_by_the_segment() {
    let _turn = turn();
    let outcome =
        checkpoint_one("bad", leaf(&[4]), |x| x.f_exp()?.f_add_scalar_(1.0)).unwrap().sum(Kind::Float);
    assert_says(outcome.f_backward(), &["modified in place after"]);
}

#[test]
fn backward_inside_a_segment() {
    let _turn = turn();
    let outcome = checkpoint_one("bad", leaf(&[4]), |x| {
        let y = x.f_exp()?;
        y.f_sum(Kind::Float)?.f_backward()?;
        Ok(y)
    });
    assert_says(outcome, &["backward runs through it before it has ended"]);
}

/// Neither a graph without backward nor one that failed holds what the segment captured.
#[test]
fn nothing_lives_on() {
    let _turn = turn();
    let captured = Arc::new(());
    let hold = || {
        let captured = captured.clone();
        move || Arc::strong_count(&captured)
    };
    let held = hold();
    drop(
        checkpoint_one("unused", leaf(&[4]) * 1.0, move |x| x.f_mul_scalar(held() as i64)?.f_exp()).unwrap(),
    );
    let held = hold();
    let outcome = checkpoint_one("bad", leaf(&[4]) * 1.0, move |mut x| {
        held();
        x.f_exp_()?.f_sin()
    });
    assert_says(outcome, &["in place"]);
    assert_eq!(Arc::strong_count(&captured), 1);
}
