//! What fails, by the clock on the driver's double: nothing of this is a measurement.

use std::time::Duration;

use super::Clock;
use super::double::{CODES, on_a_double, on_the_double, span, told};
use crate::device::{DeviceError, cards};

const OUT_OF_MEMORY: i32 = 2;
const LAUNCH_FAILED: i32 = 719;
/// What a stamp takes. No context is the thread's own here, so that each call enters the device's.
const STAMPING: [&str; 5] =
    ["cuEventCreate", "cuEventRecord", "cuStreamIsCapturing", "cuCtxGetCurrent", "cuCtxSetCurrent"];
/// What reading one takes.
const READING: [&str; 5] = [
    "cuEventQuery",
    "cuEventElapsedTime",
    "cuThreadExchangeStreamCaptureMode",
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
];
const MS: i64 = 1_000_000;

fn path(test: &str) -> String {
    let (_, module) = module_path!().split_once("::").unwrap();
    format!("{module}::{test}")
}

#[test]
fn cards_that_cannot_be_listed_are_told_with_the_call() {
    on_the_double(&path("cards_that_cannot_be_listed_are_told_with_the_call"), |double| {
        let names = || cards().map(|cards| cards.into_iter().map(|card| card.name).collect::<Vec<_>>());
        assert_eq!(names().unwrap(), ["Double 0", "Double 1"]);
        let calls = ["cuInit", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceTotalMem"];
        for call in calls.into_iter().chain(["cuDeviceGetAttribute"]) {
            for code in CODES {
                double.fail(call, code, 0);
                let message = names().unwrap_err().to_string();
                assert!(message.contains(&told(call, code)), "{message}");
            }
            const STUB: i32 = 34;
            double.fail(call, STUB, 0);
            assert!(matches!(names(), Err(DeviceError::StubDriver)), "{call}");
        }
    });
}

/// Before the first step, and not when its times are read.
#[test]
fn a_driver_that_lacks_what_timing_takes_is_named() {
    let test = path("a_driver_that_lacks_what_timing_takes_is_named");
    on_a_double(&test, &["-DcuEventElapsedTime_v2=something_else"], |double| {
        let message = double.clock(0).err().unwrap().to_string();
        for words in ["/libcuda.so.1, which", "has no cuEventElapsedTime", "LD_LIBRARY_PATH", "--device cpu"]
        {
            assert!(message.contains(words), "{words}: {message}");
        }
        assert_eq!(double.balance(), (0, 0, 0));
        assert!(cards().is_ok(), "nothing else is asked of it for that");
    });
}

#[test]
fn what_is_wrong_is_told_with_the_call_and_the_step() {
    on_the_double(&path("what_is_wrong_is_told_with_the_call_and_the_step"), |double| {
        for (step, from) in [(None, "from before the first step on"), (Some(12), "from step 12 on")] {
            for (call, code) in STAMPING.iter().flat_map(|call| CODES.map(|code| (call, code))) {
                let mut clock = double.clock(0).unwrap();
                step.into_iter().for_each(|step| clock.begin_step(step));
                double.fail(call, code, 0);
                assert_eq!(clock.stamp(0), None);
                double.fail("", 0, 0);
                let missing = &clock.missing()[0];
                let told = format!("{from} the device was not timed: CUDA driver, {}", told(call, code));
                assert!(missing.contains(&told), "{missing}");
            }
        }
    });
}

/// The first failure is told, with the first step that it cost its times, whichever step was in progress.
#[test]
fn a_reading_that_fails_names_the_step_that_is_read() {
    on_the_double(&path("a_reading_that_fails_names_the_step_that_is_read"), |double| {
        for (in_progress, call) in
            [("cuEventElapsedTime", "cuEventElapsedTime"), ("cuEventRecord", "cuEventQuery")]
        {
            let mut clock = double.clock(0).unwrap();
            clock.begin_step(3);
            let (begin, end) = span(double, &mut clock, 0, MS);
            double.pass(MS);
            clock.begin_step(7);
            double.fail(in_progress, LAUNCH_FAILED, 0);
            let stamped = clock.stamp(0).is_some();
            assert_eq!(stamped, in_progress == call);
            double.fail(call, LAUNCH_FAILED, 0);
            clock.read_step(Some(3));
            clock.reached(end);
            clock.elapsed_ns(begin, end);
            clock.read_step(None);
            double.fail("", 0, 0);
            let missing = &clock.missing()[0];
            let told = format!("from step 3 on the device was not timed: CUDA driver, {in_progress}: ");
            assert!(missing.contains(&told), "{missing}");
        }
    });
}

#[test]
fn a_call_that_fails_ends_the_timing_and_keeps_what_was_timed() {
    on_the_double(&path("a_call_that_fails_ends_the_timing_and_keeps_what_was_timed"), |double| {
        for call in STAMPING {
            let mut clock = double.clock(0).unwrap();
            let (begin, end) = span(double, &mut clock, 0, MS);
            double.pass(MS);
            double.fail(call, OUT_OF_MEMORY, 0);
            assert_eq!(clock.stamp(0), None, "{call}");
            double.fail("", 0, 0);
            // It has come back, but what lies in between is not known.
            assert_eq!(clock.stamp(0), None, "{call}");
            assert!(clock.reached(end));
            assert_eq!(clock.elapsed_ns(begin, end), Some(MS), "{call}");
            let missing = clock.missing();
            assert!(missing.len() == 1 && missing[0].contains("out of memory"), "{call}: {missing:?}");
        }
        let (made, destroyed, retained) = double.balance();
        assert_eq!((made, retained), (destroyed, 0));
    });
}

#[test]
fn a_lost_device_is_told_once_and_holds_nothing_up() {
    on_the_double(&path("a_lost_device_is_told_once_and_holds_nothing_up"), |double| {
        let codes = [LAUNCH_FAILED].into_iter().chain(CODES);
        for (call, code) in codes.flat_map(|code| READING.map(|call| (call, code))) {
            let mut clock = double.clock(0).unwrap();
            let (begin, end) = span(double, &mut clock, 0, MS);
            double.pass(MS);
            double.fail(call, code, 0);
            assert!(clock.reached(end), "a device that fails will never be through");
            clock.wait(end);
            if call != "cuEventQuery" && call != "cuThreadExchangeStreamCaptureMode" {
                assert_eq!((clock.elapsed_ns(begin, end), clock.host_ns(end)), (None, None));
            }
            assert_eq!(clock.stamp(0), None);
            let missing = clock.missing();
            let words = if code == LAUNCH_FAILED { "LAUNCH_FAILED".to_owned() } else { told(call, code) };
            assert!(missing.len() == 1 && missing[0].contains(&words), "{missing:?}");
            double.fail("", 0, 0);
            assert_eq!((double.capture_mode(), double.current()), (0, -1), "{call}");
        }
    });
}

/// A stamp that fails costs the times from there on, and none of those that a device in order still has to tell.
#[test]
fn a_stamp_that_fails_leaves_the_steps_before_it_their_times() {
    on_the_double(&path("a_stamp_that_fails_leaves_the_steps_before_it_their_times"), |double| {
        let mut clock = double.patient_clock(0, Duration::from_secs(60)).unwrap();
        let spans: Vec<_> = (3..7)
            .map(|step| {
                clock.begin_step(step);
                span(double, &mut clock, 0, 5 * MS)
            })
            .collect();
        clock.begin_step(7);
        double.fail("cuEventCreate", OUT_OF_MEMORY, 0);
        assert_eq!(clock.stamp(0), None);
        double.fail("", 0, 0);
        double.tick(MS);
        for (step, &(begin, end)) in (3..7).zip(&spans) {
            clock.read_step(Some(step));
            clock.wait(end);
            assert_eq!(clock.elapsed_ns(begin, end), Some(5 * MS), "step {step}");
        }
        let missing = clock.missing();
        assert!(missing.len() == 1 && missing[0].contains("from step 7 on"), "{missing:?}");
    });
}

#[test]
fn a_device_that_is_never_through_is_given_up() {
    on_the_double(&path("a_device_that_is_never_through_is_given_up"), |double| {
        let mut clock = double.clock(0).unwrap();
        let (begin, end) = span(double, &mut clock, 0, MS);
        double.stick();
        assert!(!clock.reached(end));
        clock.wait(end);
        assert_eq!((clock.elapsed_ns(begin, end), clock.stamp(0)), (None, None));
        let missing = clock.missing();
        assert!(missing.len() == 1 && missing[0].contains("got no further"), "{missing:?}");
        // A clock cannot even begin on it.
        assert!(double.clock(0).err().unwrap().to_string().contains("got no further"));
        drop(clock);
        let (made, destroyed, _) = double.balance();
        assert_eq!(made, destroyed);
    });
}
