//! What the device's clock says of spans that are closed.

use super::activities::{Outer, activities, launch_gaps, outer_spans};
use super::spans::{Closed, Span};
use super::timing::{Clock, Stamp};
use crate::ledger::{Exposed, Interval, exposed};

/// The device's clock, and what the steps before left it to do.
pub struct DeviceTimes {
    clock: Box<dyn Clock>,
    /// `None` where something was not timed that may not have ended yet.
    before: Option<Before>,
}

/// The device works behind the host: what reaches beyond the end of the last step, and when the device got through all
/// that it was given until then.
#[derive(Debug, Default)]
struct Before {
    tail: Vec<Interval>,
    /// `None` before the first step, and where it is not known.
    through_ns: Option<i64>,
}

impl DeviceTimes {
    pub fn new(clock: Box<dyn Clock>) -> Self {
        DeviceTimes { clock, before: Some(Before::default()) }
    }

    pub fn begin_step(&mut self, step: i64) {
        self.clock.begin_step(step);
    }

    /// Says which step is read from now on, if any.
    pub fn read_step(&mut self, step: Option<i64>) {
        self.clock.read_step(step);
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

    /// Whether the device has got through all of this, or never will.
    pub fn reached(&mut self, closed: &Closed) -> bool {
        last(closed).is_none_or(|last| self.clock.reached(last))
    }

    /// Waits for that.
    pub fn wait(&mut self, closed: &Closed) {
        if let Some(last) = last(closed) {
            self.clock.wait(last);
        }
    }

    /// Says that nothing up to the end of this will be asked for again.
    pub fn forget(&mut self, closed: &Closed) {
        if let Some(last) = last(closed) {
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

    /// From a step's end on the host until the device was through with all that it had been given in it; 0 where it was
    /// before. `None` where that was not timed.
    pub fn step_lead_ns(&mut self, end_ns: i64, step: &Closed) -> Option<i64> {
        let end = step.end?;
        let mut through_ns = self.clock.host_ns(end)?;
        for span in &step.spans {
            let (_, span_end) = span.device?;
            // On one stream the step's end comes after that of each of its spans.
            if !self.clock.same_stream(span_end, end) {
                through_ns = through_ns.max(self.clock.host_ns(span_end)?);
            }
        }
        Some((through_ns - end_ns).max(0))
    }

    /// Says that the device may be at work of which nothing is known.
    pub fn lose_track(&mut self) {
        self.before = None;
    }

    /// What the step from `begin_ns` to `end_ns` was spent on. The phases that compute count as one kernel each, from
    /// their first instant on the device to their last, without the copies and waits in them: what happens between
    /// their kernels, nobody here sees. `None` where a span was not timed, and where the device may still have been at
    /// one.
    pub fn exposed(&mut self, begin_ns: i64, end_ns: i64, step: &Closed) -> Option<Exposed> {
        let before = self.before.take();
        let mut intervals = activities(&step.spans, &mut *self.clock)?;
        let mut outer = outer_spans(&step.spans, &mut *self.clock)?;
        outer.sort_by_key(|span| span.asked_ns);
        // Once it begins one of these, it is through all that came before.
        let known = before.is_some() || outer.first().is_some_and(|first| first.begin_ns <= end_ns);
        let timed = before.is_some();
        let Before { tail, through_ns } = before.unwrap_or_default();
        intervals.extend(launch_gaps(through_ns, &outer));
        intervals.extend(tail);
        let parts = exposed(begin_ns, end_ns, &intervals);
        if known {
            intervals.retain(|interval| interval.end_ns > end_ns);
            self.before = Some(Before { tail: intervals, through_ns: self.through_ns(step, &outer) });
        }
        timed.then_some(parts)
    }

    /// When the device was through with all that a step gave it: the step's end, which comes after what is in no span, or a
    /// span on another stream. `None` where the former was not timed: it may be at such work for longer than any span.
    fn through_ns(&mut self, step: &Closed, outer: &[Outer]) -> Option<i64> {
        let end_ns = self.clock.host_ns(step.end?)?;
        Some(outer.iter().map(|span| span.end_ns).fold(end_ns, i64::max))
    }

    pub fn missing(&self) -> Vec<String> {
        self.clock.missing()
    }
}

fn last(closed: &Closed) -> Option<Stamp> {
    let of_spans = closed.spans.iter().filter_map(|span| span.device.map(|(begin, end)| begin.max(end)));
    of_spans.chain(closed.end).max()
}
