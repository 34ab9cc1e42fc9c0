//! What becomes of spans on a device that is made up.

use super::device::DeviceTimes;
use super::names::ROOT;
use super::spans::{Closed, Span};
use super::timing::{Clock, Stamp};
use crate::ledger::Exposed;
use crate::record::{Phase, SpanKind};

const US: i64 = 1000;

/// A device that reaches stamp number n at microsecond n; from 500 on they are on another stream.
struct Numbers;

const OTHER_STREAM: u64 = 500;

impl Clock for Numbers {
    fn begin_step(&mut self, _: i64) {}

    fn read_step(&mut self, _: Option<i64>) {}

    fn stamp(&mut self, host_ns: i64) -> Option<Stamp> {
        u64::try_from(host_ns / US).ok().map(Stamp::numbered)
    }

    fn pin(&mut self, _: Stamp, _: Stamp) {}

    fn reached(&mut self, _: Stamp) -> bool {
        true
    }

    fn wait(&mut self, _: Stamp) {}

    fn elapsed_ns(&mut self, begin: Stamp, end: Stamp) -> Option<i64> {
        Some(self.host_ns(end)? - self.host_ns(begin)?)
    }

    fn host_ns(&mut self, stamp: Stamp) -> Option<i64> {
        (0..10_000).find(|&number| Stamp::numbered(number) == stamp).map(|number| number as i64 * US)
    }

    fn same_stream(&self, a: Stamp, b: Stamp) -> bool {
        (a < Stamp::numbered(OTHER_STREAM)) == (b < Stamp::numbered(OTHER_STREAM))
    }

    fn forget(&mut self, _: Stamp) {}

    fn missing(&self) -> Vec<String> {
        vec![]
    }
}

fn device() -> DeviceTimes {
    DeviceTimes::new(Box::new(Numbers))
}

/// From and until when on the host, and on the device, in microseconds.
fn span(kind: SpanKind, phase: Phase, host: (i64, i64), device: Option<(u64, u64)>) -> Span {
    let device = device.map(|(begin, end)| (Stamp::numbered(begin), Stamp::numbered(end)));
    Span { kind, phase, scope: ROOT, begin_ns: host.0 * US, end_ns: host.1 * US, device }
}

fn phase(phase: Phase, host: (i64, i64), device: (u64, u64)) -> Span {
    span(SpanKind::Phase, phase, host, Some(device))
}

/// In microseconds: kernel, transfer, sync, launch, idle. The device has no work beside the spans.
fn exposed(device: &mut DeviceTimes, window: (i64, i64), spans: &[Span]) -> Option<[i64; 5]> {
    let ends = spans.iter().filter_map(|span| span.device.map(|(_, end)| end));
    let end = ends.chain([Stamp::numbered(window.1 as u64)]).max();
    exposed_until(device, window, spans, end)
}

/// The same where the device gets to the step's end with this stamp.
fn exposed_until(
    device: &mut DeviceTimes,
    window: (i64, i64),
    spans: &[Span],
    end: Option<Stamp>,
) -> Option<[i64; 5]> {
    let parts = device.exposed(window.0 * US, window.1 * US, &Closed { spans: spans.to_vec(), end })?;
    let Exposed { kernel_ns, transfer_ns, sync_ns, launch_ns, idle_ns } = parts;
    Some([kernel_ns, transfer_ns, sync_ns, launch_ns, idle_ns].map(|ns| ns / US))
}

#[test]
fn each_instant_of_a_step_is_exposed_once_and_the_device_works_on_beyond_it() {
    let mut device = device();
    let batch = span(SpanKind::Transfer, Phase::Dataloader, (1, 5), Some((2, 30)));
    let forward = phase(Phase::Forward, (6, 50), (30, 90));
    assert_eq!(device.lead_ns(&forward), Some(40 * US));
    let loader = phase(Phase::Dataloader, (0, 5), (1, 30));
    let first = exposed(&mut device, (0, 60), &[loader, batch, forward]);
    assert_eq!(first, Some([30, 28, 0, 0, 2]));
    // The next step waits while the first one's kernels still run until 90, and then for nothing.
    let waiting = span(SpanKind::Sync, Phase::Other, (70, 95), Some((90, 91)));
    let second = exposed(&mut device, (60, 100), &[waiting]);
    assert_eq!(second, Some([30, 0, 5, 0, 5]));
}

/// A step's lead, in microseconds: it ended on the host at `end`, and the device got to that at `through`.
fn lead(end: i64, through: Option<u64>, spans: Vec<Span>) -> Option<i64> {
    let closed = Closed { spans, end: through.map(Stamp::numbered) };
    device().step_lead_ns(end * US, &closed).map(|ns| ns / US)
}

