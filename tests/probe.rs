//! The probe around loops that are not ours, and around loops that end badly.
#![cfg(feature = "torch")]

mod common;
#[path = "../examples/own_loop.rs"]
#[allow(dead_code)] // its `main`
mod own_loop;
#[path = "common/program.rs"]
mod program;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use common::{MemorySink, turn};
use program::{ROOT, Runs, stderr};
use stepledger::probe::{HookError, Options, Probe, ProbeError, scope, this_thread_loads};
use stepledger::record::{
    AllocationRow, BetweenRecords, Category, Detail, Moment, RunRow, RunStatus, Sink, SinkError, StepRecords,
    Trace,
};
use tch::{Device, Kind, Tensor, nn};

const FLOATS: (Kind, Device) = (Kind::Float, Device::Cpu);

#[test]
fn the_example_loops_hidden_states_and_buffers_are_found() {
    let _turn = turn();
    let runs = Runs::new();
    let run_id = own_loop::train(&runs.file("runs").to_string_lossy()).unwrap();
    let account = runs.show("");
    assert_eq!(account["run_id"], run_id);
    // Two convolutions, two batch norms (weight and bias), a linear head.
    let parameters = (9 * 8 + 8) + 2 * 8 + (9 * 8 * 16 + 16) + 2 * 16 + (16 * 9 * 4 + 4);
    let statistics = 2 * (8 + 16);
    assert_eq!(account["parameters"], parameters);
    for (moment, row) in account["ledger"].as_object().unwrap() {
        assert_eq!(row["parameter"], 4 * parameters, "{moment}");
        assert_eq!(row["buffer"], 4 * statistics, "{moment}");
        // tch's Adam keeps its two states to itself.
        assert_eq!(row["adam_state"], 8 * parameters, "{moment}");
        assert_eq!((&row["unattributed"], &row["difference"]), (&0.into(), &0.into()), "{moment}");
    }
    // Its zero_grad drops the gradients, so forward runs without them.
    for (moment, bytes) in
        [("forward_end", 0), ("backward_end", 4 * parameters), ("optimizer_end", 4 * parameters)]
    {
        assert_eq!(account["ledger"][moment]["gradient"], bytes, "{moment}");
    }
    let losses = account["losses"].as_array().unwrap();
    assert!(losses[19].as_f64().unwrap() < losses[0].as_f64().unwrap());
}

#[test]
fn the_examples_glue_is_under_thirty_lines() {
    let text = std::fs::read_to_string(format!("{ROOT}/examples/own_loop.rs")).unwrap();
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let glue =
        code.filter(|line| ["stepledger", "probe", "step"].iter().any(|word| line.contains(word))).count();
    assert!(glue < 30, "{glue} lines of glue");
}

#[test]
fn a_loader_threads_tensor_is_input_while_it_waits_and_while_it_serves() {
    let _turn = turn();
    let sink = MemorySink::default();
    let mut probe = Probe::start(Options::new("loader"), sink.clone()).unwrap();
    let (sender, receiver) = std::sync::mpsc::sync_channel(0);
    let loader = std::thread::spawn(move || {
        this_thread_loads();
        for _ in 0..2 {
            sender.send(Tensor::ones([1000], FLOATS)).unwrap();
        }
    });
    for _ in 0..2 {
        let mut step = probe.step();
        let batch = step.dataloader(|| receiver.recv().unwrap());
        let _sum = step.forward(|| batch.sum(Kind::Float));
        step.finish(None, None).unwrap();
    }
    loader.join().unwrap();
    probe.finish().unwrap();
    let kept = sink.0.borrow();
    let end = kept.steps[1].moments.iter().find(|moment| moment.moment == Moment::ForwardEnd).unwrap();
    assert_eq!(end.bytes[Category::Input], 4000);
    let between = kept.between.iter().flat_map(|records| &records.ended);
    let ended: Vec<_> = kept.steps.iter().flat_map(|step| &step.ended).chain(between).collect();
    let batches: Vec<_> = ended.iter().filter(|row| row.bytes == 4000).collect();
    assert!(batches.len() == 2 && batches.iter().all(|row| row.category == Category::Input), "{batches:?}");
}

#[test]
fn a_tensor_dropped_on_another_thread_ends_there() {
    let _turn = turn();
    let sink = MemorySink::default();
    let mut probe = Probe::start(Options::new("threads"), sink.clone()).unwrap();
    let mut step = probe.step();
    let kept = step.forward(|| Tensor::ones([256], FLOATS));
    std::thread::spawn(move || drop(kept)).join().unwrap();
    step.finish(None, None).unwrap();
    probe.finish().unwrap();
    let records = &sink.0.borrow().steps[0];
    assert_eq!(records.step.difference_bytes, Some(0));
    assert_eq!(records.ended.iter().filter(|row| row.bytes == 1024 && row.freed_step == Some(0)).count(), 1);
}

