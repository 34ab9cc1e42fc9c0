//! What a step comes to whose device goes on, or in which the same thing is said twice, on a double of the driver.

use super::recorder_tests::Run;
use super::timing::double::on_the_double;
use crate::record::{Phase, SpanKind};

const MS: i64 = 1_000_000;

fn path(test: &str) -> String {
    let (_, module) = module_path!().split_once("::").unwrap();
    format!("{module}::{test}")
}

/// A loop that waits around a helper that waits, and copies around one that copies.
#[test]
fn a_wait_within_a_wait_and_a_copy_within_a_copy_are_one() {
    on_the_double(&path("a_wait_within_a_wait_and_a_copy_within_a_copy_are_one"), |double| {
        let mut run = Run::start(double);
        let begin_ns = run.spans.begin_step(0);
        for kind in [SpanKind::Transfer, SpanKind::Sync] {
            let outer = run.spans.enter_device_span(kind).unwrap();
            for _ in 0..3 {
                assert_eq!(run.spans.enter_device_span(kind), None);
            }
            let scope = run.spans.enter_scope("helper");
            assert_eq!(run.spans.enter_device_span(kind), None, "whatever lies between");
            double.work(2 * MS);
            run.spans.leave_scope(scope);
            run.spans.leave_scope(outer);
        }
        run.end_step(0, begin_ns);
        double.pass(100 * MS);
        run.end();
        for kind in [SpanKind::Transfer, SpanKind::Sync] {
            let row = run.kept.row(0, kind, Phase::Other);
            assert_eq!((row.calls, row.device_ns), (1, Some(2 * MS)), "{kind}");
        }
        let step = run.kept.step(0).step;
        let waited = run.kept.row(0, SpanKind::Sync, Phase::Other).total_ns;
        assert_eq!(step.cpu_wait_ns, Some(waited));
        assert!(waited <= step.wall_ns);
    });
}

/// As of a guard that is taken before `Probe::step`, and dropped within the step, at its end or behind it.
#[test]
fn of_a_wait_that_is_not_the_steps_alone_it_has_the_part_that_lies_in_it() {
    on_the_double(&path("of_a_wait_that_is_not_the_steps_alone_it_has_the_part_that_lies_in_it"), |double| {
        let mut run = Run::start(double);
        for (step, kind) in (0..).zip([SpanKind::Transfer, SpanKind::Sync]) {
            let before = run.spans.enter_device_span(kind).unwrap();
            double.work(5 * MS);
            let begin_ns = run.spans.begin_step(step);
            double.work(2 * MS);
            run.spans.leave_scope(before);
            let beyond = run.spans.enter_device_span(kind).unwrap();
            assert_eq!(run.spans.enter_device_span(kind), None, "within one of the step");
            double.work(3 * MS);
            run.end_step(step, begin_ns);
            double.pass(100 * MS);
            run.spans.leave_scope(beyond);
        }
        run.end();
        for (step, kind) in (0..).zip([SpanKind::Transfer, SpanKind::Sync]) {
            let row = run.kept.row(step, kind, Phase::Other);
            assert_eq!((row.calls, row.device_ns), (2, Some(5 * MS)), "{kind}");
            let step = run.kept.step(step).step;
            assert!(row.total_ns <= step.wall_ns, "{kind}: {} of {}", row.total_ns, step.wall_ns);
            let waited_ns = if kind == SpanKind::Sync { row.total_ns } else { 0 };
            assert_eq!(step.cpu_wait_ns, Some(waited_ns), "{kind}");
            assert!(step.lead_ns.is_some() && step.launch_ns.is_some(), "{kind}");
        }
    });
}

