//! What threads do that have no part in training, while the training thread trains.
#![cfg(feature = "torch")]

mod common;

use std::collections::HashSet;

use common::{Kept, MemorySink, turn};
use stepledger::probe::{Options, Probe, scope, this_thread_loads, this_thread_trains};
use stepledger::record::{AllocationRow, Category, Detail, Moment, Phase, Trace};
use stepledger::train::checkpoint_one;
use tch::kind::FLOAT_CPU;
use tch::nn::{self, Module, OptimizerConfig};
use tch::{Device, Kind, Tensor};

/// All lifetimes of a run.
fn lifetimes(kept: &Kept) -> Vec<&AllocationRow> {
    let in_steps = kept.steps.iter().flat_map(|records| &records.ended);
    let between = kept.between.iter().flat_map(|records| &records.ended);
    in_steps.chain(between).chain(&kept.open).collect()
}

/// Another thread does `theirs` twice: in forward, within the scope `ours`, and in backward while a node of its graph
/// runs there. Returns what all other threads allocated.
fn beside_training(trace: Trace, theirs: fn()) -> Vec<AllocationRow> {
    let sink = MemorySink::default();
    let mut probe = Probe::start(Options::new("beside").trace(trace), sink.clone()).unwrap();
    let weight = Tensor::ones([64, 64], FLOAT_CPU).set_requires_grad(true);
    let mut step = probe.step();
    let loss = step.forward(|| {
        let _scope = scope("ours");
        let segment = move |x: Tensor| {
            std::thread::spawn(theirs).join().unwrap();
            x.f_exp()
        };
        checkpoint_one("segment", weight.shallow_clone(), segment).unwrap().sum(Kind::Float)
    });
    step.backward(|| loss.backward());
    drop(loss);
    step.finish(None, None).unwrap();
    probe.finish().unwrap();
    let kept = sink.0.borrow();
    let home = lifetimes(&kept).iter().find(|row| row.scope.as_deref() == Some("ours")).unwrap().thread;
    lifetimes(&kept).into_iter().filter(|row| row.thread != home).cloned().collect()
}

#[test]
fn what_another_thread_makes_meanwhile_has_no_scope_and_is_no_operators_scratch() {
    let _turn = turn();
    for trace in [Trace::Allocations, Trace::Ops] {
        let rows = beside_training(trace, || drop(Tensor::zeros([777], FLOAT_CPU).cos()));
        assert_eq!(rows.len(), 4, "{rows:?}");
        for row in rows {
            assert_eq!((row.bytes, row.category), (4 * 777, Category::Workspace), "{row:?}");
            assert_ne!(row.detail, Some(Detail::KernelScratch), "{row:?}");
            assert_eq!((&row.op, &row.scope), (&None, &None), "{row:?}");
        }
    }
}

/// On two threads, flash attention's backward allocates on OpenMP's workers: those of the thread that runs it.
#[test]
fn another_threads_workers_work_for_that_thread() {
    let _turn = turn();
    let threads = tch::get_num_threads();
    tch::set_num_threads(2);
    let rows = beside_training(Trace::Ops, || {
        let x = Tensor::ones([4, 2, 32, 32], FLOAT_CPU).set_requires_grad(true);
        Tensor::scaled_dot_product_attention(&x, &x, &x, None::<Tensor>, 0.0, true, None, false)
            .sum(Kind::Float)
            .backward();
    });
    tch::set_num_threads(threads);
    let theirs: HashSet<_> = rows.iter().map(|row| row.thread).collect();
    assert!(theirs.len() > 2, "two threads and a worker at least, not {theirs:?}");
    for row in rows {
        assert_eq!(row.scope, None, "{row:?}");
        // Nodes of the backward graph are observed on all threads.
        assert!(row.op.as_deref().is_none_or(|op| op.contains("Backward") || op.contains("Grad")), "{row:?}");
    }
}

