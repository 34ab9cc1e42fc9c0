//! Where the time went.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;

use super::step_times::StepTimes;
use crate::record::{Phase, PhaseRow, SpanKind};
use crate::stats::median;

/// One phase or scope over the steps looked at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhaseSummary {
    pub name: Arc<str>,
    /// For a scope: the phase it ran in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<&'static str>,
    /// For a nested scope: the scope around it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Arc<str>>,
    pub total_ms: f64,
    /// A step, the median; over whole cycles as the step's own time is, null where it ran in none.
    pub median_ms: Option<f64>,
    pub calls: i64,
    /// Of the steps' time.
    pub share_pct: f64,
    /// On the device's own clock; null where there is none.
    pub device_ms: Option<f64>,
    /// How far the host had run ahead at its end, the median; null where `device_ms` is, and for scopes.
    pub lead_ms: Option<f64>,
}

/// Sums the rows of one kind over the steps that `times` are of: phases in their own order, then
/// `other`; scopes by phase and name.
pub fn sum(rows: &[&PhaseRow], kind: SpanKind, times: &StepTimes) -> Vec<PhaseSummary> {
    let mut groups: HashMap<(Phase, &str), Vec<&PhaseRow>> = HashMap::new();
    for &row in rows.iter().filter(|row| row.kind == kind) {
        groups.entry((row.phase, &row.name)).or_default().push(row);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by(|a, b| a.0.cmp(&b.0));
    groups.into_iter().map(|((phase, _), rows)| summary(phase, &rows, times)).collect()
}

fn summary(phase: Phase, rows: &[&PhaseRow], times: &StepTimes) -> PhaseSummary {
    let total_ns: i64 = rows.iter().map(|row| row.total_ns).sum();
    let per_step = times.per_step_ms(rows.iter().map(|row| (row.step, row.total_ns)));
    let leads: Vec<f64> = rows.iter().filter_map(|row| row.lead_ns).map(|ns| ns as f64 / 1e6).collect();
    let device_ns: Option<i64> = rows.iter().map(|row| row.device_ns).sum();
    PhaseSummary {
        name: rows[0].name.clone(),
        phase: (rows[0].kind != SpanKind::Phase).then(|| phase.as_str()),
        parent: rows[0].parent.clone(),
        total_ms: total_ns as f64 / 1e6,
        median_ms: median(&per_step),
        calls: rows.iter().map(|row| row.calls).sum(),
        share_pct: times.share_pct(total_ns),
        device_ms: device_ns.map(|ns| ns as f64 / 1e6),
        lead_ms: median(&leads),
    }
}
