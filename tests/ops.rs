//! The observer of operators: who made an allocation, and what backward spends on each scope.
#![cfg(feature = "torch")]

mod common;

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::AtomicBool;

use common::{MemorySink, gpt, turn};
use stepledger::probe::{Options, Probe, scope};
use stepledger::record::{AllocationRow, Category, Detail, Phase, PhaseRow, SpanKind, StepRecords, Trace};
use stepledger::train::{AdamWConfig, AdamWKind, Attention, Config, train};
use tch::{Device, Kind, Tensor};

fn small() -> Config {
    Config { layers: 2, width: 32, heads: 2, seq: 16, batch: 4, ..gpt() }
}

fn last_step(config: &Config, trace: Trace) -> StepRecords {
    let sink = MemorySink::default();
    let options = Options::new("test").trace(trace);
    train(config, options, sink.clone(), &mut |_| (), &AtomicBool::new(false)).unwrap();
    let kept = sink.0.borrow();
    kept.steps.last().unwrap().clone()
}

fn made_in(step: &StepRecords, phase: Phase) -> impl Iterator<Item = &AllocationRow> {
    let number = step.step.step;
    step.ended.iter().filter(move |row| row.step == Some(number) && row.phase == Some(phase))
}

#[test]
fn every_allocation_of_forward_and_backward_has_an_operator_and_a_scope() {
    let _turn = turn();
    for threads in [1, 2] {
        for attention in [Attention::Sdpa, Attention::Math] {
            let step = last_step(&Config { attention, threads, ..small() }, Trace::Ops);
            let scopes: HashSet<_> = made_in(&step, Phase::Forward).map(|row| row.scope.clone()).collect();
            for row in made_in(&step, Phase::Forward) {
                assert!(row.op.as_deref().is_some_and(|op| op.starts_with("aten::")), "{row:?}");
                assert!(row.scope.is_some(), "{row:?}");
            }
            let mut of_a_scope = 0;
            for row in made_in(&step, Phase::Backward) {
                // A backward allocation carries its node, and the scope of the forward operator that this is the
                // backward of; only the gradient that backward begins with, one number, belongs to none.
                if row.scope.is_some() {
                    of_a_scope += 1;
                    assert!(scopes.contains(&row.scope), "{row:?}");
                    assert!(row.op.as_deref().is_some_and(|op| op.contains("Backward")), "{row:?}");
                } else {
                    assert!(row.bytes == 4, "{row:?}");
                }
            }
            assert!(of_a_scope > 20, "{of_a_scope}");
        }
    }
}

/// The sizes of a block's matrices tell which scope their gradients must have.
#[test]
fn a_gradient_is_made_in_the_scope_of_its_parameter() {
    let _turn = turn();
    let step = last_step(&small(), Trace::Ops);
    // In the last step's records: gradients of the step before, which this step freed.
    let gradients: Vec<_> = step.ended.iter().filter(|row| row.category == Category::Gradient).collect();
    assert_eq!(gradients.len() as i64, small().shape().variables());
    for row in gradients {
        let name = row.name.as_deref().unwrap();
        let module = name.trim_start_matches("transformer.");
        match row.scope.as_deref() {
            Some("embed") => assert!(module.starts_with("wte") || module.starts_with("wpe"), "{row:?}"),
            Some(scope) => assert!(module.starts_with(scope), "{row:?}"),
            None => panic!("{row:?}"),
        }
    }
}

fn backward(step: &StepRecords) -> (&PhaseRow, Vec<&PhaseRow>) {
    let rows = || step.phases.iter().filter(|row| row.phase == Phase::Backward);
    let phase = rows().find(|row| row.kind == SpanKind::Phase).unwrap();
    (phase, rows().filter(|row| row.kind == SpanKind::Node).collect())
}

#[test]
fn backwards_time_is_told_by_forwards_scopes() {
    let _turn = turn();
    let step = last_step(&small(), Trace::Ops);
    let (phase, scopes) = backward(&step);
    let names: HashSet<_> = scopes.iter().map(|row| &*row.name).collect();
    for expected in ["embed", "h.0.ln_1", "h.0.attn", "h.0.mlp", "h.1.attn", "ln_f", "lm_head", "loss"] {
        assert!(names.contains(expected), "{expected} is not in {names:?}");
    }
    assert_eq!(names.len(), scopes.len(), "a scope has one row");
    // No node is counted twice: together they take no more than backward.
    let sum: i64 = scopes.iter().map(|row| row.total_ns).sum();
    assert!(sum > 0 && sum <= phase.total_ns, "{sum} of {}", phase.total_ns);
    assert!(scopes.iter().all(|row| row.calls > 0));
    assert!(backward(&last_step(&small(), Trace::Allocations)).1.is_empty());
}

/// Observing changes nothing of what is observed: bytes, categories and losses are the same.
#[test]
fn the_account_is_the_same_at_both_depths() {
    let _turn = turn();
    let [coarse, fine] = [Trace::Allocations, Trace::Ops].map(|trace| last_step(&small(), trace));
    assert_eq!(coarse.step.loss, fine.step.loss);
    let bytes = |step: &StepRecords| -> Vec<_> {
        step.moments.iter().map(|row| (row.moment, row.bytes, row.allocator_bytes)).collect()
    };
    assert_eq!(bytes(&coarse), bytes(&fine));
}

