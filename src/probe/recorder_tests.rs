//! Steps on a device that works behind the host, which is a double of the driver: nothing of it is a measurement.

use super::hook;
use super::kept::Kept;
use super::recorder::Recorder;
use super::spans::Spans;
use super::timing::double::{CODES, Double, on_the_double, told};
use crate::record::{Phase, SpanKind, StepRow};

const MS: i64 = 1_000_000;

/// A run on the double.
pub(super) struct Run<'a> {
    double: &'a Double,
    pub(super) spans: Spans,
    recorder: Recorder,
    pub(super) kept: Kept,
}

impl<'a> Run<'a> {
    /// Every step is due as soon as it has ended.
    pub(super) fn start(double: &'a Double) -> Self {
        Run::flushed_every(double, 1)
    }

    fn flushed_every(double: &'a Double, steps: usize) -> Self {
        let kept = Kept::default();
        let clock = double.clock(0).unwrap();
        let spans = Spans::new(None, Some(Box::new(clock)), hook::now_ns());
        Run { double, spans, recorder: Recorder::new(Box::new(kept.clone()), None, steps), kept }
    }

    /// A step in which the device is given this much to do.
    fn step(&mut self, step: i64, work_ns: i64) {
        let begin_ns = self.spans.begin_step(step);
        self.copy(2 * MS);
        let depth = self.spans.enter_phase(Phase::Forward);
        let scope = self.spans.enter_scope("block");
        self.double.work(work_ns);
        self.spans.leave_scope(scope);
        self.spans.leave_phase(Phase::Forward, depth);
        self.end_step(step, begin_ns);
    }

    /// Ends one that began then.
    pub(super) fn end_step(&mut self, step: i64, begin_ns: i64) {
        let end_ns = self.spans.end_step(step);
        let row = StepRow { step, wall_ns: end_ns - begin_ns, ..StepRow::default() };
        self.recorder.add(row, begin_ns, &mut self.spans).unwrap();
    }

    fn copy(&mut self, work_ns: i64) {
        let depth = self.spans.enter_phase(Phase::Dataloader);
        let transfer = self.spans.enter_device_span(SpanKind::Transfer).unwrap();
        self.double.work(work_ns);
        self.spans.leave_scope(transfer);
        self.spans.leave_phase(Phase::Dataloader, depth);
    }

    /// The host waits for the device, which has nothing to do: here their timelines meet, though one is made up.
    pub(super) fn find_idle(&mut self) {
        self.spans.begin_between();
        let waiting = self.spans.enter_device_span(SpanKind::Sync).unwrap();
        self.spans.leave_scope(waiting);
        self.spans.take_between();
    }

    pub(super) fn end(&mut self) {
        self.recorder.add_between(0, &mut self.spans);
    }
}

fn path(test: &str) -> String {
    let (_, module) = module_path!().split_once("::").unwrap();
    format!("{module}::{test}")
}

#[test]
fn a_step_is_filed_when_the_device_is_through_it() {
    on_the_double(&path("a_step_is_filed_when_the_device_is_through_it"), |double| {
        let mut run = Run::start(double);
        // Two steps behind: each step takes the device 10 ms and more, and time goes by as fast from the third on.
        for step in 0..20 {
            if step >= 2 {
                double.pass((10 + step - 2) * MS);
            }
            run.step(step, (8 + step) * MS);
            let through: Vec<i64> = (0..step - 1).collect();
            assert_eq!(run.kept.steps(), through, "after step {step}");
        }
        double.pass(100 * MS);
        run.end();
        assert_eq!(run.kept.steps(), (0..20).collect::<Vec<_>>());
        for step in 0..20 {
            for kind in [SpanKind::Phase, SpanKind::Scope] {
                let worked = Some((8 + step as i64) * MS);
                assert_eq!(run.kept.row(step, kind, Phase::Forward).device_ns, worked, "step {step}");
            }
            let transfer = run.kept.row(step, SpanKind::Transfer, Phase::Dataloader);
            assert_eq!((&*transfer.name, transfer.device_ns, transfer.calls), ("transfer", Some(2 * MS), 1));
            assert!(run.kept.row(step, SpanKind::Phase, Phase::Forward).lead_ns.is_some_and(|ns| ns >= 0));
            assert_eq!(run.kept.row(step, SpanKind::Scope, Phase::Forward).lead_ns, None);
            let row = run.kept.step(step).step;
            let exposed = [row.transfer_ns, row.sync_ns, row.launch_ns].map(Option::unwrap);
            assert!((0..=row.wall_ns).contains(&exposed.iter().sum()), "{exposed:?}");
            assert!(row.device_busy_pct.is_some_and(|pct| (0.0..=100.0).contains(&pct)));
            // Forward is the last that the device was given, so the step's lead is its, but for the host's time since.
            let forward = run.kept.row(step, SpanKind::Phase, Phase::Forward);
            let (lead, of_phase) = (row.lead_ns.unwrap(), forward.lead_ns.unwrap());
            assert!((0..=of_phase).contains(&lead) && of_phase - lead <= row.wall_ns, "{lead} {of_phase}");
        }
        assert!(double.calls_of("synchronize").is_empty());
        drop(run);
        let (made, destroyed, retained) = double.balance();
        assert_eq!((made, retained), (destroyed, 0));
        // Three steps' worth at a time, and no more.
        assert!(made < 40, "{made}");
    });
}