#[test]
fn frozen_parameters_have_no_gradient_and_tied_ones_count_once() {
    let _turn = turn();
    let sink = MemorySink::default();
    let mut probe = Probe::start(Options::new("frozen"), sink.clone()).unwrap();
    let mut frozen = nn::VarStore::new(Device::Cpu);
    let first = nn::linear(frozen.root() / "first", 4, 4, Default::default());
    frozen.freeze();
    let trained = nn::VarStore::new(Device::Cpu);
    let second = nn::linear(trained.root() / "second", 4, 1, Default::default());
    probe.watch(&frozen);
    probe.watch(&trained);
    probe.watch(&trained);
    let mut step = probe.step();
    let input = step.dataloader(|| Tensor::ones([2, 4], FLOATS));
    let loss = step.forward(|| input.apply(&first).apply(&second).sum(Kind::Float));
    step.backward(|| loss.backward());
    step.finish(loss.double_value(&[]), 2).unwrap();
    let run = probe.finish().unwrap();
    assert_eq!(run.parameters, Some(20 + 5));
    let moments = &sink.0.borrow().steps[0].moments;
    let end = moments.iter().find(|moment| moment.moment == Moment::BackwardEnd).unwrap();
    assert_eq!(end.bytes[Category::Parameter], 4 * 25);
    assert_eq!(end.bytes[Category::Gradient], 4 * 5);
    assert_eq!(end.bytes[Category::Unattributed], 0);
}

#[test]
fn memory_from_before_the_probe_and_memory_after_it_do_no_harm() {
    let _turn = turn();
    let before = Tensor::ones([512], FLOATS);
    let first = Probe::start(Options::new("first"), MemorySink::default()).unwrap();
    let between = Tensor::ones([128], FLOATS);
    first.finish().unwrap();
    let sink = MemorySink::default();
    let mut second = Probe::start(Options::new("second"), sink.clone()).unwrap();
    let mut step = second.step();
    step.forward(|| drop((before, between)));
    step.finish(None, None).unwrap();
    second.finish().unwrap();
    let records = &sink.0.borrow().steps[0];
    assert_eq!(records.step.difference_bytes, Some(0));
    let end = records.moments.iter().find(|moment| moment.moment == Moment::ForwardEnd).unwrap();
    assert_eq!((end.bytes.total(), end.bytes[Category::Unattributed]), (end.allocator_bytes, 0));
}

#[test]
fn a_second_probe_is_refused_while_one_records() {
    let _turn = turn();
    let _first = Probe::start(Options::new("first"), MemorySink::default()).unwrap();
    let second = Probe::start(Options::new("second"), MemorySink::default());
    assert!(matches!(second.err(), Some(ProbeError::Hook(HookError::AlreadyRecording))));
    // Times alone need no allocator.
    let times = Options::new("third").trace(Trace::Phases);
    Probe::start(times, MemorySink::default()).unwrap().finish().unwrap();
}

#[test]
fn a_loop_that_is_left_early_leaves_its_records() {
    let _turn = turn();
    let sink = MemorySink::default();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut probe = Probe::start(Options::new("panics"), sink.clone()).unwrap();
        probe.step().finish(1.0, 1).unwrap();
        let mut step = probe.step();
        step.forward(|| {
            let _scope = scope("deep");
            std::panic::resume_unwind(Box::new("the user's own panic"))
        })
    }));
    assert!(outcome.is_err());
    let kept = sink.0.borrow();
    assert_eq!(kept.steps.len(), 1);
    assert_eq!(kept.run.as_ref().unwrap().status, RunStatus::Failed);
}

/// What is known of the step that was left has its number: another step's ledger must not be mixed up with it.
#[test]
fn the_number_of_a_step_that_was_left_is_not_given_again() {
    let _turn = turn();
    let sink = MemorySink::default();
    let mut probe = Probe::start(Options::new("goes_on"), sink.clone()).unwrap();
    let work = || drop(Tensor::ones([1000], FLOATS));
    for left in [false, true, false] {
        let mut step = probe.step();
        step.forward(work);
        if !left {
            step.finish(1.0, 1).unwrap();
        }
    }
    probe.validation(work).unwrap();
    probe.finish().unwrap();
    let kept = sink.0.borrow();
    assert_eq!(kept.steps.iter().map(|records| records.step.step).collect::<Vec<_>>(), [0, 2]);
    let between: Vec<_> =
        kept.between.iter().flat_map(|between| &between.moments).map(|row| row.step).collect();
    assert!(between.contains(&1) && between.contains(&3) && !between.contains(&2), "{between:?}");
    for records in &kept.steps {
        assert!(records.moments.iter().all(|row| row.step == records.step.step));
    }
}