/// At a failure too: the same blocks under the same words, whatever an exception freed within its operator.
#[test]
fn the_account_of_a_failure_is_the_same_at_both_depths() {
    let _turn = turn();
    let adamw = AdamWConfig { kind: AdamWKind::Foreach, ..AdamWConfig::default() };
    // The optimizer fails, backward, and forward.
    for (config, mib) in [
        (Config { batch: 1, seq: 8, adamw, ..gpt() }, 14),
        (Config { batch: 1, seq: 8, ..gpt() }, 5),
        (Config { batch: 64, ..gpt() }, 64),
    ] {
        let [coarse, fine] =
            [Trace::Allocations, Trace::Ops].map(|trace| at_failure(&config, mib << 20, trace));
        assert!(!coarse.is_empty());
        assert_eq!(coarse, fine, "{mib} MiB");
    }
}

/// Bytes by category and detail as the limit was hit.
fn at_failure(config: &Config, limit: i64, trace: Trace) -> BTreeMap<(Category, Option<Detail>), i64> {
    let sink = MemorySink::default();
    let options = Options::new("test").trace(trace).limit(Some(limit));
    train(config, options, sink.clone(), &mut |_| (), &AtomicBool::new(false)).unwrap();
    let kept = sink.0.borrow();
    let at_ns = kept.run.as_ref().unwrap().out_of_memory.as_ref().unwrap().at_ns;
    let ended = kept.steps.iter().flat_map(|records| &records.ended);
    let rows = ended.chain(kept.between.iter().flat_map(|records| &records.ended)).chain(&kept.open);
    let mut bytes = BTreeMap::new();
    for row in rows.filter(|row| row.at_ns <= at_ns && row.freed_ns.is_none_or(|freed| freed > at_ns)) {
        *bytes.entry((row.category, row.detail)).or_default() += row.bytes;
    }
    bytes
}

#[test]
fn what_another_thread_runs_forward_does_not_get_this_ones_scopes() {
    let _turn = turn();
    let sink = MemorySink::default();
    let mut probe = Probe::start(Options::new("test").trace(Trace::Ops), sink.clone()).unwrap();
    let weight = || Tensor::ones([64, 64], (Kind::Float, Device::Cpu)).set_requires_grad(true);
    let forward = |weight: &Tensor| weight.matmul(weight).tanh().sum(Kind::Float);
    let (ours, theirs) = (weight(), weight());
    let mut step = probe.step();
    let (our_loss, their_loss) = step.forward(|| {
        let _scope = scope("ours");
        let our_loss = forward(&ours);
        // Autograd counts each thread's nodes from 0.
        let their_loss = std::thread::spawn(move || forward(&theirs)).join().unwrap();
        (our_loss, their_loss)
    });
    step.backward(|| their_loss.backward());
    drop((our_loss, their_loss));
    step.finish(None, None).unwrap();
    probe.finish().unwrap();
    let kept = sink.0.borrow();
    let backward: Vec<_> = made_in(&kept.steps[0], Phase::Backward).collect();
    assert!(backward.len() > 3 && backward.iter().all(|row| row.scope.is_none()), "{backward:?}");
}

/// A gradient of the loss's own, as for a penalty: its nodes run in forward, and are no part of backward.
#[test]
fn a_backward_within_forward_is_no_part_of_backward() {
    let _turn = turn();
    let sink = MemorySink::default();
    let mut probe = Probe::start(Options::new("test").trace(Trace::Ops), sink.clone()).unwrap();
    let mut step = probe.step();
    let loss = step.forward(|| {
        let _scope = scope("penalty");
        let x = Tensor::ones([600, 600], (Kind::Float, Device::Cpu)).set_requires_grad(true);
        let score = x.matmul(&x).tanh().sum(Kind::Float);
        let gradient = Tensor::run_backward(&[&score], &[&x], true, true).remove(0);
        (&gradient * &gradient).sum(Kind::Float)
    });
    step.backward(|| loss.backward());
    step.finish(None, None).unwrap();
    probe.finish().unwrap();
    let kept = sink.0.borrow();
    let (phase, scopes) = backward(&kept.steps[0]);
    let sum: i64 = scopes.iter().map(|row| row.total_ns).sum();
    assert!(sum > 0 && sum <= phase.total_ns, "{sum} of {}", phase.total_ns);
}

/// A scope belongs to the phase it is opened in.
#[test]
fn a_scope_around_a_phase_is_none_of_the_phases() {
    let _turn = turn();
    for trace in [Trace::Allocations, Trace::Ops] {
        let sink = MemorySink::default();
        let mut probe = Probe::start(Options::new("test").trace(trace), sink.clone()).unwrap();
        let mut step = probe.step();
        let around = scope("around");
        let before = Tensor::ones([1], (Kind::Float, Device::Cpu));
        step.forward(|| {
            let first = Tensor::ones([2], (Kind::Float, Device::Cpu));
            let within = {
                let _scope = scope("within");
                Tensor::ones([3], (Kind::Float, Device::Cpu))
            };
            drop((first, within, Tensor::ones([4], (Kind::Float, Device::Cpu))));
        });
        drop((before, Tensor::ones([5], (Kind::Float, Device::Cpu)), around));
        step.finish(None, None).unwrap();
        probe.finish().unwrap();
        let kept = sink.0.borrow();
        let scope_of = |numbers: i64| {
            let row = kept.steps[0].ended.iter().find(|row| row.bytes == 4 * numbers).unwrap();
            row.scope.as_deref()
        };
        let scopes: Vec<_> = (1..=5).map(scope_of).collect();
        assert_eq!(scopes, [Some("around"), None, Some("within"), None, Some("around")], "{trace}");
    }
}
