//! What backward gives is what it gives without checkpointing, bit for bit.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use stepledger::train::{autocast, checkpoint, checkpoint_one};
use tch::{Device, Kind, TchError, Tensor, kind::FLOAT_CPU, nn, nn::Module};

use crate::common::turn;
use crate::{Stack, assert_same, leaf, loss, taken_gradient};

#[test]
fn a_stack_of_blocks() {
    let _turn = turn();
    for dropout in [0.0, 0.1] {
        let stack = Stack::new(4, 32, 16, dropout);
        assert_same(&stack.step(true), &stack.step(false));
    }
}

#[test]
fn an_input_that_wants_a_gradient() {
    let _turn = turn();
    let mut stack = Stack::new(2, 8, 8, 0.1);
    stack.x = stack.x.set_requires_grad(true);
    assert_same(&stack.step(true), &stack.step(false));
}

#[test]
fn under_autocast() {
    let _turn = turn();
    let stack = Stack::new(4, 32, 16, 0.1);
    let step = |checkpointed| {
        tch::manual_seed(1);
        let loss = autocast(Device::Cpu, Kind::BFloat16, || loss(stack.output(checkpointed)?));
        let loss: Result<Tensor, TchError> = loss.unwrap();
        let loss = loss.unwrap();
        // Outside the region: recomputation must go back into it by itself.
        loss.f_backward().unwrap();
        let gradients = stack.parameters().map(taken_gradient).collect::<Vec<_>>();
        std::iter::once(loss.detach()).chain(gradients).collect::<Vec<_>>()
    };
    assert_same(&step(true), &step(false));
    // And it is not what f32 gives.
    assert!(!step(true)[0].equal(&stack.step(true)[0]));
}

/// Two inputs that want gradients, one that does not, one of integers; three outputs, one of them of integers.
#[test]
fn several_inputs_and_outputs() {
    let _turn = turn();
    let (a, b) = (leaf(&[4, 6]), leaf(&[4, 6]));
    let (mask, tokens) = (Tensor::rand([4, 6], FLOAT_CPU).gt(0.5), Tensor::from_slice(&[0i64, 3, 1, 2]));
    let table = leaf(&[5, 6]);
    let segment = || {
        let table = table.shallow_clone();
        move |inputs: Vec<Tensor>| {
            let [a, b, mask, tokens] = &inputs[..] else { panic!("four inputs") };
            let embedded = Tensor::f_embedding(&table, tokens, -1, false, false)?;
            let product = a.f_mul(b)?.f_tanh()?.f_add(&embedded)?;
            let counts = tokens.f_add(tokens)?;
            Ok(vec![product.f_masked_fill(mask, 0.0)?, a.f_exp()?, counts])
        }
    };
    let inputs = || [&a, &b, &mask, &tokens].map(Tensor::shallow_clone).into_iter().collect();
    let step = |outputs: Vec<Tensor>| {
        assert_eq!(outputs[2].kind(), Kind::Int64);
        // Not every output is used alike.
        (&outputs[0] * &outputs[1]).sum(Kind::Float).backward();
        [&a, &b, &table].map(taken_gradient)
    };
    let plain = step(segment()(inputs()).unwrap());
    assert_same(&step(checkpoint("several", inputs(), segment()).unwrap()), &plain);
}

#[test]
fn an_output_that_nobody_uses() {
    let _turn = turn();
    let x = leaf(&[4]);
    let both = |inputs: Vec<Tensor>| Ok(vec![inputs[0].f_exp()?, inputs[0].f_sin()?]);
    let outputs = checkpoint("half", vec![x.shallow_clone()], both).unwrap();
    outputs[1].sum(Kind::Float).backward();
    assert!(x.grad().equal(&x.cos()));
}

/// A tied weight gets the sum of what each segment gives.
#[test]
fn parameters_shared_between_segments() {
    let _turn = turn();
    let (x, weight) = (leaf(&[4, 8]), leaf(&[8, 8]));
    let run = |checkpointed: bool, kind: Kind| {
        let mut hidden = x.shallow_clone();
        let layers = || -> Result<Tensor, TchError> {
            for _ in 0..3 {
                let weight = weight.shallow_clone();
                let layer = move |x: Tensor| x.f_linear(&weight, None::<&Tensor>)?.f_tanh();
                hidden = if checkpointed { checkpoint_one("tied", hidden, layer)? } else { layer(hidden)? };
            }
            Ok(hidden)
        };
        let output = match kind {
            Kind::Float => layers(),
            // One copy of the weight for all three, made inside the first segment.
            kind => autocast(Device::Cpu, kind, layers).unwrap(),
        };
        output.unwrap().square().sum(Kind::Float).backward();
        [&x, &weight].map(taken_gradient)
    };
    for kind in [Kind::Float, Kind::BFloat16] {
        assert_same(&run(true, kind), &run(false, kind));
    }
}

#[test]
fn segments_in_segments() {
    let _turn = turn();
    let stack = Stack::new(4, 16, 8, 0.1);
    let plain = stack.step(false);
    let runs = Arc::new(AtomicUsize::new(0));
    let pair = |number: usize| {
        let (blocks, runs) = ([stack.blocks[number].clone(), stack.blocks[number + 1].clone()], runs.clone());
        move |mut x: Tensor| {
            for block in blocks.clone() {
                let runs = runs.clone();
                x = checkpoint_one("inner", x, move |x| {
                    runs.fetch_add(1, Ordering::Relaxed);
                    block.forward(x)
                })?;
            }
            Ok(x)
        }
    };
    tch::manual_seed(1);
    let hidden = checkpoint_one("outer.0", stack.x.shallow_clone(), pair(0)).unwrap();
    let hidden = checkpoint_one("outer.1", hidden, pair(2)).unwrap();
    let loss = loss(hidden).unwrap();
    assert_eq!(runs.load(Ordering::Relaxed), 4);
    loss.backward();
    // Each once in forward, once as its outer segment is recomputed, once itself.
    assert_eq!(runs.load(Ordering::Relaxed), 12);
    let nested: Vec<_> =
        std::iter::once(loss.detach()).chain(stack.parameters().map(taken_gradient)).collect();
    assert_same(&nested, &plain);
}

