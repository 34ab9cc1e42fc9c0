//! When in a step its phases ran.

use serde::{Serialize, Serializer};

use super::step_memory::{StepMemory, StepSpan};
use crate::record::{Moment, Phase, PhaseRow, SpanKind};

/// A phase of a step, from when to when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PhaseSpan {
    pub phase: Phase,
    /// Since the step began.
    #[serde(rename = "begin_ms", serialize_with = "in_ms")]
    pub begin_ns: i64,
    #[serde(rename = "end_ms", serialize_with = "in_ms")]
    pub end_ns: i64,
    /// Both are known, and not only instants between them.
    pub exact: bool,
}

fn in_ms<S: Serializer>(ns: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(*ns as f64 / 1e6)
}

/// The dataset keeps when a phase first began, and how long it took: of a phase that ran once that is all. A dataset
/// of version 1 lacks the former: then the ledger's moment at its end gives both, and without one, the first known
/// instant in it stands for its begin. Of a phase that ran several times, the stretches of consecutive `changes` are
/// known, and that one which waits for data does so from the end of the phase before. Changes are in order and, like
/// the spans, count from the step's begin.
pub fn phase_spans(memory: &StepMemory, step: &StepSpan, changes: &[(Phase, i64)]) -> Vec<PhaseSpan> {
    let phases = memory
        .phases
        .iter()
        .filter(|row| row.step == memory.step && row.kind == SpanKind::Phase && row.phase != Phase::Other);
    let mut spans: Vec<PhaseSpan> = phases
        .flat_map(|row| match row.calls {
            1 => once(memory, step, row, changes).into_iter().collect(),
            _ => stretches(row.phase, changes),
        })
        .collect();
    spans.sort_by_key(|span| (span.begin_ns, span.end_ns));
    begin_waits(&mut spans);
    cut_overlaps(&mut spans, step.wall_ns);
    spans
}

fn once(memory: &StepMemory, step: &StepSpan, row: &PhaseRow, changes: &[(Phase, i64)]) -> Option<PhaseSpan> {
    let phase = row.phase;
    if let Some(begin_ns) = row.begin_ns.map(|at_ns| at_ns - step.begin_ns) {
        return Some(PhaseSpan { phase, begin_ns, end_ns: begin_ns + row.total_ns, exact: true });
    }
    let moment_ns = |moment: Option<Moment>| Some(memory.moment(moment?)?.at_ns - step.begin_ns);
    if let Some(end_ns) = moment_ns(Moment::end_of(phase)) {
        return Some(PhaseSpan { phase, begin_ns: end_ns - row.total_ns, end_ns, exact: true });
    }
    let changes = changes.iter().filter(|(of, _)| *of == phase).map(|(_, at_ns)| *at_ns);
    let begin_ns = changes.chain(moment_ns(Moment::peak_of(phase))).min()?;
    Some(PhaseSpan { phase, begin_ns, end_ns: begin_ns + row.total_ns, exact: false })
}

fn stretches(phase: Phase, changes: &[(Phase, i64)]) -> Vec<PhaseSpan> {
    let stretches = changes.chunk_by(|a, b| a.0 == b.0).filter(|stretch| stretch[0].0 == phase);
    let span = |stretch: &[(Phase, i64)]| PhaseSpan {
        phase,
        begin_ns: stretch[0].1,
        end_ns: stretch[stretch.len() - 1].1,
        exact: false,
    };
    stretches.map(span).collect()
}

/// A wait for data changes no memory until its end.
fn begin_waits(spans: &mut [PhaseSpan]) {
    for place in 1..spans.len() {
        if spans[place].phase == Phase::Dataloader && !spans[place].exact {
            spans[place].begin_ns = spans[place].begin_ns.min(spans[place - 1].end_ns);
        }
    }
}

/// No span outlasts the step, or the begin of the next one.
fn cut_overlaps(spans: &mut [PhaseSpan], wall_ns: i64) {
    let mut next_ns = wall_ns;
    for span in spans.iter_mut().rev() {
        span.begin_ns = span.begin_ns.clamp(0, wall_ns);
        span.end_ns = span.end_ns.clamp(span.begin_ns, next_ns.max(span.begin_ns));
        next_ns = span.begin_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_that_ran_several_times_has_a_stretch_for_each() {
        let changes = [
            (Phase::Forward, 10),
            (Phase::Forward, 30),
            (Phase::Backward, 40),
            (Phase::Forward, 70),
            (Phase::Other, 90),
        ];
        let spans = stretches(Phase::Forward, &changes);
        let edges: Vec<_> = spans.iter().map(|span| (span.begin_ns, span.end_ns, span.exact)).collect();
        assert_eq!(edges, [(10, 30, false), (70, 70, false)]);
    }

    #[test]
    fn spans_end_where_the_next_begins_and_with_the_step() {
        let span = |begin_ns, end_ns| PhaseSpan { phase: Phase::Dataloader, begin_ns, end_ns, exact: false };
        let mut spans = [span(-5, 20), span(10, 40), span(90, 130)];
        cut_overlaps(&mut spans, 100);
        assert_eq!(spans, [span(0, 10), span(10, 40), span(90, 100)]);
    }
}