/// Steps that are filed many at a time give their events back one by one, as soon as the device is through; the newest are
/// not waited for, or the test's patience, which is none, would have run out.
#[test]
fn times_are_read_long_before_a_step_is_filed() {
    on_the_double(&path("times_are_read_long_before_a_step_is_filed"), |double| {
        const BEHIND: i64 = 4;
        let mut run = Run::flushed_every(double, 50);
        let mut reads_a_step = 0;
        for step in 0..60 {
            if step >= BEHIND {
                double.pass((10 + step - BEHIND) * MS);
            }
            run.step(step, (8 + step) * MS);
            let reads = double.calls_of("elapsed").len();
            if step == BEHIND {
                reads_a_step = reads;
            }
            let ended = usize::try_from(step + 1 - BEHIND).unwrap_or(0);
            assert_eq!(reads, reads_a_step * ended, "after step {step}");
        }
        assert!(reads_a_step > 0);
        // Events for the steps that the device is behind, and for the one in progress.
        let (made, ..) = double.balance();
        assert!(made <= (BEHIND as i32 + 1) * 9 + 3, "{made}");
        assert!(double.calls_of("synchronize").is_empty());
        assert_eq!(run.spans.device.as_ref().unwrap().missing(), Vec::<String>::new());
        double.pass(1000 * MS);
        run.end();
        assert_eq!(run.kept.steps(), (0..60).collect::<Vec<_>>());
        for step in 0..60 {
            let forward = run.kept.row(step, SpanKind::Phase, Phase::Forward).device_ns;
            assert_eq!(forward, Some((8 + step as i64) * MS), "step {step}");
            let row = run.kept.step(step).step;
            assert!(row.transfer_ns.is_some() && row.sync_ns.is_some() && row.launch_ns.is_some());
        }
    });
}

#[test]
fn a_device_that_is_lost_costs_its_times_and_no_row() {
    on_the_double(&path("a_device_that_is_lost_costs_its_times_and_no_row"), |double| {
        const ECC: i32 = 214;
        let mut run = Run::start(double);
        run.step(0, 8 * MS);
        double.pass(10 * MS);
        run.step(1, 8 * MS);
        assert_eq!(run.kept.steps(), [0]);
        ["cuEventQuery", "cuEventRecord"].iter().for_each(|call| double.fail(call, ECC, 0));
        for step in 2..8 {
            run.step(step, 8 * MS);
        }
        run.end();
        assert_eq!(run.kept.steps(), (0..8).collect::<Vec<_>>());
        let forward = |step| run.kept.row(step, SpanKind::Phase, Phase::Forward);
        assert_eq!(forward(0).device_ns, Some(8 * MS));
        for step in 2..8 {
            assert_eq!((forward(step).device_ns, forward(step).lead_ns), (None, None), "step {step}");
            assert!(forward(step).total_ns > 0);
            // Nor does the host's time pass for the device's.
            let row = run.kept.step(step).step;
            let of_device = (row.device_busy_pct, row.transfer_ns, row.sync_ns, row.launch_ns, row.lead_ns);
            assert_eq!(of_device, (None, None, None, None, None), "step {step}");
        }
        let missing = run.spans.device.as_ref().unwrap().missing();
        assert!(missing.len() == 1 && missing[0].contains("ECC"), "{missing:?}");
    });
}