/// A sink that cannot be opened at first, as of a disk that is full until somebody makes room.
struct Reluctant(MemorySink, bool);

impl Sink for Reluctant {
    fn begin(&mut self, run: &RunRow) -> Result<(), SinkError> {
        match std::mem::replace(&mut self.1, true) {
            false => Err("no room".into()),
            true => self.0.begin(run),
        }
    }

    fn push(&mut self, records: StepRecords) {
        self.0.push(records);
    }

    fn push_between(&mut self, records: BetweenRecords) {
        self.0.push_between(records);
    }

    fn flush(&mut self, open: &[AllocationRow]) -> Result<(), SinkError> {
        self.0.flush(open)
    }

    fn end(&mut self, run: &RunRow, open: &[AllocationRow]) -> Result<(), SinkError> {
        self.0.end(run, open)
    }
}

/// Nobody has its records; the next step is not charged with its memory.
#[test]
fn a_step_that_cannot_be_recorded_has_its_number_and_its_events_for_itself() {
    let _turn = turn();
    let sink = MemorySink::default();
    let mut probe = Probe::start(Options::new("reluctant"), Reluctant(sink.clone(), false)).unwrap();
    for (number, elements) in [(0, 1000), (1, 100), (2, 10)] {
        let mut step = probe.step();
        assert_eq!(step.number(), number);
        step.forward(|| drop(Tensor::ones([elements], FLOATS)));
        match (number, step.finish(None, None)) {
            (0, Err(ProbeError::Open(error))) => assert_eq!(error.to_string(), "no room"),
            (_, finished) => assert!(number > 0 && finished.is_ok()),
        }
    }
    let run = probe.finish().unwrap();
    assert_eq!(run.steps, Some(2), "of three");
    let kept = sink.0.borrow();
    let of = |records: &StepRecords| {
        let bytes: Vec<_> = records.ended.iter().map(|row| (row.step, row.bytes)).collect();
        (records.step.step, records.step.events, bytes)
    };
    assert_eq!(
        kept.steps.iter().map(of).collect::<Vec<_>>(),
        [(1, 2, vec![(Some(1), 400)]), (2, 2, vec![(Some(2), 40)])]
    );
    assert!(kept.between.iter().all(|between| between.ended.is_empty()), "{:?}", kept.between);
}

#[test]
fn nested_scopes_add_up_to_their_phase_at_most() {
    let _turn = turn();
    let sink = MemorySink::default();
    let mut probe = Probe::start(Options::new("scopes").trace(Trace::Phases), sink.clone()).unwrap();
    let mut step = probe.step();
    step.forward(|| {
        for _ in 0..3 {
            let _outer = scope("outer");
            let _inner = scope("inner");
            let _sum = Tensor::ones([100], FLOATS).sum(Kind::Float);
        }
    });
    step.finish(None, None).unwrap();
    probe.finish().unwrap();
    let kept = sink.0.borrow();
    let row = |name: &str| kept.steps[0].phases.iter().find(|row| &*row.name == name).unwrap();
    let (forward, outer, inner, other) = (row("forward"), row("outer"), row("outer.inner"), row("other"));
    assert_eq!((outer.calls, inner.calls, inner.parent.as_deref()), (3, 3, Some("outer")));
    assert!(inner.total_ns <= outer.total_ns && outer.total_ns <= forward.total_ns);
    assert_eq!(forward.total_ns + other.total_ns, kept.steps[0].step.wall_ns);
}

/// As `let _run = scope("run")` in `main` does.
#[test]
fn a_scope_that_outlives_the_probe_leaves_libtorch_its_allocator() {
    let _turn = turn();
    let limited = Options::new("first").limit(Some(1 << 20));
    let probe = Probe::start(limited, MemorySink::default()).unwrap();
    let run = scope("run");
    probe.finish().unwrap();
    assert!(Tensor::f_empty([1 << 20], FLOATS).is_ok(), "the limit ends with the probe");
    let sink = MemorySink::default();
    let mut second = Probe::start(Options::new("second").trace(Trace::Ops), sink.clone()).unwrap();
    let before = Tensor::ones([777], FLOATS).exp();
    second.step().finish(None, None).unwrap();
    drop((before, run));
    second.finish().unwrap();
    let kept = sink.0.borrow();
    // In no scope of the first one's.
    assert!(kept.steps.iter().flat_map(|step| &step.ended).chain(&kept.open).all(|row| row.scope.is_none()));
}

