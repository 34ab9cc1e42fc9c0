//! What follows from a step's phase rows and exposed times alone.

use crate::ledger::Exposed;
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

/// What the training thread waited: for data, and elsewhere for the device.
pub fn waited_ns(phases: &[PhaseRow]) -> i64 {
    let syncs = phases.iter().filter(|row| row.kind == SpanKind::Sync && row.phase != Phase::Dataloader);
    total_ns(phases, &[Phase::Dataloader]) + syncs.map(|row| row.total_ns).sum::<i64>()
}

/// The time of these phases together.
fn total_ns(phases: &[PhaseRow], of: &[Phase]) -> i64 {
    let rows = phases.iter().filter(|row| row.kind == SpanKind::Phase && of.contains(&row.phase));
    rows.map(|row| row.total_ns).sum()
}
