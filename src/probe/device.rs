//! What the device's clock says of spans that are closed.

use super::shares::COMPUTE;
use super::spans::Span;
use super::timing::{Clock, Stamp};
use crate::ledger::{Activity, Exposed, Interval, exposed};
use crate::record::SpanKind;

/// The device's clock, and what the last step left it to do.
pub struct DeviceTimes {
    clock: Box<dyn Clock>,
    /// What reaches beyond the end of the last step: the device works behind the host.
    tail: Vec<Interval>,
}

impl DeviceTimes {
    pub fn new(clock: Box<dyn Clock>) -> Self {
        DeviceTimes { clock, tail: Vec::new() }
    }

    pub fn stamp(&mut self, host_ns: i64) -> Option<Stamp> {
        self.clock.stamp(host_ns)
    }

    /// Says that the host has waited for the device during this span.
    pub fn waited(&mut self, span: &Span) {
        if let Some((begin, end)) = span.device {
            self.clock.pin(begin, end);
        }
    }

    /// Whether the device has got through all of these spans, or never will.
    pub fn reached(&mut self, spans: &[Span]) -> bool {
        last(spans).is_none_or(|last| self.clock.reached(last))
    }

    /// Waits for that.
    pub fn wait(&mut self, spans: &[Span]) {
        if let Some(last) = last(spans) {
            self.clock.wait(last);
        }
    }

    /// Says that nothing up to the end of these spans will be asked for again.
    pub fn forget(&mut self, spans: &[Span]) {
        if let Some(last) = last(spans) {
            self.clock.forget(last);
        }
    }

    pub fn elapsed_ns(&mut self, span: &Span) -> Option<i64> {
        let (begin, end) = span.device?;
        self.clock.elapsed_ns(begin, end)
    }

    /// From the end of the span on the host's side to its end on the device's.
    pub fn lead_ns(&mut self, span: &Span) -> Option<i64> {
        let (_, end) = span.device?;
        Some(self.clock.host_ns(end)? - span.end_ns)
    }

    /// What the step from `begin_ns` to `end_ns` was spent on. The phases that compute count as one kernel each, from
    /// their first instant on the device to their last: what happens between their kernels, nobody here sees. `None`
    /// where a span was not timed.
    pub fn exposed(&mut self, begin_ns: i64, end_ns: i64, spans: &[Span]) -> Option<Exposed> {
        let mut intervals = std::mem::take(&mut self.tail);
        for span in spans {
            if let Some(activity) = activity(span) {
                intervals.push(self.interval(activity, span)?);
            }
        }
        self.tail.extend(intervals.iter().filter(|interval| interval.end_ns > end_ns));
        Some(exposed(begin_ns, end_ns, &intervals))
    }

    /// On the host's timeline: waiting is the host's, the rest the device's.
    fn interval(&mut self, activity: Activity, span: &Span) -> Option<Interval> {
        if activity == Activity::Sync {
            return Some(Interval { activity, begin_ns: span.begin_ns, end_ns: span.end_ns });
        }
        let (begin, end) = span.device?;
        let (begin_ns, end_ns) = (self.clock.host_ns(begin)?, self.clock.host_ns(end)?);
        Some(Interval { activity, begin_ns, end_ns })
    }

    pub fn missing(&self) -> Vec<String> {
        self.clock.missing()
    }
}

fn activity(span: &Span) -> Option<Activity> {
    match span.kind {
        SpanKind::Phase => COMPUTE.contains(&span.phase).then_some(Activity::Kernel),
        SpanKind::Transfer => Some(Activity::Transfer),
        SpanKind::Sync => Some(Activity::Sync),
        SpanKind::Scope | SpanKind::Node | SpanKind::Between => None,
    }
}

fn last(spans: &[Span]) -> Option<Stamp> {
    spans.iter().filter_map(|span| span.device.map(|(begin, end)| begin.max(end))).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::names::ROOT;
    use crate::record::Phase;

    /// A device that reaches stamp number n at instant n.
    struct Numbers;

    impl Clock for Numbers {
        fn stamp(&mut self, host_ns: i64) -> Option<Stamp> {
            u64::try_from(host_ns).ok().map(Stamp::numbered)
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
            (0..1000).find(|&number| Stamp::numbered(number) == stamp).map(|number| number as i64)
        }

        fn forget(&mut self, _: Stamp) {}

        fn missing(&self) -> Vec<String> {
            vec![]
        }
    }

    /// From and until when on the host, and on the device.
    fn span(kind: SpanKind, phase: Phase, host: (i64, i64), device: Option<(u64, u64)>) -> Span {
        let device = device.map(|(begin, end)| (Stamp::numbered(begin), Stamp::numbered(end)));
        Span { kind, phase, scope: ROOT, begin_ns: host.0, end_ns: host.1, device }
    }

    #[test]
    fn each_instant_of_a_step_is_exposed_once_and_the_device_works_on_beyond_it() {
        let mut device = DeviceTimes::new(Box::new(Numbers));
        let batch = span(SpanKind::Transfer, Phase::Dataloader, (1, 5), Some((2, 30)));
        let forward = span(SpanKind::Phase, Phase::Forward, (6, 50), Some((30, 90)));
        assert_eq!(device.lead_ns(&forward), Some(40));
        let loader = span(SpanKind::Phase, Phase::Dataloader, (0, 5), Some((1, 30)));
        let first = device.exposed(0, 60, &[loader, batch, forward]).unwrap();
        let parts = Exposed { transfer_ns: 28, kernel_ns: 30, idle_ns: 2, ..Exposed::default() };
        assert_eq!(first, parts);
        // The next step waits while the first one's kernels still run until 90, and then for nothing.
        let waiting = span(SpanKind::Sync, Phase::Other, (70, 95), Some((90, 91)));
        let second = device.exposed(60, 100, &[waiting]).unwrap();
        assert_eq!(second, Exposed { kernel_ns: 30, sync_ns: 5, idle_ns: 5, ..Exposed::default() });
    }

    #[test]
    fn a_step_with_a_span_that_was_not_timed_has_no_exposed_times() {
        let mut device = DeviceTimes::new(Box::new(Numbers));
        let forward = span(SpanKind::Phase, Phase::Forward, (6, 50), None);
        assert_eq!(device.exposed(0, 60, &[forward]), None);
        // A scope is nested in what counts already.
        let scope = span(SpanKind::Scope, Phase::Forward, (6, 50), None);
        assert_eq!(device.exposed(60, 70, &[scope]).map(|parts| parts.idle_ns), Some(10));
    }
}
