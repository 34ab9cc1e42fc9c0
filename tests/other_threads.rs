//! What threads do that have no part in training, while the training thread trains.
#![cfg(feature = "torch")]

mod common;

use std::collections::HashSet;

use common::{Kept, MemorySink, turn};
use stepledger::probe::{Options, Probe, scope, this_thread_loads};
use stepledger::record::{AllocationRow, Category, Detail, Moment, Trace};
use stepledger::train::checkpoint_one;
use tch::kind::FLOAT_CPU;
use tch::{Kind, Tensor};

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
