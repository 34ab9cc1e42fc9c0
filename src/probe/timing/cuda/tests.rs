//! The clock against a double of the driver: there is no GPU here, and nothing of this is a measurement.

use super::double::{CODES, on_a_double, on_the_double, span, told};
use super::{Clock, CudaClock, CudaError, device_facts};
use crate::device::{DriverError, is_loadable};
use crate::record::DeviceFacts;

const MS: i64 = 1_000_000;

fn path(test: &str) -> String {
    let (_, module) = module_path!().split_once("::").unwrap();
    format!("{module}::{test}")
}

#[test]
fn without_a_driver_the_error_says_what_to_do() {
    let is_none = |error: &CudaError| matches!(error, CudaError::Driver(DriverError::None(_)));
    let none = CudaClock::new(0).err().filter(is_none);
    assert_eq!(none.is_none(), is_loadable(), "{none:?}");
    if let Some(message) = none.map(|none| none.to_string()) {
        assert!(message.contains("libcuda.so.1") && message.contains("--device cpu"), "{message}");
    }
}

#[test]
fn spans_are_read_when_the_device_is_through_and_never_waited_for() {
    on_the_double(&path("spans_are_read_when_the_device_is_through_and_never_waited_for"), |double| {
        let mut clock = double.clock(0).unwrap();
        let outer = clock.stamp(0).unwrap();
        let (begin, end) = span(double, &mut clock, 0, 3 * MS);
        double.work(2 * MS);
        let outer_end = clock.stamp(0).unwrap();
        assert!(!clock.reached(end));
        double.pass(4 * MS);
        assert!(clock.reached(end) && !clock.reached(outer_end));
        double.pass(MS);
        assert!(clock.reached(outer_end));
        assert_eq!(clock.elapsed_ns(begin, end), Some(3 * MS));
        assert_eq!(clock.elapsed_ns(outer, outer_end), Some(5 * MS));
        assert!(clock.missing().is_empty());
        // Each from its own begin to its own end: the anchor's event has number 0.
        assert_eq!(double.calls_of("elapsed"), [(2, 3), (1, 4)]);
        // Recorded in the order of asking, on the stream that was named, by events that take the time.
        let records = double.calls_of("record");
        assert!(records.iter().all(|&(_, stream)| stream == 0), "{records:?}");
        assert_eq!(records.len(), 2 + 4, "two for the anchor, and one a stamp");
        assert!(records[2..].windows(2).all(|pair| pair[0].0 < pair[1].0), "{records:?}");
        const NO_TIMING: i32 = 2;
        assert!(double.calls_of("create").iter().all(|&(_, flags)| flags & NO_TIMING == 0));
        assert!(double.calls_of("synchronize").is_empty());
    });
}

/// However many streams there are to ask, the thread is relaxed once, and left as it was.
#[test]
fn queries_made_at_a_time_are_relaxed_together() {
    on_the_double(&path("queries_made_at_a_time_are_relaxed_together"), |double| {
        let mut clock = double.clock(0).unwrap();
        let stamps = [0, 1, 2, 3].map(|stream| {
            double.use_stream(stream);
            clock.stamp(0).unwrap()
        });
        let (queries, exchanges) = (double.calls_of("query").len(), double.calls_of("exchange").len());
        assert!(clock.reached(stamps[3]));
        assert_eq!(double.calls_of("query").len() - queries, 4);
        assert_eq!(double.calls_of("exchange")[exchanges..], [(2, 0), (0, 2)]);
        assert_eq!(double.capture_mode(), 0);
    });
}

/// Ten spans' work, and no patience but for a device that gets further: it does with every query.
#[test]
fn a_device_that_gets_further_is_waited_for() {
    on_the_double(&path("a_device_that_gets_further_is_waited_for"), |double| {
        let mut clock = double.clock(0).unwrap();
        let spans: Vec<_> = (0..10).map(|_| span(double, &mut clock, 0, MS)).collect();
        double.tick(MS);
        clock.wait(spans[9].1);
        assert_eq!(clock.missing(), Vec::<String>::new());
        assert!(spans.iter().all(|&(begin, end)| clock.elapsed_ns(begin, end) == Some(MS)));
    });
}

#[test]
fn a_driver_from_before_cuda_12_8_is_timed_by_the_function_that_it_has() {
    let test = path("a_driver_from_before_cuda_12_8_is_timed_by_the_function_that_it_has");
    on_a_double(&test, &["-DOLD_DRIVER"], |double| {
        let mut clock = double.clock(0).unwrap();
        let (begin, end) = span(double, &mut clock, 0, 3 * MS);
        double.pass(3 * MS);
        assert_eq!(clock.elapsed_ns(begin, end), Some(3 * MS));
    });
}

