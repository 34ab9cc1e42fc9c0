//! The time of each scope without the scopes nested in it, so that a column of them adds up.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::record::{Phase, PhaseRow, SpanKind};

/// Times of the scopes of forward and backward, summed over several steps.
#[derive(Debug, Clone, Default)]
pub struct ScopeTimes {
    /// Exclusive, by phase and scope.
    scopes: HashMap<(Phase, Arc<str>), i64>,
    phases: HashMap<Phase, i64>,
}

impl ScopeTimes {
    pub const PHASES: [Phase; 2] = [Phase::Forward, Phase::Backward];

    /// Scopes hold the time of those nested in them, which is taken out; nodes are those of just one scope.
    pub fn of(rows: &[PhaseRow], steps: &HashSet<i64>) -> Self {
        let mut times = ScopeTimes::default();
        let rows: Vec<&PhaseRow> = rows.iter().filter(|row| steps.contains(&row.step)).collect();
        for row in &rows {
            match row.kind {
                SpanKind::Phase => *times.phases.entry(row.phase).or_default() += row.total_ns,
                SpanKind::Scope | SpanKind::Node if Self::PHASES.contains(&row.phase) => {
                    *times.scopes.entry((row.phase, row.name.clone())).or_default() += row.total_ns;
                }
                SpanKind::Scope
                | SpanKind::Node
                | SpanKind::Between
                | SpanKind::Transfer
                | SpanKind::Sync => {}
            }
        }
        for row in rows.iter().filter(|row| row.kind == SpanKind::Scope) {
            let parent = row.parent.clone().map(|parent| (row.phase, parent));
            if let Some(ns) = parent.and_then(|parent| times.scopes.get_mut(&parent)) {
                *ns -= row.total_ns;
            }
        }
        times
    }

    pub fn names(&self) -> impl Iterator<Item = Arc<str>> + '_ {
        self.scopes.keys().map(|(_, name)| name.clone())
    }

    pub fn scope_ns(&self, phase: Phase, scope: &Arc<str>) -> i64 {
        self.scopes.get(&(phase, scope.clone())).copied().unwrap_or_default()
    }

    pub fn phase_ns(&self, phase: Phase) -> i64 {
        self.phases.get(&phase).copied().unwrap_or_default()
    }

    /// What is left of a phase. Nothing where nodes of several threads, run at once, took longer than the phase.
    pub fn outside_ns(&self, phase: Phase) -> i64 {
        let scopes = self.scopes.iter().filter(|((of, _), _)| *of == phase);
        (self.phase_ns(phase) - scopes.map(|(_, ns)| ns).sum::<i64>()).max(0)
    }
}
