//! What was alive at a step's peak: by category, by scope, and the largest blocks.

use std::sync::Arc;

use serde::Serialize;

use super::ledger::{PeakPart, by_detail};
use super::scope_tree::{Node, ScopeTree, Scopes};
use super::step_memory::{NoView, Reconciliation, StepMemory, StepSpan};
use super::units::share_pct;
use crate::record::AllocationRow;

/// The documented object of `show --peak --json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PeakView {
    pub run_id: String,
    pub step: i64,
    pub phase: Option<&'static str>,
    /// Since the step began.
    pub at_ms: f64,
    pub blocks: i64,
    /// By category and detail, the largest first.
    pub parts: Vec<PeakPart>,
    /// Those that held something, in the order they ran in, each followed by what is nested in it.
    pub scopes: Vec<PeakScope>,
    /// What was made outside all scopes.
    pub no_scope: NoScope,
    /// The largest first.
    pub largest: Vec<PeakBlock>,
    pub reconciliation: Reconciliation,
}

/// What a scope's allocations held.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PeakScope {
    pub scope: Arc<str>,
    pub parent: Option<Arc<str>>,
    pub depth: usize,
    /// With the scopes nested in it.
    pub bytes: i64,
    pub own_bytes: i64,
    pub own_blocks: i64,
    /// Of all that was alive, with the scopes nested in it.
    pub share_pct: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NoScope {
    pub bytes: i64,
    pub blocks: i64,
    pub share_pct: f64,
}

/// One block that was alive.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PeakBlock {
    pub bytes: i64,
    pub category: &'static str,
    pub detail: Option<&'static str>,
    /// How long it had lived at the peak.
    pub age_ms: f64,
    /// How many steps began since it was made; 0 for one of this step.
    pub age_steps: usize,
    pub before_first_step: bool,
    /// The step it was made in; null before, between and after the steps.
    pub born_step: Option<i64>,
    pub phase: Option<&'static str>,
    pub op: Option<Arc<str>>,
    pub scope: Option<Arc<str>>,
    pub name: Option<Arc<str>>,
}

/// What was alive at the peak of the step, with the `top` largest blocks.
pub fn peak_view(memory: &StepMemory, top: usize) -> Result<PeakView, NoView> {
    let (span, peak) = (memory.span()?, memory.peak()?);
    let alive = memory.alive_at(peak.at_ns);
    let bytes: i64 = alive.iter().map(|row| row.bytes).sum();
    let (scopes, no_scope) = by_scope(memory, &alive, bytes);
    let step = memory.steps.iter().find(|step| step.step == memory.step);
    Ok(PeakView {
        run_id: memory.run.run_id.clone(),
        step: memory.step,
        phase: step.and_then(|step| step.peak_phase).map(|phase| phase.as_str()),
        at_ms: (peak.at_ns - span.begin_ns).max(0) as f64 / 1e6,
        blocks: alive.len() as i64,
        parts: by_detail(alive.iter().copied()),
        scopes,
        no_scope,
        largest: largest_blocks(&alive, peak.at_ns, &begins(memory), top),
        reconciliation: Reconciliation::new(&memory.run, bytes, peak.bytes.total()),
    })
}

fn by_scope(memory: &StepMemory, alive: &[&AllocationRow], all: i64) -> (Vec<PeakScope>, NoScope) {
    let mut scopes = Scopes::default();
    scopes.learn_spans(&memory.phases);
    alive.iter().filter_map(|row| row.scope.as_ref()).for_each(|scope| scopes.add(scope));
    scopes.learn_order(alive.iter().copied(), memory.step);
    let tree = scopes.into_tree();
    let places = tree.places();
    let mut own = vec![(0, 0); tree.nodes.len()];
    let mut outside = (0, 0);
    for row in alive {
        let place = row.scope.as_ref().and_then(|scope| places.get(scope));
        let (bytes, blocks) = place.map_or(&mut outside, |&place| &mut own[place]);
        *bytes += row.bytes;
        *blocks += 1;
    }
    let (bytes, blocks) = outside;
    (peak_scopes(&tree, &own, all), NoScope { bytes, blocks, share_pct: share_pct(bytes, all) })
}

/// From each scope's own bytes and blocks.
fn peak_scopes(tree: &ScopeTree, own: &[(i64, i64)], all: i64) -> Vec<PeakScope> {
    let own_bytes: Vec<i64> = own.iter().map(|(bytes, _)| *bytes).collect();
    let bytes = tree.with_nested(&own_bytes);
    let scope = |(place, node): (usize, &Node)| PeakScope {
        scope: node.path.clone(),
        parent: node.parent.map(|parent| tree.nodes[parent].path.clone()),
        depth: node.depth,
        bytes: bytes[place],
        own_bytes: own[place].0,
        own_blocks: own[place].1,
        share_pct: share_pct(bytes[place], all),
    };
    tree.nodes.iter().enumerate().map(scope).filter(|scope| scope.bytes > 0).collect()
}

/// The steps up to the one looked at, each with when it began.
fn begins(memory: &StepMemory) -> Vec<(i64, i64)> {
    let steps = memory.steps.iter().take_while(|step| step.step <= memory.step);
    steps.map(|step| (step.step, StepSpan::of(&memory.run, step).begin_ns)).collect()
}

/// The `top` largest of what was alive at `at_ns`. `begins`: the steps until then, each with when it began.
pub fn largest_blocks(
    alive: &[&AllocationRow],
    at_ns: i64,
    begins: &[(i64, i64)],
    top: usize,
) -> Vec<PeakBlock> {
    let mut alive = alive.to_vec();
    alive.sort_by_key(|row| (-row.bytes, row.id));
    alive.iter().take(top).map(|row| block(row, at_ns, begins)).collect()
}

fn block(row: &AllocationRow, peak_ns: i64, begins: &[(i64, i64)]) -> PeakBlock {
    let began_since = |(step, begin_ns): &&(i64, i64)| match row.step {
        Some(born) => *step > born,
        None => *begin_ns >= row.at_ns,
    };
    PeakBlock {
        bytes: row.bytes,
        category: row.category.as_str(),
        detail: row.detail.map(|detail| detail.as_str()),
        age_ms: (peak_ns - row.at_ns) as f64 / 1e6,
        age_steps: begins.iter().filter(began_since).count(),
        before_first_step: row.step.is_none() && begins.iter().all(|begin| began_since(&begin)),
        born_step: row.step,
        phase: row.phase.map(|phase| phase.as_str()),
        op: row.op.clone(),
        scope: row.scope.clone(),
        name: row.name.clone(),
    }
}