/// A module that cannot be cloned, behind a lock, and a counter of the closure's own.
#[test]
fn a_module_of_tchs_and_state_of_the_closures() {
    let _turn = turn();
    let store = nn::VarStore::new(Device::Cpu);
    let layers = nn::seq().add(nn::linear(store.root(), 4, 4, Default::default())).add_fn(Tensor::tanh);
    let (layers, x) = (Arc::new(Mutex::new(layers)), leaf(&[2, 4]));
    let runs = Arc::new(AtomicUsize::new(0));
    let (shared, counter) = (layers.clone(), runs.clone());
    let output = checkpoint_one("module", x.shallow_clone(), move |x| {
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(shared.lock().unwrap().forward(&x))
    });
    output.unwrap().sum(Kind::Float).backward();
    let ours = taken_gradient(&x);
    assert_eq!(runs.load(Ordering::Relaxed), 2);
    layers.lock().unwrap().forward(&x).sum(Kind::Float).backward();
    assert_same(&[ours], &[taken_gradient(&x)]);
    // The graph is gone, and the closure with it.
    assert_eq!(Arc::strong_count(&runs), 1);
}

/// Only a parameter wants a gradient.
#[test]
fn no_input_wants_a_gradient() {
    let _turn = turn();
    let (x, weight) = (Tensor::randn([4, 8], FLOAT_CPU), leaf(&[8, 8]));
    let captured = weight.shallow_clone();
    let output = checkpoint_one("frozen", x.shallow_clone(), move |x| x.f_matmul(&captured)?.f_tanh());
    output.unwrap().sum(Kind::Float).backward();
    let ours = taken_gradient(&weight);
    x.matmul(&weight).tanh().sum(Kind::Float).backward();
    assert_same(&[ours], &[taken_gradient(&weight)]);
}

#[test]
fn no_inputs_at_all() {
    let _turn = turn();
    let weight = leaf(&[3]);
    let captured = weight.shallow_clone();
    let output = checkpoint("alone", vec![], move |_| Ok(vec![captured.f_exp()?])).unwrap();
    output[0].sum(Kind::Float).backward();
    assert!(weight.grad().equal(&weight.exp()));
}

#[test]
fn nothing_is_differentiated() {
    let _turn = turn();
    let stack = Stack::new(2, 8, 8, 0.0);
    let output = tch::no_grad(|| stack.output(true).unwrap());
    assert!(!output.requires_grad());
    assert!(output.equal(&stack.output(true).unwrap()));
    // Nor is there anything to, where nothing wants a gradient.
    let double = checkpoint_one("constant", stack.x.shallow_clone(), |x| x.f_exp()).unwrap();
    assert!(!double.requires_grad());
}

#[test]
fn a_graph_used_twice() {
    let _turn = turn();
    let x = leaf(&[4]);
    let output = checkpoint_one("twice", x.shallow_clone(), |x| x.f_exp()?.f_sin()).unwrap();
    let loss = output.sum(Kind::Float);
    let once = Tensor::f_run_backward(&[&loss], &[&x], true, false).unwrap();
    let again = Tensor::f_run_backward(&[&loss], &[&x], false, false).unwrap();
    assert_same(&again, &once);
    let error = Tensor::f_run_backward(&[&loss], &[&x], false, false).unwrap_err().to_string();
    assert!(error.contains("backward through the graph a second time"), "{error}");
}

#[test]
fn gradients_of_gradients() {
    let _turn = turn();
    let x = leaf(&[4]);
    let output = checkpoint_one("curved", x.shallow_clone(), |x| x.f_exp()?.f_sin()).unwrap();
    let first = Tensor::f_run_backward(&[output.sum(Kind::Float)], &[&x], true, true).unwrap();
    let second = Tensor::f_run_backward(&[first[0].sum(Kind::Float)], &[&x], false, false).unwrap();
    let e = x.detach().exp();
    let expected = &e * e.cos() - e.square() * e.sin();
    assert!(second[0].allclose(&expected, 1e-5, 1e-6, false));
}

/// Gradients that add up to those there are.
#[test]
fn accumulation_over_two_batches() {
    let _turn = turn();
    let stack = Stack::new(2, 8, 8, 0.1);
    let two = |checkpointed: bool| {
        tch::manual_seed(1);
        for _ in 0..2 {
            loss(stack.output(checkpointed).unwrap()).unwrap().backward();
        }
        stack.parameters().map(taken_gradient).collect::<Vec<_>>()
    };
    assert_same(&two(true), &two(false));
}

/// A long graph is taken down segment by segment, not by a function in a function for each.
#[test]
fn many_segments() {
    let _turn = turn();
    let x = leaf(&[1]);
    let deep = || {
        let mut hidden = x.shallow_clone();
        for _ in 0..20_000 {
            hidden = checkpoint_one("deep", hidden, |x| x.f_sin()?.f_cos()).unwrap();
        }
        hidden
    };
    drop(deep());
    deep().sum(Kind::Float).backward();
    assert!(x.grad().defined());
}