#[test]
fn events_are_used_again_and_none_is_left() {
    on_the_double(&path("events_are_used_again_and_none_is_left"), |double| {
        let mut clock = double.clock(0).unwrap();
        for step in 0..50 {
            let (begin, end) = span(double, &mut clock, step, MS);
            double.pass(MS);
            assert!(clock.reached(end));
            assert_eq!(clock.elapsed_ns(begin, end), Some(MS));
            // The host waits in every other step, which makes a new anchor of an event.
            if step % 2 == 0 {
                clock.pin(begin, end);
            }
            clock.forget(end);
        }
        let (made, destroyed, retained) = double.balance();
        assert!(made <= 6 && destroyed == 0 && retained == 1, "{made} {destroyed} {retained}");
        drop(clock);
        let (made, destroyed, retained) = double.balance();
        assert_eq!((made, retained), (destroyed, 0));
    });
}

#[test]
fn a_change_of_stream_is_timed_by_the_events_and_said_once() {
    on_the_double(&path("a_change_of_stream_is_timed_by_the_events_and_said_once"), |double| {
        let mut clock = double.clock(0).unwrap();
        for _ in 0..2 {
            double.use_stream(0);
            let begin = clock.stamp(0).unwrap();
            double.use_stream(3);
            double.work(2 * MS);
            let end = clock.stamp(0).unwrap();
            // The first stream is through at once, the other is not.
            assert!(!clock.reached(end));
            double.pass(2 * MS);
            assert!(clock.reached(end));
            assert_eq!(clock.elapsed_ns(begin, end), Some(2 * MS));
            // The other way round it would be negative, which is no duration.
            assert_eq!(clock.elapsed_ns(end, begin), None);
        }
        let streams: Vec<_> = double.calls_of("record").iter().map(|call| call.1).collect();
        assert_eq!(streams, [0, 0, 0, 3, 0, 3]);
        let missing = clock.missing();
        assert!(missing.len() == 1 && missing[0].contains("stream"), "{missing:?}");
    });
}

#[test]
fn nothing_is_recorded_while_a_graph_is_captured() {
    on_the_double(&path("nothing_is_recorded_while_a_graph_is_captured"), |double| {
        let mut clock = double.clock(0).unwrap();
        double.capture(0, true);
        assert_eq!(clock.stamp(0), None);
        assert_eq!(double.calls_of("record").len(), 2);
        double.capture(0, false);
        assert!(clock.stamp(0).is_some());
        let missing = clock.missing();
        assert!(missing.len() == 1 && missing[0].contains("captured"), "{missing:?}");
        // The default stream, while another one is captured.
        const IMPLICIT: i32 = 906;
        double.fail("cuStreamIsCapturing", IMPLICIT, 0);
        assert_eq!(clock.stamp(0), None);
        assert_eq!(clock.missing().len(), 1);
    });
}

#[test]
fn each_device_is_timed_in_its_own_context_which_is_left_again() {
    on_the_double(&path("each_device_is_timed_in_its_own_context_which_is_left_again"), |double| {
        // Streams 4 to 7 are the second device's. The loop works on the first one.
        (4..8).for_each(|stream| double.place(stream, 1));
        double.set_current(0);
        double.use_stream(4);
        let mut second = double.clock(1).unwrap();
        assert_eq!(double.current(), 0);
        let (begin, end) = span(double, &mut second, 0, MS);
        double.pass(MS);
        assert!(second.reached(end));
        assert_eq!((second.elapsed_ns(begin, end), double.current()), (Some(MS), 0));
        // A thread without a context has none afterwards either.
        double.set_current(-1);
        double.use_stream(0);
        let mut first = double.clock(0).unwrap();
        assert!(first.stamp(0).is_some());
        assert_eq!(double.current(), -1);
        assert!(first.missing().is_empty() && second.missing().is_empty());
        drop((first, second));
        let (made, destroyed, retained) = double.balance();
        assert_eq!((made, retained, double.current()), (destroyed, 0, -1));
        let beyond = double.clock(2).err().unwrap().to_string();
        assert!(beyond.contains("CUDA driver"), "{beyond}");
    });
}

