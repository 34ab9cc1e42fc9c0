//! What follows from a step's spans, phase rows and exposed times alone.

use super::spans::Span;
use crate::ledger::{Activity, Exposed, Interval, exposed};
use crate::record::{Phase, PhaseRow, SpanKind};

/// The share of the step that a CPU computed: that of the phases that compute.
pub fn compute_pct(phases: &[PhaseRow], wall_ns: i64) -> Option<f64> {
    share_pct(total_ns(phases, &COMPUTE), wall_ns)
}

/// The share of the step that a device with a clock of its own computed, at most: kernels are not told from the gaps
/// between them.
pub fn kernel_pct(exposed: &Exposed) -> Option<f64> {
    share_pct(exposed.kernel_ns, exposed.total_ns())
}

fn share_pct(part_ns: i64, wall_ns: i64) -> Option<f64> {
    (wall_ns > 0).then(|| 100.0 * part_ns as f64 / wall_ns as f64)
}

/// The phases in which the device computes.
pub const COMPUTE: [Phase; 3] = [Phase::Forward, Phase::Backward, Phase::Optimizer];

/// What the training thread waited, for data or for the device: an instant in which it did both counts once.
pub fn waited_ns(spans: &[Span]) -> i64 {
    let waits = spans.iter().filter(|span| match span.kind {
        SpanKind::Phase => span.phase == Phase::Dataloader,
        SpanKind::Sync => true,
        SpanKind::Scope | SpanKind::Node | SpanKind::Between | SpanKind::Transfer => false,
    });
    let interval = |span: &Span| {
        let (begin_ns, end_ns) = (span.begin_ns, span.end_ns);
        Interval { activity: Activity::Sync, begin_ns, end_ns }
    };
    let waits: Vec<Interval> = waits.map(interval).collect();
    let begin_ns = waits.iter().map(|wait| wait.begin_ns).min();
    let end_ns = waits.iter().map(|wait| wait.end_ns).max();
    begin_ns.zip(end_ns).map_or(0, |(begin_ns, end_ns)| exposed(begin_ns, end_ns, &waits).sync_ns)
}

/// The time of these phases together.
fn total_ns(phases: &[PhaseRow], of: &[Phase]) -> i64 {
    let rows = phases.iter().filter(|row| row.kind == SpanKind::Phase && of.contains(&row.phase));
    rows.map(|row| row.total_ns).sum()
}

#[cfg(test)]
mod tests {
    use super::super::names::ROOT;
    use super::*;

    fn span(kind: SpanKind, phase: Phase, (begin_ns, end_ns): (i64, i64)) -> Span {
        Span { kind, phase, scope: ROOT, begin_ns, end_ns, device: None }
    }

    #[test]
    fn what_is_waited_for_the_data_and_the_device_at_once_is_waited_once() {
        let loader = || span(SpanKind::Phase, Phase::Dataloader, (10, 30));
        let wait = |within, phase| span(SpanKind::Sync, phase, within);
        assert_eq!(waited_ns(&[]), 0);
        assert_eq!(waited_ns(&[loader(), wait((15, 25), Phase::Dataloader)]), 20);
        assert_eq!(waited_ns(&[loader(), wait((40, 45), Phase::Other)]), 25);
        assert_eq!(waited_ns(&[loader(), wait((5, 40), Phase::Other)]), 35, "a wait around the loader");
        let forward = span(SpanKind::Phase, Phase::Forward, (30, 90));
        let copy = span(SpanKind::Transfer, Phase::Forward, (31, 35));
        assert_eq!(waited_ns(&[loader(), forward, copy]), 20);
    }
}
