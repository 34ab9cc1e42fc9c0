//! A step's memory from its first instant to its last.

use serde::Serialize;

use super::phase_spans::{PhaseSpan, phase_spans};
use super::step_memory::{NoView, Reconciliation, StepMemory, StepSpan};
use crate::record::{ByCategory, Category, Phase};

/// The documented object of `show --timeline --json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Timeline {
    pub run_id: String,
    pub step: i64,
    pub wall_ms: f64,
    /// The first instant of the highest total.
    pub peak: Change,
    /// In order; what lies between them is `other`.
    pub phases: Vec<PhaseSpan>,
    /// The state as the step began, and after every instant at which it changed.
    pub changes: Vec<Change>,
    pub reconciliation: Reconciliation,
}

/// What was alive after something had changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Since the step began.
    pub at_ns: i64,
    pub phase: Phase,
    pub bytes: ByCategory,
}

impl Change {
    /// The names of [`Change::cells`].
    pub fn columns() -> Vec<&'static str> {
        ["at_ms", "phase"].into_iter().chain(Category::WORDS.iter().copied()).chain(["total"]).collect()
    }

    /// One row of the CSV.
    pub fn cells(&self) -> Vec<String> {
        let bytes = self.bytes.iter().map(|(_, bytes)| bytes.to_string());
        let at_ms = format!("{}.{:06}", self.at_ns / 1_000_000, self.at_ns % 1_000_000);
        [at_ms, self.phase.to_string()]
            .into_iter()
            .chain(bytes)
            .chain([self.bytes.total().to_string()])
            .collect()
    }
}

impl Serialize for Change {
    /// `{"at_ms", "phase", category: bytes, …, "total"}`.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("at_ms", &(self.at_ns as f64 / 1e6))?;
        map.serialize_entry("phase", &self.phase)?;
        for (category, bytes) in self.bytes.iter() {
            map.serialize_entry(category.as_str(), &bytes)?;
        }
        map.serialize_entry("total", &self.bytes.total())?;
        map.end()
    }
}

/// Follows the step's lifetimes from its first instant to its last.
pub fn timeline(memory: &StepMemory) -> Result<Timeline, NoView> {
    let (mut span, peak) = (memory.span()?, memory.peak()?);
    let mut moves = moves(memory, &span);
    // The step's begin is kept to the microsecond; what happened in it happened no sooner.
    span.begin_ns = moves.first().map_or(span.begin_ns, |first| span.begin_ns.min(first.at_ns));
    moves.iter_mut().for_each(|moved| moved.at_ns -= span.begin_ns);
    let changes = changes(begin_state(memory, &span), &moves);
    let highest = highest(&changes);
    let known: Vec<(Phase, i64)> = moves.iter().map(|moved| (moved.phase, moved.at_ns)).collect();
    Ok(Timeline {
        run_id: memory.run.run_id.clone(),
        step: memory.step,
        wall_ms: span.wall_ns as f64 / 1e6,
        peak: highest,
        phases: phase_spans(memory, &span, &known),
        changes,
        reconciliation: Reconciliation::new(&memory.run, highest.bytes.total(), peak.bytes.total()),
    })
}

/// A block that came or went.
struct Move {
    at_ns: i64,
    phase: Phase,
    category: Category,
    bytes: i64,
}

/// Everything that is recorded to have come or gone in the step, in order.
fn moves(memory: &StepMemory, span: &StepSpan) -> Vec<Move> {
    let mut moves = Vec::new();
    for row in &memory.lifetimes {
        let mut add = |at_ns, phase: Option<Phase>, bytes| {
            moves.push(Move { at_ns, phase: phase.unwrap_or(Phase::Other), category: row.category, bytes });
        };
        if row.step == Some(span.step) {
            add(row.at_ns, row.phase, row.bytes);
        }
        if let (Some(freed_ns), true) = (row.freed_ns, row.freed_step == Some(span.step)) {
            add(freed_ns, row.freed_phase, -row.bytes);
        }
    }
    moves.sort_by_key(|moved| moved.at_ns);
    moves
}

/// What was alive as the step began.
fn begin_state(memory: &StepMemory, span: &StepSpan) -> ByCategory {
    let mut bytes = ByCategory::default();
    for row in &memory.lifetimes {
        let gone = row.freed_ns.is_some_and(|freed_ns| span.preceded_by(row.freed_step, freed_ns));
        if span.preceded_by(row.step, row.at_ns) && !gone {
            bytes[row.category] += row.bytes;
        }
    }
    bytes
}

/// One change for each instant: what comes and goes in the same nanosecond has no order.
fn changes(begin: ByCategory, moves: &[Move]) -> Vec<Change> {
    let mut changes = vec![Change { at_ns: 0, phase: Phase::Other, bytes: begin }];
    let mut bytes = begin;
    for instant in moves.chunk_by(|a, b| a.at_ns == b.at_ns) {
        instant.iter().for_each(|moved| bytes[moved.category] += moved.bytes);
        let last = &instant[instant.len() - 1];
        changes.push(Change { at_ns: last.at_ns, phase: last.phase, bytes });
    }
    changes
}

fn highest(changes: &[Change]) -> Change {
    let higher = |highest: Change, change: &Change| match change.bytes.total() > highest.bytes.total() {
        true => *change,
        false => highest,
    };
    changes.iter().fold(changes[0], higher)
}
