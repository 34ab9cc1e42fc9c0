//! What follows from a step's phase rows alone.

use crate::record::{Phase, PhaseRow, SpanKind};

/// The share of the step that the device computed: by its own clock where it has one; else that of the
/// phases that compute.
pub fn busy_pct(phases: &[PhaseRow], wall_ns: i64) -> Option<f64> {
    let in_phases = || phases.iter().filter(|row| row.kind == SpanKind::Phase);
    let on_device: Option<i64> =
        in_phases().filter(|row| COMPUTE.contains(&row.phase)).map(|row| row.device_ns).sum();
    let busy_ns = on_device.filter(|&ns| ns > 0).unwrap_or_else(|| total_ns(phases, &COMPUTE));
    // Clocks of two kinds may disagree by a little.
    (wall_ns > 0).then(|| (100.0 * busy_ns as f64 / wall_ns as f64).min(100.0))
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