#[test]
fn what_driver_and_nvml_tell_of_a_device_is_kept_and_the_rest_is_named() {
    on_the_double(&path("what_driver_and_nvml_tell_of_a_device_is_kept_and_the_rest_is_named"), |double| {
        let (facts, missing) = device_facts(0).unwrap();
        let told = DeviceFacts {
            device_name: Some("Double 0".to_owned()),
            compute_capability: Some("9.0".to_owned()),
            multiprocessors: Some(132),
            device_memory_bytes: Some(1 << 30),
            device_free_bytes: Some(1 << 29),
            driver_version: Some("999.1".to_owned()),
            cuda_driver_version: Some("13.2".to_owned()),
            sm_clock_mhz: Some(1000),
            memory_clock_mhz: Some(2000),
            power_w: Some(75.5),
            power_limit_w: None,
            // These two are not the doubles': libtorch's own runtime, and this environment.
            cuda_runtime_version: facts.cuda_runtime_version.clone(),
            allocator_settings: facts.allocator_settings.clone(),
        };
        let runtime = facts.cuda_runtime_version.is_none().then_some(NO_RUNTIME);
        let untold: Vec<_> = runtime.into_iter().chain([NO_POWER_LIMIT]).collect();
        assert_eq!((&facts, missing), (&told, untold.iter().map(|line| (*line).to_owned()).collect()));
        // NVML's double does not know the second device.
        let (facts, missing) = device_facts(1).unwrap();
        assert_eq!((facts.device_name.as_deref(), facts.driver_version), (Some("Double 1"), None));
        let of_nvml = "driver_version, sm_clock_mhz, memory_clock_mhz, power_w, power_limit_w: NVML's ";
        let line = missing.iter().find(|line| line.starts_with(of_nvml));
        assert!(line.is_some_and(|line| line.contains("failed: Not Found (code 6)")), "{missing:?}");
        assert!(device_facts(2).is_err());
        assert_eq!((double.current(), double.balance().2), (-1, 0));
    });
}

const NO_POWER_LIMIT: &str = "power_limit_w: NVML does not tell it of this device";
const NO_RUNTIME: &str = "cuda_runtime_version: no CUDA runtime is loaded that could be asked";

#[test]
fn each_fact_that_is_not_told_is_named_with_the_call_that_failed() {
    on_the_double(&path("each_fact_that_is_not_told_is_named_with_the_call_that_failed"), |double| {
        let calls = [
            ("cuDeviceGetName", "device_name"),
            ("cuDeviceGetAttribute", "compute_capability, multiprocessors"),
            ("cuMemGetInfo", "device_memory_bytes, device_free_bytes"),
            ("cuDriverGetVersion", "cuda_driver_version"),
            ("cuDeviceGetPCIBusId", "driver_version, sm_clock_mhz, memory_clock_mhz, power_w, power_limit_w"),
        ];
        for (call, columns) in calls {
            for code in CODES {
                double.fail(call, code, 0);
                let (facts, missing) = device_facts(0).unwrap();
                let of_call: Vec<_> =
                    missing.iter().filter(|line| line.contains(&told(call, code))).collect();
                assert_eq!(of_call.len(), 1, "{call}: {missing:?}");
                assert!(of_call[0].starts_with(&format!("{columns}: ")), "{call}: {missing:?}");
                let others =
                    missing.iter().filter(|line| ![NO_RUNTIME, NO_POWER_LIMIT].contains(&line.as_str()));
                assert_eq!(others.count(), 1, "{call}: {missing:?}");
                assert_eq!(facts.device_name.is_none(), call == "cuDeviceGetName");
                assert_eq!(facts.device_free_bytes.is_none(), call == "cuMemGetInfo");
            }
        }
        double.fail("", 0, 0);
        assert_eq!((double.current(), double.balance().2), (-1, 0));
    });
}

#[test]
fn a_clock_that_cannot_begin_says_why_and_leaves_nothing() {
    on_the_double(&path("a_clock_that_cannot_begin_says_why_and_leaves_nothing"), |double| {
        let calls = [
            "cuInit",
            "cuDeviceGet",
            "cuDevicePrimaryCtxRetain",
            "cuCtxGetCurrent",
            "cuCtxSetCurrent",
            "cuEventCreate",
            "cuEventRecord",
            "cuThreadExchangeStreamCaptureMode",
            "cuEventQuery",
        ];
        for call in calls {
            for code in CODES {
                double.fail(call, code, 0);
                let message = double.clock(0).err().unwrap().to_string();
                let told = format!("CUDA driver, {}", told(call, code));
                assert!(message.contains(&told), "{call}: {message}");
                double.fail("", 0, 0);
                let (made, destroyed, retained) = double.balance();
                assert_eq!((made, retained, double.current()), (destroyed, 0, -1), "{call}");
                assert_eq!(double.capture_mode(), 0, "{call}");
            }
        }
    });
}
