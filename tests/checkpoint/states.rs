//! The random state and autocast, in recomputation and after it.

use std::sync::{Arc, Mutex};

use stepledger::train::{autocast, checkpoint_one};
use tch::{Device, Kind, TchError, Tensor, kind::FLOAT_CPU};

use crate::common::turn;
use crate::{Stack, leaf};

/// What is drawn after a step, uniform and normal: the latter keeps one number for the next time.
fn drawn() -> Vec<Tensor> {
    vec![Tensor::randn([3], FLOAT_CPU), Tensor::rand([3], FLOAT_CPU), Tensor::randn([1], FLOAT_CPU)]
}

#[test]
fn later_draws_are_as_without_checkpointing() {
    let _turn = turn();
    let stack = Stack::new(3, 8, 8, 0.1);
    let after = |checkpointed| {
        stack.step(checkpointed);
        drawn()
    };
    crate::assert_same(&after(true), &after(false));
}

#[test]
fn later_draws_are_the_same_after_an_error_in_recomputation() {
    let _turn = turn();
    let calls = Mutex::new(0);
    let segment = move |x: Tensor| {
        *calls.lock().unwrap() += 1;
        let dropped = x.f_dropout(0.5, true)?;
        if *calls.lock().unwrap() == 1 { dropped.f_exp() } else { dropped.f_view([77]) }
    };
    tch::manual_seed(3);
    let loss = checkpoint_one("draws", leaf(&[8]), segment).unwrap().sum(Kind::Float);
    assert!(loss.f_backward().is_err());
    let ours = drawn();
    tch::manual_seed(3);
    let _ = leaf(&[8]).dropout(0.5, true);
    crate::assert_same(&ours, &drawn());
}

/// The second of a pair of normal numbers is part of the state.
#[test]
fn the_spare_normal_number() {
    let _turn = turn();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = seen.clone();
    tch::manual_seed(5);
    // Fewer than 16 numbers are drawn one by one, in pairs.
    let _ = Tensor::randn([1], FLOAT_CPU);
    let output = checkpoint_one("noise", leaf(&[3]), move |x| {
        let noise = Tensor::f_randn([3], FLOAT_CPU)?;
        noted.lock().unwrap().push(noise.copy());
        x.f_mul(&noise)
    });
    let loss = output.unwrap().sum(Kind::Float);
    let _ = Tensor::randn([2], FLOAT_CPU);
    loss.backward();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 2);
    assert!(seen[0].equal(&seen[1]));
}

/// The type that a product has says whether autocast is on, and in which type.
fn autocasts() -> Result<Kind, TchError> {
    Tensor::f_ones([2, 2], FLOAT_CPU)?.f_matmul(&Tensor::f_ones([2, 2], FLOAT_CPU)?)?.f_kind()
}

#[test]
fn autocast_is_as_in_forward_and_afterwards_as_before() {
    let _turn = turn();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let segment = || {
        let seen = seen.clone();
        move |x: Tensor| {
            seen.lock().unwrap().push(autocasts()?);
            x.f_exp()
        }
    };
    // On in forward, off in backward.
    let output = autocast(Device::Cpu, Kind::BFloat16, || checkpoint_one("on", leaf(&[3]), segment()));
    output.unwrap().unwrap().sum(Kind::Float).backward();
    assert_eq!(autocasts().unwrap(), Kind::Float);
    // Off in forward, on in backward.
    let output = checkpoint_one("off", leaf(&[3]), segment()).unwrap();
    let after = autocast(Device::Cpu, Kind::Half, || {
        output.sum(Kind::Float).backward();
        autocasts()
    });
    assert_eq!(after.unwrap().unwrap(), Kind::Half);
    assert_eq!(*seen.lock().unwrap(), [Kind::BFloat16, Kind::BFloat16, Kind::Float, Kind::Float]);
}

/// Another thread may run backward, and be the last to hold the graph.
#[test]
fn backward_on_another_thread() {
    let _turn = turn();
    let x = leaf(&[4]);
    let output = checkpoint_one("moved", x.shallow_clone(), |x| x.f_exp()).unwrap();
    std::thread::spawn(move || output.sum(Kind::Float).backward()).join().unwrap();
    assert!(x.grad().equal(&x.exp()));
}