/// A loader used on the training thread itself.
#[test]
fn the_training_thread_goes_on_training_when_it_loads() {
    let _turn = turn();
    let sink = MemorySink::default();
    let mut probe = Probe::start(Options::new("both"), sink.clone()).unwrap();
    this_thread_loads();
    let mut step = probe.step();
    step.forward(|| drop(Tensor::ones([777], FLOATS)));
    step.finish(None, None).unwrap();
    probe.finish().unwrap();
    assert_eq!(sink.0.borrow().steps[0].ended[0].detail, Some(Detail::ForwardTemporary));
}

/// More events in one step than the buffer holds: all are counted, those that do not fit as dropped, the
/// categories still add up to the allocator's total, and the next step is as good as any.
#[test]
fn a_full_buffer_counts_what_it_drops_and_goes_on() {
    const TENSORS: i64 = 1_100_000;
    let _turn = turn();
    let sink = MemorySink::default();
    let mut probe = Probe::start(Options::new("full"), sink.clone()).unwrap();
    for tensors in [50, TENSORS, 50] {
        let mut step = probe.step();
        step.forward(|| (0..tensors).for_each(|_| drop(Tensor::empty([1], FLOATS))));
        step.finish(None, None).unwrap();
    }
    let run = probe.finish().unwrap();
    let kept = sink.0.borrow();
    let counts: Vec<_> = kept.steps.iter().map(|step| (step.step.events, step.step.dropped_events)).collect();
    // 2,088,960 places, of which the last 4,096 are for markers and two markers came before.
    let fit = 2_088_960 - 4_096 - 2;
    assert_eq!(counts, [(100, 0), (fit, 2 * TENSORS - fit), (100, 0)]);
    assert!(
        run.missing.iter().any(|missing| missing.contains("did not fit the buffer")),
        "{:?}",
        run.missing
    );
    for moment in kept.steps.iter().flat_map(|step| &step.moments) {
        assert_eq!(moment.bytes.total(), moment.allocator_bytes);
    }
    assert_eq!(kept.steps[2].step.difference_bytes, Some(0));
}

/// As many events, in scopes of which each has room: none is lost.
#[test]
fn a_step_may_have_more_events_than_fit_at_once() {
    const SCOPES: i64 = 4;
    const TENSORS: i64 = 300_000;
    let _turn = turn();
    let sink = MemorySink::default();
    let mut probe = Probe::start(Options::new("long"), sink.clone()).unwrap();
    let mut step = probe.step();
    step.forward(|| {
        for _ in 0..SCOPES {
            let _scope = scope("part");
            (0..TENSORS).for_each(|_| drop(Tensor::empty([1], FLOATS)));
        }
    });
    step.finish(None, None).unwrap();
    probe.finish().unwrap();
    let step = &sink.0.borrow().steps[0];
    assert_eq!((step.step.events, step.step.dropped_events), (2 * SCOPES * TENSORS, 0));
    assert_eq!((step.step.difference_bytes, step.ended.len() as i64), (Some(0), SCOPES * TENSORS));
    assert!(step.ended.iter().all(|row| row.scope.as_deref() == Some("part") && row.freed_ns.is_some()));
}

/// A libtorch of another version than this was built for, where it says so: a double of that function.
#[test]
fn another_libtorch_is_refused_before_anything_is_hooked() {
    let runs = Runs::new();
    let double = runs.file("libother.so");
    let source = format!("{ROOT}/tests/doubles/other_libtorch.c");
    let mut compiler = Command::new("cc");
    let built = compiler.args(["-shared", "-fPIC", "-o"]).arg(&double).arg(source).status().unwrap();
    assert!(built.success());
    let mut calibrate = program::program();
    calibrate.arg("calibrate").env("STEPLEDGER_HOME", runs.path());
    for mut command in [runs.command("--steps 1"), calibrate] {
        let output = command.env("LD_PRELOAD", &double).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        for words in ["libtorch 2.10.0 is loaded", "built for 2.11.0", "LD_LIBRARY_PATH"] {
            assert!(said.contains(words), "{words}: {said}");
        }
    }
    assert!(!runs.file("runs").exists());
}
