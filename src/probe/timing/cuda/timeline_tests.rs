//! Where the device's instants lie on the host's timeline, by the clock on the driver's double: nothing of this is a
//! measurement.

use super::Clock;
use super::double::{on_the_double, span};

const MS: i64 = 1_000_000;

fn path(test: &str) -> String {
    let (_, module) = module_path!().split_once("::").unwrap();
    format!("{module}::{test}")
}

#[test]
fn the_lead_is_how_far_the_device_is_behind() {
    on_the_double(&path("the_lead_is_how_far_the_device_is_behind"), |double| {
        // The anchor was taken at the host's own instant, all after it at instants that the test names.
        let mut clock = double.clock(0).unwrap();
        let begin_ns = clock.anchors.all()[0].host_ns;
        let (_, end) = span(double, &mut clock, begin_ns, 7 * MS);
        double.pass(7 * MS);
        assert_eq!(clock.host_ns(end), Some(begin_ns + 7 * MS));
        // Three seconds later by the host's clock, which the device has slept through: the timelines have moved apart
        // until the host waits, and then they meet.
        let late_ns = begin_ns + 3000 * MS;
        let (begin, idle) = (clock.stamp(late_ns).unwrap(), clock.stamp(late_ns).unwrap());
        clock.pin(begin, idle);
        let (_, end) = span(double, &mut clock, late_ns, 2 * MS);
        double.pass(2 * MS);
        assert_eq!(clock.host_ns(end), Some(late_ns + 2 * MS));
        // A wait that was none, since the device has not even begun what was before it, moves nothing.
        double.work(5 * MS);
        let (begin, busy) = (clock.stamp(late_ns).unwrap(), clock.stamp(late_ns).unwrap());
        let before = clock.anchors.all().len();
        clock.pin(begin, busy);
        assert_eq!(clock.anchors.all().len(), before);
        // And no instant comes before the host asked for it.
        double.pass(5 * MS);
        let early = clock.stamp(late_ns + 60_000 * MS).unwrap();
        assert_eq!(clock.host_ns(early), Some(late_ns + 60_000 * MS));
    });
}

/// A loop that reads its loss without saying so, for hours: the host finds the device idle now and then all the same.
#[test]
fn the_timelines_meet_where_the_device_is_found_idle_and_are_not_used_when_they_have_not_for_long() {
    on_the_double(
        &path(
            "the_timelines_meet_where_the_device_is_found_idle_and_are_not_used_when_they_have_not_for_long",
        ),
        |double| {
            const S: i64 = 1000 * MS;
            const US: i64 = 1000;
            let mut clock = double.clock(0).unwrap();
            // Ten minutes on both clocks, of which the device's is the faster by 0.6 ms, in steps of 30 s.
            let mut at_ns = clock.anchors.all()[0].host_ns;
            for _ in 0..20 {
                (0..30).for_each(|_| double.pass(S + US));
                at_ns += 30 * S;
                let idle = clock.stamp(at_ns).unwrap();
                let (begin, end) = span(double, &mut clock, at_ns + 10 * US, 5 * MS);
                double.pass(5 * MS);
                at_ns += 5 * MS;
                assert_eq!(clock.host_ns(begin), Some(at_ns - 5 * MS + 10 * US));
                // To what the driver tells of 30 s.
                let behind_ns = clock.host_ns(end).unwrap() - at_ns;
                assert!((0..=10 * US).contains(&behind_ns), "{behind_ns}");
                clock.reached(end);
                clock.forget(idle);
                clock.forget(end);
            }
            assert!(clock.missing().is_empty());
            // A device that always has work is never found idle: after a minute the host's timeline is not known.
            let mut told = Vec::new();
            for _ in 0..4 {
                at_ns += 25 * S;
                double.work(25 * S);
                let (begin, end) = span(double, &mut clock, at_ns, S);
                double.pass(26 * S);
                told.push(clock.host_ns(begin).is_some());
                assert_eq!(clock.elapsed_ns(begin, end), Some(S));
            }
            assert_eq!(told, [true, true, false, false]);
            let missing = clock.missing();
            assert!(missing.len() == 1 && missing[0].contains("probe::waiting()"), "{missing:?}");
        },
    );
}

/// The device was busy until after the host had begun to ask, and the host was held up before it had its answer.
#[test]
fn an_answer_that_comes_late_is_no_meeting_of_the_timelines() {
    on_the_double(&path("an_answer_that_comes_late_is_no_meeting_of_the_timelines"), |double| {
        const US: i64 = 1000;
        let mut clock = double.clock(0).unwrap();
        let asked_ns = clock.anchors.all()[0].host_ns + 2000 * MS;
        for (late_us, anchors) in [(101, 1), (100, 2)] {
            double.host_at(asked_ns + late_us * US);
            clock.stamp(asked_ns).unwrap();
            clock.stamp(asked_ns + 50 * US).unwrap();
            assert_eq!(clock.anchors.all().len(), anchors, "{late_us}");
        }
    });
}