#[test]
fn a_steps_lead_is_how_long_the_device_goes_on_when_it_has_ended_on_the_host() {
    let optimizer = |stamps| phase(Phase::Optimizer, (50, 60), stamps);
    assert_eq!(lead(70, Some(110), vec![optimizer((80, 100))]), Some(40), "what is in no phase counts, too");
    assert_eq!(lead(70, Some(71), vec![optimizer((50, 60))]), Some(1));
    assert_eq!(lead(70, Some(110), vec![]), Some(40));
    // A copy on another stream may end later, or have ended long ago.
    let copy = |end| span(SpanKind::Transfer, Phase::Other, (10, 20), Some((OTHER_STREAM, end)));
    assert_eq!(lead(70, Some(110), vec![copy(OTHER_STREAM + 30)]), Some(460));
    assert_eq!(lead(540, Some(110), vec![copy(OTHER_STREAM + 30)]), Some(0), "through before the host was");
}

#[test]
fn of_a_step_that_was_not_timed_throughout_the_lead_is_not_known() {
    let untimed = span(SpanKind::Phase, Phase::Forward, (6, 50), None);
    assert_eq!(lead(70, Some(110), vec![untimed]), None);
    assert_eq!(lead(70, None, vec![phase(Phase::Optimizer, (50, 60), (80, 100))]), None);
}

#[test]
fn after_a_step_that_was_not_timed_the_next_one_is_not_known_either() {
    let mut device = device();
    let lost = span(SpanKind::Phase, Phase::Forward, (6, 50), None);
    assert_eq!(exposed(&mut device, (0, 60), &[lost]), None);
    // It may run on until the device begins what it was given after it: beyond the end of this step …
    let late = phase(Phase::Forward, (65, 80), (110, 130));
    assert_eq!(exposed(&mut device, (60, 100), &[late]), None);
    // … and into this one, of which the rest is known, which helps only the next.
    let late = phase(Phase::Forward, (105, 120), (130, 170));
    assert_eq!(exposed(&mut device, (100, 150), &[late]), None);
    let waiting = span(SpanKind::Sync, Phase::Other, (160, 180), Some((170, 180)));
    assert_eq!(exposed(&mut device, (150, 200), &[waiting]), Some([20, 0, 10, 0, 20]));
    // A scope within a phase counts by its phase alone.
    let scope = span(SpanKind::Scope, Phase::Forward, (206, 210), None);
    assert_eq!(exposed(&mut device, (200, 220), &[scope]), Some([0, 0, 0, 0, 20]));
    device.lose_track();
    assert_eq!(exposed(&mut device, (220, 230), &[]), None);
}

#[test]
fn copies_and_waits_within_a_phase_are_no_kernels() {
    let forward = || phase(Phase::Forward, (0, 80), (0, 90));
    let copy = |stamps| span(SpanKind::Transfer, Phase::Forward, (10, 20), Some(stamps));
    let wait = span(SpanKind::Sync, Phase::Forward, (40, 62), Some((50, 63)));
    // From 50 on the device had nothing to do, and the host went on waiting until 62.
    let parts = exposed(&mut device(), (0, 100), &[copy((10, 25)), wait, forward()]);
    assert_eq!(parts, Some([10 + 25 + 27, 15, 12, 0, 11]));
    // A copy on another stream goes on beside the kernels.
    let beside = [copy((OTHER_STREAM, OTHER_STREAM + 15)), forward()];
    assert_eq!(exposed(&mut device(), (0, 100), &beside), Some([90, 0, 0, 0, 10]));
}

#[test]
fn what_the_device_waits_for_the_host_between_two_spans_is_launching() {
    let mut device = device();
    // Forward is through at 300 and the host comes with backward at 1000, with the optimizer at once.
    let spans = [
        phase(Phase::Forward, (0, 200), (10, 300)),
        phase(Phase::Backward, (1000, 1200), (1010, 1500)),
        phase(Phase::Optimizer, (1200, 1300), (1500, 1600)),
    ];
    assert_eq!(exposed(&mut device, (0, 2000), &spans), Some([290 + 490 + 100, 0, 0, 710, 10 + 400]));
    // The loader had the host until 2500: that is no launching; its own begin came 40 after the step's.
    let spans = [
        phase(Phase::Dataloader, (2040, 2500), (2045, 2505)),
        phase(Phase::Forward, (2520, 2600), (2525, 2700)),
    ];
    assert_eq!(exposed(&mut device, (2000, 2700), &spans), Some([175, 0, 0, 45 + 20, 460]));
    // A device that takes a begin late was at something else.
    let spans = [phase(Phase::Forward, (3000, 3100), (3200, 3400))];
    assert_eq!(exposed(&mut device, (2700, 3400), &spans), Some([200, 0, 0, 0, 500]));
    // The host waited in between, which is known for what it is.
    let wait = span(SpanKind::Sync, Phase::Other, (3400, 3900), Some((3401, 3905)));
    let spans = [wait, phase(Phase::Forward, (3950, 4000), (3960, 4000))];
    assert_eq!(exposed(&mut device, (3400, 4000), &spans), Some([40, 0, 500, 55, 5]));
}