/// A thread that walks our graph works for us meanwhile, and not after; nor does one that ends its own graph at a parameter
/// of ours, whose node forward has made here.
#[test]
fn who_walked_a_graph_once_is_not_taken_for_training_afterwards() {
    let _turn = turn();
    for shared in [false, true] {
        let sink = MemorySink::default();
        let mut probe = Probe::start(Options::new("once").trace(Trace::Ops), sink.clone()).unwrap();
        let weight = Tensor::ones([64, 64], FLOAT_CPU).set_requires_grad(true);
        let theirs = weight.shallow_clone();
        let mut step = probe.step();
        let loss = step.forward(|| {
            let _scope = scope("ours");
            weight.exp().sum(Kind::Float)
        });
        step.backward(|| {
            let walk = move || {
                if shared {
                    theirs.sin().sum(Kind::Float).backward()
                } else {
                    loss.backward()
                }
                drop(Tensor::zeros([777], FLOAT_CPU).cos());
            };
            std::thread::spawn(walk).join().unwrap();
        });
        step.finish(None, None).unwrap();
        probe.finish().unwrap();
        let kept = sink.0.borrow();
        let rows = lifetimes(&kept);
        let later: Vec<_> = rows.iter().filter(|row| row.bytes == 4 * 777).collect();
        assert_eq!(later.len(), 2);
        for row in later {
            assert_eq!((&row.op, &row.scope), (&None, &None), "shared: {shared}");
            assert_eq!(row.detail, Some(Detail::OtherTemporary), "{row:?}");
        }
        let walked = |row: &&&AllocationRow| row.op.as_deref().is_some_and(|op| op.contains("Backward"));
        let scopes: HashSet<_> = rows.iter().filter(walked).map(|row| row.scope.as_deref()).collect();
        assert_eq!(scopes, HashSet::from([if shared { None } else { Some("ours") }]));
    }
}

/// Two threads walk a half of our graph each, with a worker of OpenMP's each: whose work is whose stays known.
#[test]
fn threads_that_walk_our_graph_at_once_keep_their_scopes_apart() {
    let _turn = turn();
    let threads = tch::get_num_threads();
    tch::set_num_threads(2);
    let sink = MemorySink::default();
    let mut probe = Probe::start(Options::new("halves").trace(Trace::Ops), sink.clone()).unwrap();
    for _ in 0..20 {
        let mut step = probe.step();
        let halves = step.forward(|| {
            ["a", "b"].map(|name| {
                let _scope = scope(name);
                let x = Tensor::ones([4, 2, 32, 32], FLOAT_CPU).set_requires_grad(true);
                let mixed =
                    Tensor::scaled_dot_product_attention(&x, &x, &x, None::<Tensor>, 0.0, true, None, false);
                mixed.sum(Kind::Float)
            })
        });
        step.backward(|| {
            std::thread::scope(|all| {
                for half in halves {
                    all.spawn(move || half.backward());
                }
            });
        });
        step.finish(None, None).unwrap();
    }
    probe.finish().unwrap();
    tch::set_num_threads(threads);
    let kept = sink.0.borrow();
    let scratch = |name: &str| {
        let rows = lifetimes(&kept).into_iter().filter(|row| row.detail == Some(Detail::KernelScratch));
        rows.filter(|row| row.scope.as_deref() == Some(name) && row.phase == Some(Phase::Backward)).count()
    };
    assert!(scratch("a") > 20 && scratch("a") == scratch("b"), "{} and {}", scratch("a"), scratch("b"));
}

/// As one that saves checkpoints or keeps metrics: what it makes and keeps is none of the step's, whatever that is at.
#[test]
fn what_another_thread_keeps_is_workspace() {
    let _turn = turn();
    for trace in [Trace::Allocations, Trace::Ops] {
        let sink = MemorySink::default();
        let store = nn::VarStore::new(Device::Cpu);
        let layer = nn::linear(store.root(), 8, 1, Default::default());
        let mut adam = nn::Adam::default().build(&store, 1e-3).unwrap();
        let mut probe = Probe::start(Options::new("saver").trace(trace), sink.clone()).unwrap();
        probe.watch(&store);
        let (ask, asked) = std::sync::mpsc::sync_channel::<i64>(0);
        let saver = std::thread::spawn(move || {
            // Each until the third after it.
            let mut kept = std::collections::VecDeque::new();
            for size in asked {
                kept.push_back(Tensor::zeros([size], FLOAT_CPU));
                if kept.len() > 3 {
                    kept.pop_front();
                }
            }
        });
        // Twice: what was asked for before is there.
        let make = |size: i64| [size, size].into_iter().for_each(|size| ask.send(size).unwrap());
        for _ in 0..4 {
            let mut step = probe.step();
            let loss = step.forward(|| {
                make(1001);
                layer.forward(&Tensor::ones([4, 8], FLOAT_CPU)).sum(Kind::Float)
            });
            step.backward(|| {
                make(1002);
                loss.backward();
            });
            step.optimizer(|| {
                make(1003);
                adam.step();
            });
            adam.zero_grad();
            step.finish(None, None).unwrap();
        }
        let run = probe.finish().unwrap();
        drop(ask);
        saver.join().unwrap();
        assert!(!run.missing.iter().any(|line| line.contains("unattributed")), "{:?}", run.missing);
        let kept = sink.0.borrow();
        for row in lifetimes(&kept).iter().filter(|row| (4004..=4012).contains(&row.bytes)) {
            assert!([Some(Detail::Held), Some(Detail::OtherTemporary)].contains(&row.detail), "{row:?}");
        }
    }
}

