//! Steps that have ended and are not filed yet.

use std::collections::VecDeque;

use super::hook;
use super::spans::{Span, Spans};
use crate::ledger::{Exposed, Identity};
use crate::record::{PhaseRow, StepRow};

/// A step that has ended.
pub struct EndedStep {
    /// What is known of it already; the rest is put in as it is filed.
    pub row: StepRow,
    pub begin_ns: i64,
    pub spans: Vec<Span>,
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
    /// than `most_behind` would be left, it waits for the oldest of these. What that takes is charged to the newest.
    pub fn harvest(&mut self, spans: &mut Spans, most_behind: usize) {
        let begin_ns = hook::now_ns();
        while let Some(oldest) = self.untimed.front() {
            if let Some(device) = &mut spans.device {
                device.read_step(Some(oldest.row.step));
            }
            if let Some(device) = &mut spans.device
                && !device.reached(&oldest.spans)
            {
                if self.untimed.len() <= most_behind {
                    break;
                }
                device.wait(&oldest.spans);
            }
            self.timed.extend(self.untimed.pop_front().map(|step| timed(step, spans)));
        }
        if let Some(device) = &mut spans.device {
            device.read_step(None);
        }
        let newest = self.untimed.back_mut().map(|step| &mut step.row);
        if let Some(row) = newest.or(self.timed.last_mut().map(|step| &mut step.row)) {
            row.observer_ns += hook::now_ns() - begin_ns;
        }
    }

    /// Those whose times are known.
    pub fn take_timed(&mut self) -> Vec<TimedStep> {
        std::mem::take(&mut self.timed)
    }
}

fn timed(step: EndedStep, spans: &mut Spans) -> TimedStep {
    let EndedStep { row, begin_ns, spans: closed, identities } = step;
    let rows = spans.span_rows(&closed, row.step);
    let exposed = spans.exposed(begin_ns, begin_ns + row.wall_ns, &closed);
    spans.forget(&closed);
    TimedStep { row, identities, rows, exposed }
}