/// Until it ends nobody knows that it will: what was within it is in its part then.
#[test]
fn a_wait_from_before_the_step_that_ends_in_it_counts_once_with_those_within_it() {
    on_the_double(
        &path("a_wait_from_before_the_step_that_ends_in_it_counts_once_with_those_within_it"),
        |double| {
            let mut run = Run::start(double);
            for (step, kind) in (0..).zip([SpanKind::Transfer, SpanKind::Sync]) {
                let before = run.spans.enter_device_span(kind).unwrap();
                let begin_ns = run.spans.begin_step(step);
                let inner = run.spans.enter_device_span(kind).unwrap();
                double.work(2 * MS);
                run.spans.leave_scope(inner);
                double.work(MS);
                run.spans.leave_scope(before);
                run.end_step(step, begin_ns);
                double.pass(100 * MS);
            }
            run.end();
            for (step, kind) in (0..).zip([SpanKind::Transfer, SpanKind::Sync]) {
                let row = run.kept.row(step, kind, Phase::Other);
                assert_eq!((row.calls, row.device_ns), (1, Some(3 * MS)), "{kind}");
                assert!(row.total_ns <= run.kept.step(step).step.wall_ns, "{kind}");
            }
        },
    );
}

/// A guard around the steps: it is kept in none of them, so what is in it has to be.
#[test]
fn a_wait_around_a_step_hides_none_within_it() {
    on_the_double(&path("a_wait_around_a_step_hides_none_within_it"), |double| {
        let mut run = Run::start(double);
        let around = [SpanKind::Transfer, SpanKind::Sync].map(|kind| run.spans.enter_device_span(kind));
        for step in 0..2 {
            let begin_ns = run.spans.begin_step(step);
            for kind in [SpanKind::Transfer, SpanKind::Sync] {
                let inner = run.spans.enter_device_span(kind).unwrap();
                assert_eq!(run.spans.enter_device_span(kind), None);
                double.work(2 * MS);
                run.spans.leave_scope(inner);
            }
            run.end_step(step, begin_ns);
            double.pass(100 * MS);
        }
        run.spans.leave_scope(around[0].unwrap());
        run.end();
        for step in 0..2 {
            for kind in [SpanKind::Transfer, SpanKind::Sync] {
                let row = run.kept.row(step, kind, Phase::Other);
                assert_eq!((row.calls, row.device_ns), (1, Some(2 * MS)), "step {step}, {kind}");
            }
            let row = run.kept.step(step).step;
            assert!(row.lead_ns.is_some() && row.sync_ns.is_some(), "step {step}");
        }
    });
}

/// The device is given an optimizer outside of all phases, and the loop then does something else for long.
#[test]
fn a_steps_lead_is_what_the_device_has_left_to_do_when_it_has_ended() {
    on_the_double(&path("a_steps_lead_is_what_the_device_has_left_to_do_when_it_has_ended"), |double| {
        // So much that the host's own time is nothing beside it.
        const SECOND: i64 = 1000 * MS;
        let mut run = Run::start(double);
        let mut begins = Vec::new();
        for step in 0..2 {
            run.find_idle();
            let begin_ns = run.spans.begin_step(step);
            let depth = run.spans.enter_phase(Phase::Forward);
            double.work(6 * SECOND);
            run.spans.leave_phase(Phase::Forward, depth);
            double.work(4 * SECOND);
            run.end_step(step, begin_ns);
            begins.push(begin_ns - run.spans.epoch_ns);
            double.pass(60 * SECOND);
        }
        run.end();
        for (step, begin_ns) in (0..).zip(begins) {
            let (row, forward) =
                (run.kept.step(step).step, run.kept.row(step, SpanKind::Phase, Phase::Forward));
            let through_ns = begin_ns + row.wall_ns + row.lead_ns.unwrap();
            let forwards_ns = forward.begin_ns.unwrap() + forward.total_ns + forward.lead_ns.unwrap();
            // To what an event tells of ten seconds.
            let off_ns = through_ns - forwards_ns - 4 * SECOND;
            assert!(off_ns.abs() < 10_000, "step {step}: {off_ns}");
        }
    });
}