/// Forward on another thread, backward on this one: its activations are, since backward releases them.
#[test]
fn what_another_thread_makes_for_our_backward_is_activation() {
    let _turn = turn();
    let sink = MemorySink::default();
    let mut probe = Probe::start(Options::new("parallel"), sink.clone()).unwrap();
    let mut step = probe.step();
    let loss = step.forward(|| {
        let forward = || Tensor::ones([777], FLOAT_CPU).set_requires_grad(true).exp().sum(Kind::Float);
        std::thread::spawn(forward).join().unwrap()
    });
    step.backward(|| loss.backward());
    drop(loss);
    step.finish(None, None).unwrap();
    probe.finish().unwrap();
    let kept = sink.0.borrow();
    let activations = lifetimes(&kept).into_iter().filter(|row| row.category == Category::Activation);
    // What exp gives; it needs its input no more.
    assert_eq!(activations.map(|row| row.bytes).collect::<Vec<_>>(), [4 * 777]);
}

/// Forward and backward on threads of the program's, as in data-parallel training on one device.
#[test]
fn a_thread_that_says_that_it_trains_is_filed_as_training() {
    let _turn = turn();
    for trace in [Trace::Allocations, Trace::Ops] {
        let sink = MemorySink::default();
        let mut probe = Probe::start(Options::new("parallel").trace(trace), sink.clone()).unwrap();
        let mut step = probe.step();
        let train = || {
            this_thread_trains();
            let x = Tensor::ones([777], FLOAT_CPU).set_requires_grad(true);
            x.exp().sum(Kind::Float)
        };
        let loss = step.forward(|| std::thread::spawn(train).join().unwrap());
        step.backward(|| {
            let walk = move || {
                this_thread_trains();
                loss.backward();
            };
            std::thread::spawn(walk).join().unwrap();
        });
        step.finish(None, None).unwrap();
        probe.finish().unwrap();
        let kept = sink.0.borrow();
        let is = |category, detail| {
            lifetimes(&kept)
                .iter()
                .any(|row| row.bytes == 4 * 777 && (row.category, row.detail) == (category, detail))
        };
        assert!(is(Category::Activation, None), "{trace}: {:?}", lifetimes(&kept));
        assert!(is(Category::Workspace, Some(Detail::ActivationGradient)), "{trace}: {:?}", lifetimes(&kept));
    }
}

/// The trunk is made here, the head there, which begins the walk.
#[test]
fn a_walk_that_begins_elsewhere_serves_once_it_comes_to_our_nodes() {
    let _turn = turn();
    let sink = MemorySink::default();
    let mut probe = Probe::start(Options::new("head").trace(Trace::Ops), sink.clone()).unwrap();
    let mut step = probe.step();
    let x = Tensor::ones([777], FLOAT_CPU).set_requires_grad(true);
    let trunk = step.forward(|| {
        let _scope = scope("trunk");
        x.exp()
    });
    step.backward(|| {
        let head = move || trunk.sin().sum(Kind::Float).backward();
        std::thread::spawn(head).join().unwrap();
    });
    step.finish(None, None).unwrap();
    probe.finish().unwrap();
    let kept = sink.0.borrow();
    let gradient = lifetimes(&kept)
        .into_iter()
        .find(|row| row.op.as_deref().is_some_and(|op| op.contains("Exp")))
        .unwrap();
    assert_eq!(gradient.scope.as_deref(), Some("trunk"), "{gradient:?}");
    assert!(kept.steps[0].phases.iter().any(|row| &*row.name == "trunk" && row.phase == Phase::Backward));
}