/// Whatever the driver refuses in the midst of a run, and with whatever code.
#[test]
fn no_call_that_fails_costs_a_row() {
    on_the_double(&path("no_call_that_fails_costs_a_row"), |double| {
        let calls = [
            "cuEventCreate",
            "cuEventRecord",
            "cuEventQuery",
            "cuEventElapsedTime",
            "cuStreamIsCapturing",
            "cuThreadExchangeStreamCaptureMode",
            "cuCtxGetCurrent",
            "cuCtxSetCurrent",
        ];
        for (call, code) in calls.iter().flat_map(|call| CODES.map(|code| (call, code))) {
            let mut run = Run::start(double);
            run.step(0, 8 * MS);
            double.pass(10 * MS);
            run.step(1, 8 * MS);
            double.fail(call, code, 0);
            for step in 2..8 {
                // Until the device is through some, each step needs events of its own.
                if step >= 4 {
                    double.pass(10 * MS);
                }
                run.step(step, 8 * MS);
            }
            run.end();
            double.fail("", 0, 0);
            // The next run finds the device idle.
            double.pass(1000 * MS);
            assert_eq!(run.kept.steps(), (0..8).collect::<Vec<_>>(), "{call}");
            let forward = |step| run.kept.row(step, SpanKind::Phase, Phase::Forward);
            assert_eq!(forward(0).device_ns, Some(8 * MS), "{call}");
            assert!(forward(7).device_ns.is_none() && forward(7).total_ns > 0, "{call}");
            let missing = run.spans.device.as_ref().unwrap().missing();
            assert!(missing.len() == 1 && missing[0].contains(&told(call, code)), "{call}: {missing:?}");
        }
    });
}

#[test]
fn a_device_that_hangs_holds_back_a_few_steps_and_then_none() {
    on_the_double(&path("a_device_that_hangs_holds_back_a_few_steps_and_then_none"), |double| {
        let mut run = Run::start(double);
        double.stick();
        for step in 0..4 {
            run.step(step, 8 * MS);
        }
        assert!(run.kept.steps().is_empty());
        run.step(4, 8 * MS);
        assert!(!run.kept.steps().is_empty(), "waited for no longer than the test's patience");
        run.end();
        assert_eq!(run.kept.steps(), (0..5).collect::<Vec<_>>());
        assert_eq!(run.kept.row(4, SpanKind::Phase, Phase::Forward).device_ns, None);
        assert!(double.calls_of("synchronize").is_empty());
    });
}

/// A graph that is captured while steps wait for the device outlives the asking, on its own stream and on another.
#[test]
fn a_step_that_ends_within_a_capture_disturbs_it_not() {
    on_the_double(&path("a_step_that_ends_within_a_capture_disturbs_it_not"), |double| {
        for stream in [0, 3] {
            let mut run = Run::start(double);
            run.step(0, 8 * MS);
            double.pass(10 * MS);
            double.capture(stream, true);
            run.step(1, 8 * MS);
            assert_eq!(run.kept.steps()[0], 0, "what was before the capture is read meanwhile");
            assert_eq!(double.capture_mode(), 0);
            double.capture(stream, false);
            double.pass(10 * MS);
            run.step(2, 8 * MS);
            double.pass(10 * MS);
            run.end();
            let forward = |step| run.kept.row(step, SpanKind::Phase, Phase::Forward).device_ns;
            assert_eq!((forward(0), forward(2)), (Some(8 * MS), Some(8 * MS)));
            let missing = run.spans.device.as_ref().unwrap().missing();
            assert!(missing.iter().all(|missing| missing.contains("captured")), "{missing:?}");
        }
    });
}

/// Nothing is known of what the device still has to do of a step that was left.
#[test]
fn after_a_step_that_was_left_the_next_one_has_no_exposed_times() {
    on_the_double(&path("after_a_step_that_was_left_the_next_one_has_no_exposed_times"), |double| {
        let mut run = Run::start(double);
        run.step(0, 8 * MS);
        double.pass(10 * MS);
        run.spans.begin_step(1);
        run.copy(2 * MS);
        run.spans.leave_step(1);
        run.end();
        for step in 1..3 {
            double.pass(10 * MS);
            run.find_idle();
            run.step(step, 8 * MS);
        }
        double.pass(10 * MS);
        run.end();
        let exposed = |step| {
            let row = run.kept.step(step).step;
            [row.transfer_ns, row.sync_ns, row.launch_ns].map(|ns| ns.is_some())
        };
        assert_eq!(run.kept.steps(), [0, 1, 2]);
        assert_eq!([exposed(0), exposed(1), exposed(2)], [[true; 3], [false; 3], [true; 3]]);
    });
}