/// An optimizer in no phase has the device until 500, and the next step's first phase is asked for at 520.
#[test]
fn a_steps_first_launch_gap_begins_where_the_device_got_to_the_end_of_the_step_before() {
    let launch = |end: Option<u64>, more: &[Span]| {
        let mut device = device();
        let mut first = vec![phase(Phase::Forward, (5, 20), (10, 60))];
        first.extend_from_slice(more);
        exposed_until(&mut device, (0, 70), &first, end.map(Stamp::numbered)).unwrap();
        let parts = exposed(&mut device, (70, 700), &[phase(Phase::Forward, (520, 530), (525, 600))]);
        parts.map(|[.., launch, _]| launch)
    };
    assert_eq!(launch(Some(500), &[]), Some(25), "not from forward's end on");
    assert_eq!(launch(Some(70), &[]), Some(525 - 70));
    let copy = span(SpanKind::Transfer, Phase::Other, (30, 40), Some((OTHER_STREAM, OTHER_STREAM + 10)));
    assert_eq!(launch(Some(500), &[copy]), Some(15), "another stream's copy ends later still");
    assert_eq!(launch(None, &[]), Some(0), "nobody knows how long it was at what is in no phase");
}

/// A micro-batch around its phases: what is between those is launching, as it is without the scope.
#[test]
fn a_scope_around_phases_hides_no_gap_between_them() {
    let scope = |host, stamps| span(SpanKind::Scope, Phase::Other, host, Some(stamps));
    let phases = || {
        vec![
            phase(Phase::Forward, (0, 200), (10, 300)),
            phase(Phase::Backward, (1000, 1200), (1010, 1500)),
            phase(Phase::Optimizer, (1600, 1700), (1610, 1700)),
        ]
    };
    let bare = exposed(&mut device(), (0, 2000), &phases());
    assert_eq!(bare.map(|[.., launch, _]| launch), Some(710 + 110));
    let micro_batch = scope((0, 1205), (5, 1502));
    // One around it, and one in it that has nothing in it.
    let whole_step = scope((0, 1800), (4, 1800));
    let lone = scope((1800, 1900), (1810, 1900));
    let mut with = phases();
    with.extend([micro_batch, whole_step]);
    assert_eq!(exposed(&mut device(), (0, 2000), &with), bare);
    with.push(lone);
    let parts = exposed(&mut device(), (0, 2000), &with);
    assert_eq!(
        parts.map(|[.., launch, _]| launch),
        Some(710 + 110 + 110),
        "what it does is not known, but that it does"
    );
}

/// What else such a scope has the device do is launched in it: a reading of the loss that waits behind kernels, for one.
#[test]
fn a_scope_around_a_wait_or_a_copy_alone_is_work_too() {
    let scope = |host, stamps| span(SpanKind::Scope, Phase::Other, host, Some(stamps));
    for (kind, exposed_elsewhere) in [(SpanKind::Sync, [0, 100]), (SpanKind::Transfer, [100, 0])] {
        let inner = span(kind, Phase::Other, (800, 900), Some((805, 905)));
        let spans = [inner, scope((0, 900), (5, 905))];
        let mut device = device();
        exposed(&mut device, (-20, 0), &[phase(Phase::Forward, (-20, -10), (0, 0))]);
        let [_, transfer, sync, launch, _] = exposed(&mut device, (0, 905), &spans).unwrap();
        assert_eq!(launch, 5, "{kind}: until the device got to the scope");
        assert_eq!([transfer, sync], exposed_elsewhere, "{kind}");
    }
    // One in a scope around a phase, and one of its own behind it: the outer scope is around the phase still.
    let forward = phase(Phase::Forward, (0, 200), (10, 300));
    let copy = span(SpanKind::Transfer, Phase::Other, (500, 600), Some((505, 700)));
    let (around_copy, around_both) = (scope((450, 980), (455, 985)), scope((0, 990), (1, 995)));
    let backward = phase(Phase::Backward, (1000, 1200), (1010, 1500));
    let spans = [forward, copy, around_copy, around_both, backward];
    let parts = exposed(&mut device(), (0, 2000), &spans);
    assert_eq!(parts.map(|[_, transfer, _, launch, _]| (transfer, launch)), Some((195, 155 + 25)));
}
