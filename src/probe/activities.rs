//! From closed spans to what went on in them, on the host's timeline.

use super::shares::COMPUTE;
use super::spans::Span;
use super::timing::Clock;
use crate::ledger::{Activity, Interval};
use crate::record::{Phase, SpanKind};

/// Kernels, transfers and waits. `None` where one that counts was not timed.
pub fn activities(spans: &[Span], clock: &mut dyn Clock) -> Option<Vec<Interval>> {
    let mut intervals = Vec::with_capacity(spans.len());
    let is_apart = |span: &&Span| matches!(span.kind, SpanKind::Transfer | SpanKind::Sync);
    let apart: Vec<&Span> = spans.iter().filter(is_apart).collect();
    for span in spans {
        match span.kind {
            SpanKind::Phase if COMPUTE.contains(&span.phase) => {
                intervals.extend(kernels(span, &apart, clock)?);
            }
            SpanKind::Transfer => intervals.push(on_device(Activity::Transfer, span, clock)?),
            // Waiting is the host's.
            SpanKind::Sync => intervals.push(Interval {
                activity: Activity::Sync,
                begin_ns: span.begin_ns,
                end_ns: span.end_ns,
            }),
            SpanKind::Phase | SpanKind::Scope | SpanKind::Node | SpanKind::Between => {}
        }
    }
    Some(intervals)
}

/// A phase that computes, but for those of the step's copies and waits, `apart`, that lie in it: from the one stamp of such
/// a span to the other the device does nothing else, if they are on the stream that the phase is on.
fn kernels(phase: &Span, apart: &[&Span], clock: &mut dyn Clock) -> Option<Vec<Interval>> {
    let whole = on_device(Activity::Kernel, phase, clock)?;
    let inner = apart.iter().copied().filter(|span| {
        (phase.begin_ns <= span.begin_ns && span.end_ns <= phase.end_ns) && same_stream(phase, span, &*clock)
    });
    let inner: Vec<&Span> = inner.collect();
    let cuts: Option<Vec<_>> =
        inner.into_iter().map(|span| on_device(Activity::Transfer, span, clock)).collect();
    let mut cuts = cuts?;
    cuts.sort_by_key(|cut| cut.begin_ns);
    Some(without(whole, &cuts))
}

fn same_stream(phase: &Span, span: &Span, clock: &dyn Clock) -> bool {
    let stamps = phase.device.zip(span.device);
    stamps.is_some_and(|((stamp, _), (begin, end))| {
        clock.same_stream(stamp, begin) && clock.same_stream(begin, end)
    })
}

/// What is left of an interval, given what is taken out of it in order of time.
fn without(whole: Interval, cuts: &[Interval]) -> Vec<Interval> {
    let mut parts = Vec::with_capacity(cuts.len() + 1);
    let mut begin_ns = whole.begin_ns;
    for cut in cuts {
        parts.push(Interval { begin_ns, end_ns: cut.begin_ns.min(whole.end_ns), ..whole });
        begin_ns = begin_ns.max(cut.end_ns);
    }
    parts.push(Interval { begin_ns, ..whole });
    parts.retain(|part| part.begin_ns < part.end_ns);
    parts
}

fn on_device(activity: Activity, span: &Span, clock: &mut dyn Clock) -> Option<Interval> {
    let (begin, end) = span.device?;
    let (begin_ns, end_ns) = (clock.host_ns(begin)?, clock.host_ns(end)?);
    Some(Interval { activity, begin_ns, end_ns })
}

/// A span that the device may have been given work in, and that is in no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outer {
    /// When the host got there.
    pub asked_ns: i64,
    /// When the device did, and when it was through.
    pub begin_ns: i64,
    pub end_ns: i64,
}

/// All phases, and what is in none, of spans in the order of closing; but a scope around a phase is known by what is in it
/// (a micro-batch, for one). One around copies and waits alone is not: the rest of it may be work as well. `None` where one
/// was not timed.
pub fn outer_spans(spans: &[Span], clock: &mut dyn Clock) -> Option<Vec<Outer>> {
    // Spans close in the order of a stack, so a scope is around a phase if one has been closed that began after it.
    let mut last_phase_ns = None;
    let outer = spans.iter().filter(|span| match span.kind {
        SpanKind::Phase => {
            last_phase_ns = last_phase_ns.max(Some(span.begin_ns));
            true
        }
        SpanKind::Transfer | SpanKind::Sync => span.phase == Phase::Other,
        SpanKind::Scope => span.phase == Phase::Other && last_phase_ns < Some(span.begin_ns),
        SpanKind::Node | SpanKind::Between => false,
    });
    let timed = |span: &Span, clock: &mut dyn Clock| {
        let Interval { begin_ns, end_ns, .. } = on_device(Activity::Kernel, span, clock)?;
        Some(Outer { asked_ns: span.begin_ns, begin_ns, end_ns })
    };
    outer.map(|span| timed(span, &mut *clock)).collect()
}

/// A device that takes a stamp within this time has been waiting for it.
const PROMPT_NS: i64 = 100_000;

/// The times in which the device had got through one span and the next had not begun, since the host was not there yet:
/// launches are what it waited for. `through_ns` is when it got through those before.
///
/// - **Formula:** from the latest end so far to the next begin, on the device, where the device took that begin within
///   0.1 ms of the host's asking (it was not at something else then). `outer` is in the order of asking.
/// - **Assumption:** between two such spans the device is given nothing.
/// - A lower bound: gaps between the kernels of one span are not seen.
pub fn launch_gaps(through_ns: Option<i64>, outer: &[Outer]) -> Vec<Interval> {
    let mut gaps = Vec::new();
    let mut through = through_ns;
    for span in outer {
        let prompt = span.begin_ns - span.asked_ns <= PROMPT_NS;
        let gap = through.filter(|&end_ns| prompt && end_ns < span.begin_ns);
        gaps.extend(gap.map(|begin_ns| Interval {
            activity: Activity::Launch,
            begin_ns,
            end_ns: span.begin_ns,
        }));
        through = through.max(Some(span.end_ns));
    }
    gaps
}
