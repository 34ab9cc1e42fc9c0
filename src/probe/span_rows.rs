//! From closed spans to rows of the `phases` table.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::names::ROOT;
use super::spans::{Closed, Span, Spans};
use crate::ledger::{Exposed, NodeTime};
use crate::record::{Phase, PhaseRow, SpanKind};

impl Spans {
    /// All rows of a step, which took `wall_ns`: beside those of its spans `other`, which is what is left of it, and what
    /// `backward`'s nodes took, by the scope they belong to.
    pub fn step_rows(
        &self,
        mut rows: Vec<PhaseRow>,
        step: i64,
        wall_ns: i64,
        backward: &HashMap<u32, NodeTime>,
    ) -> Vec<PhaseRow> {
        rows.extend(backward.iter().filter(|(scope, _)| **scope != ROOT).map(|(&scope, time)| PhaseRow {
            calls: time.calls,
            total_ns: time.total_ns,
            ..self.row(step, SpanKind::Node, Phase::Backward, scope)
        }));
        rows.push(other_row(step, wall_ns, &rows));
        rows.sort_by(|a, b| (a.phase, a.kind, &a.name).cmp(&(b.phase, b.kind, &b.name)));
        rows
    }

    /// One row for each phase and scope of what has run between steps: its phases are no part of one.
    pub fn rows_between(&mut self, closed: &[Span], next_step: i64) -> Vec<PhaseRow> {
        let mut rows = self.span_rows(closed, next_step);
        let phases = rows.iter_mut().filter(|row| row.kind == SpanKind::Phase);
        phases.for_each(|row| row.kind = SpanKind::Between);
        rows
    }

    /// What the step from `begin_ns` to `end_ns` was spent on, where the device was timed.
    pub fn exposed(&mut self, begin_ns: i64, end_ns: i64, step: &Closed) -> Option<Exposed> {
        self.device.as_mut()?.exposed(begin_ns, end_ns, step)
    }

    /// How far the device was behind as a step ended at `end_ns`, where it was timed.
    pub fn step_lead_ns(&mut self, end_ns: i64, step: &Closed) -> Option<i64> {
        self.device.as_mut()?.step_lead_ns(end_ns, step)
    }

    /// Says that the device's instants of this will not be asked for again.
    pub fn forget(&mut self, closed: &Closed) {
        if let Some(device) = &mut self.device {
            device.forget(closed);
        }
    }

    /// One row for each phase and scope among `closed`.
    pub fn span_rows(&mut self, closed: &[Span], step: i64) -> Vec<PhaseRow> {
        let mut rows: Vec<PhaseRow> = Vec::new();
        let mut row_of: HashMap<(SpanKind, Phase, u32), usize> = HashMap::new();
        for span in closed {
            let of_span = self.span_row(step, span);
            match row_of.entry((span.kind, span.phase, span.scope)) {
                Entry::Occupied(row) => add(&mut rows[*row.get()], of_span),
                Entry::Vacant(vacant) => {
                    vacant.insert(rows.len());
                    rows.push(of_span);
                }
            }
        }
        rows
    }

    fn span_row(&mut self, step: i64, span: &Span) -> PhaseRow {
        let row = self.row(step, span.kind, span.phase, span.scope);
        let is_phase = span.kind == SpanKind::Phase;
        let device = self.device.as_mut();
        let (device_ns, lead_ns) = device.map_or((None, None), |device| {
            (device.elapsed_ns(span), is_phase.then(|| device.lead_ns(span)).flatten())
        });
        let begin_ns = is_phase.then_some(span.begin_ns - self.epoch_ns);
        PhaseRow { calls: 1, begin_ns, total_ns: span.end_ns - span.begin_ns, device_ns, lead_ns, ..row }
    }

    fn row(&self, step: i64, kind: SpanKind, phase: Phase, scope: u32) -> PhaseRow {
        let path = self.names.path(scope);
        let (name, parent) = match kind {
            SpanKind::Transfer | SpanKind::Sync => (kind.as_str().into(), path),
            _ => {
                let parent = self.names.path(self.names.get(scope).parent);
                (path.unwrap_or_else(|| phase.as_str().into()), parent)
            }
        };
        PhaseRow {
            step,
            kind,
            phase,
            name,
            parent,
            calls: 0,
            begin_ns: None,
            total_ns: 0,
            device_ns: None,
            lead_ns: None,
        }
    }
}

/// Adds a later call. Of the lead, the last one counts.
fn add(row: &mut PhaseRow, call: PhaseRow) {
    row.calls += 1;
    row.total_ns += call.total_ns;
    row.device_ns = row.device_ns.zip(call.device_ns).map(|(sum, ns)| sum + ns);
    row.lead_ns = call.lead_ns;
}

fn other_row(step: i64, wall_ns: i64, rows: &[PhaseRow]) -> PhaseRow {
    let phases: i64 = rows.iter().filter(|row| row.kind == SpanKind::Phase).map(|row| row.total_ns).sum();
    PhaseRow {
        step,
        kind: SpanKind::Phase,
        phase: Phase::Other,
        name: Phase::Other.as_str().into(),
        parent: None,
        calls: 1,
        begin_ns: None,
        total_ns: wall_ns - phases,
        device_ns: None,
        lead_ns: None,
    }
}