/// Another thread recomputes for its own backward, while we are in forward.
#[test]
fn another_threads_recomputation_is_none_of_ours() {
    let _turn = turn();
    for trace in [Trace::Allocations, Trace::Ops] {
        let sink = MemorySink::default();
        let mut probe = Probe::start(Options::new("recompute").trace(trace), sink.clone()).unwrap();
        let mut step = probe.step();
        step.forward(|| {
            let before = Tensor::ones([777], FLOAT_CPU);
            let theirs = || {
                let x = Tensor::ones([8], FLOAT_CPU).set_requires_grad(true);
                checkpoint_one("theirs", x, |x| x.f_exp()).unwrap().sum(Kind::Float).backward();
            };
            std::thread::spawn(theirs).join().unwrap();
            drop(before);
        });
        step.finish(None, None).unwrap();
        probe.finish().unwrap();
        let kept = sink.0.borrow();
        let ours = lifetimes(&kept).into_iter().find(|row| row.bytes == 4 * 777).unwrap();
        assert_eq!(ours.detail, Some(Detail::ForwardTemporary), "{trace}: {ours:?}");
    }
}

/// Four threads take their places in the stream as they come: the views ask by instant, the ledger goes by the stream.
#[test]
fn instants_and_the_stream_agree_however_threads_race() {
    let _turn = turn();
    let sink = MemorySink::default();
    let mut probe = Probe::start(Options::new("race"), sink.clone()).unwrap();
    let race = |size: i64| {
        let mut held = Vec::new();
        for i in 0..500 {
            held.push(Tensor::empty([size + i % 7], FLOAT_CPU));
            if held.len() > 8 {
                held.clear();
            }
        }
    };
    for step_size in 0..200 {
        let mut step = probe.step();
        step.forward(|| {
            std::thread::scope(|threads| {
                for size in [100, 113, 126, 139] {
                    threads.spawn(move || race(size + step_size));
                }
            });
        });
        step.finish(None, None).unwrap();
    }
    probe.finish().unwrap();
    let kept = sink.0.borrow();
    let rows = lifetimes(&kept);
    assert_eq!(rows.len(), 200 * 4 * 500);
    let instants: HashSet<_> =
        rows.iter().flat_map(|row| [Some(row.at_ns), row.freed_ns]).flatten().collect();
    assert_eq!(instants.len(), 2 * rows.len(), "each event has an instant of its own");
    for records in &kept.steps {
        let peak = records.moments.iter().find(|row| row.moment == Moment::Peak).unwrap();
        let alive = |row: &&&AllocationRow| {
            row.at_ns <= peak.at_ns && row.freed_ns.is_none_or(|freed_ns| freed_ns > peak.at_ns)
        };
        let bytes: i64 = rows.iter().filter(alive).map(|row| row.bytes).sum();
        assert_eq!(bytes, peak.allocator_bytes, "step {}", records.step.step);
    }
}

/// One loader fetches, another makes a batch of it. What waits between them as a step ends is input still to come.
#[test]
fn what_passes_from_loader_to_loader_within_a_step_is_not_input() {
    let _turn = turn();
    let sink = MemorySink::default();
    let mut probe = Probe::start(Options::new("loaders"), sink.clone()).unwrap();
    let (raw, fetched) = std::sync::mpsc::sync_channel::<Tensor>(0);
    let (made, batches) = std::sync::mpsc::sync_channel::<Tensor>(0);
    let fetching = std::thread::spawn(move || {
        this_thread_loads();
        (0..3).for_each(|_| raw.send(Tensor::ones([5000], FLOAT_CPU)).unwrap());
    });
    let making = std::thread::spawn(move || {
        this_thread_loads();
        for raw in fetched {
            let batch = raw.narrow(0, 0, 10).copy();
            drop(raw);
            made.send(batch).unwrap();
        }
    });
    for _ in 0..3 {
        let mut step = probe.step();
        let batch = step.dataloader(|| batches.recv().unwrap());
        step.forward(|| drop(batch.sum(Kind::Float)));
        drop(batch);
        step.finish(None, None).unwrap();
    }
    fetching.join().unwrap();
    making.join().unwrap();
    probe.finish().unwrap();
    let kept = sink.0.borrow();
    let of_size = |bytes| lifetimes(&kept).into_iter().filter(move |row| row.bytes == bytes);
    let [raw, batches] = [4 * 5000, 4 * 10].map(|bytes| of_size(bytes).collect::<Vec<_>>());
    assert_eq!((raw.len(), batches.len()), (3, 3));
    let first = raw.iter().min_by_key(|row| row.id).unwrap();
    assert_eq!(first.detail, Some(Detail::InputTemporary), "{raw:?}");
    assert!(batches.iter().all(|row| row.category == Category::Input), "{batches:?}");
}
