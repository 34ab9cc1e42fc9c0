//! Steps that have ended and are not filed yet.

use std::collections::VecDeque;

use super::shares::waited_ns;
use super::spans::{Closed, Spans};
use crate::ledger::{Exposed, Identity};
use crate::record::{Phase, PhaseRow, SpanKind, StepRow};

/// A step that has ended.
pub struct EndedStep {
    /// What is known of it already; the rest is put in as it is filed.
    pub row: StepRow,
    pub begin_ns: i64,
    pub closed: Closed,
    pub identities: Vec<Identity>,
}

/// The same when its spans have become rows.
pub struct TimedStep {
    pub row: StepRow,
    pub identities: Vec<Identity>,
    /// Of phases and scopes.
    pub rows: Vec<PhaseRow>,
    pub exposed: Option<Exposed>,
}

/// Steps in the order in which they ended: first those whose times are known, then those that a device may still be at.
#[derive(Default)]
pub struct Pending {
    timed: Vec<TimedStep>,
    untimed: VecDeque<EndedStep>,
}

impl Pending {
    pub fn push(&mut self, step: EndedStep) {
        self.untimed.push_back(step);
    }

    pub fn len(&self) -> usize {
        self.timed.len() + self.untimed.len()
    }

    /// Reads the times of the steps that the device is through, in order, and gives their events back. Only where more
    /// than `most_behind` would be left, it waits for the oldest of these. What the reading takes is charged to the newest;
    /// the waiting is none of the observer's work, since the loop would wait for the device all the same, later. `now`
    /// tells the time.
    pub fn harvest(&mut self, spans: &mut Spans, most_behind: usize, now: impl Fn() -> i64) {
        let (begin_ns, mut waited_ns) = (now(), 0);
        while let Some(oldest) = self.untimed.front() {
            if let Some(device) = &mut spans.device {
                device.read_step(Some(oldest.row.step));
            }
            if let Some(device) = &mut spans.device
                && !device.reached(&oldest.closed)
            {
                if self.untimed.len() <= most_behind {
                    break;
                }
                let since_ns = now();
                device.wait(&oldest.closed);
                waited_ns += now() - since_ns;
            }
            self.timed.extend(self.untimed.pop_front().map(|step| timed(step, spans)));
        }
        if let Some(device) = &mut spans.device {
            device.read_step(None);
        }
        let newest = self.untimed.back_mut().map(|step| &mut step.row);
        if let Some(row) = newest.or(self.timed.last_mut().map(|step| &mut step.row)) {
            row.observer_ns += now() - begin_ns - waited_ns;
        }
    }

    /// Those whose times are known.
    pub fn take_timed(&mut self) -> Vec<TimedStep> {
        std::mem::take(&mut self.timed)
    }
}

fn timed(step: EndedStep, spans: &mut Spans) -> TimedStep {
    let EndedStep { mut row, begin_ns, closed, identities } = step;
    let end_ns = begin_ns + row.wall_ns;
    let rows = spans.span_rows(&closed.spans, row.step);
    row.cpu_wait_ns = Some(waited_ns(&closed.spans));
    row.lead_ns = spans.step_lead_ns(end_ns, &closed);
    row.optimizer_calls = Some(optimizer_calls(&rows));
    let exposed = spans.exposed(begin_ns, end_ns, &closed);
    spans.forget(&closed);
    TimedStep { row, identities, rows, exposed }
}

fn optimizer_calls(rows: &[PhaseRow]) -> i64 {
    let is_optimizer = |row: &&PhaseRow| row.kind == SpanKind::Phase && row.phase == Phase::Optimizer;
    rows.iter().filter(is_optimizer).map(|row| row.calls).sum()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::super::names::ROOT;
    use super::super::spans::Span;
    use super::super::timing::{Clock, Stamp};
    use super::*;
    use crate::record::{Phase, SpanKind};

    const WAIT_NS: i64 = 50_000_000;

    /// A device that is never through, and a time that goes by while it is asked and while it is waited for.
    struct Slow(Rc<Cell<i64>>);

    impl Clock for Slow {
        fn begin_step(&mut self, _: i64) {}
        fn read_step(&mut self, _: Option<i64>) {}
        fn stamp(&mut self, _: i64) -> Option<Stamp> {
            None
        }
        fn pin(&mut self, _: Stamp, _: Stamp) {}
        fn reached(&mut self, _: Stamp) -> bool {
            self.0.update(|ns| ns + 1);
            false
        }
        fn wait(&mut self, _: Stamp) {
            self.0.update(|ns| ns + WAIT_NS);
        }
        fn elapsed_ns(&mut self, _: Stamp, _: Stamp) -> Option<i64> {
            None
        }
        fn host_ns(&mut self, _: Stamp) -> Option<i64> {
            None
        }
        fn same_stream(&self, _: Stamp, _: Stamp) -> bool {
            true
        }
        fn forget(&mut self, _: Stamp) {}
        fn missing(&self) -> Vec<String> {
            Vec::new()
        }
    }

    fn ended(step: i64) -> EndedStep {
        let stamps = Some((Stamp::numbered(2 * step as u64), Stamp::numbered(2 * step as u64 + 1)));
        let (kind, phase) = (SpanKind::Phase, Phase::Forward);
        let span = Span { kind, phase, scope: ROOT, begin_ns: 0, end_ns: 1, device: stamps };
        let row = StepRow { step, wall_ns: 1, ..StepRow::default() };
        let closed = Closed { spans: vec![span], end: None };
        EndedStep { row, begin_ns: 0, closed, identities: Vec::new() }
    }

    #[test]
    fn what_the_host_waits_for_a_device_is_no_cost_of_the_observer() {
        let now = Rc::new(Cell::new(0));
        let mut spans = Spans::new(None, Some(Box::new(Slow(now.clone()))), 0);
        let mut pending = Pending::default();
        (0..3).for_each(|step| pending.push(ended(step)));
        pending.harvest(&mut spans, 1, || now.get());
        assert_eq!((now.get(), pending.len()), (2 * WAIT_NS + 3, 3), "two of three were waited for");
        pending.harvest(&mut spans, 0, || now.get());
        let costs: Vec<i64> = pending.take_timed().iter().map(|step| step.row.observer_ns).collect();
        assert_eq!(costs, [0, 0, 4], "what asking took");
    }
}
