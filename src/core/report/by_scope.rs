//! One table of the modules: what each holds and what it takes.

use std::collections::HashSet;
use std::sync::Arc;

use serde::Serialize;

use super::homes::Homes;
use super::scope_times::ScopeTimes;
use super::scope_tree::{Node, ScopeTree, Scopes};
use super::step_memory::{NoView, StepMemory};
use super::summary::chosen_steps;
use crate::record::{AllocationRow, Category, LedgerMoment, Moment, Phase, Trace};

/// What the columns of bytes count.
const BYTES: [Category; 4] =
    [Category::Parameter, Category::Gradient, Category::AdamState, Category::Activation];

/// The documented object of `show --by scope --json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ByScope {
    pub run_id: String,
    /// The step whose bytes are shown.
    pub step: i64,
    /// The moment of the bytes of parameters, gradients and states; those of activations are at the end of forward.
    pub kept_at: Moment,
    /// How many steps the times are means of.
    pub steps: usize,
    /// In the order they ran in, each followed by what is nested in it.
    pub rows: Vec<ScopeRow>,
    /// The bytes of blocks without a scope, and the time outside all scopes.
    pub outside: Cells,
    /// All rows and `outside`, added up.
    pub sum: Cells,
    /// What the ledger and the phases say.
    pub account: Cells,
    pub difference: Cells,
}

/// A scope, or a module that is none, without what is nested in it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScopeRow {
    pub scope: Arc<str>,
    pub parent: Option<Arc<str>>,
    pub depth: usize,
    #[serde(flatten)]
    pub cells: Cells,
}

/// The columns: bytes exact, times a step; null where the run does not know.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Cells {
    /// These three at [`ByScope::kept_at`].
    pub parameter_bytes: Option<i64>,
    pub gradient_bytes: Option<i64>,
    pub adam_state_bytes: Option<i64>,
    /// At the end of forward.
    pub activation_bytes: Option<i64>,
    pub forward_ms: Option<f64>,
    /// Null where operators were not traced.
    pub backward_ms: Option<f64>,
}

/// The columns while they are added up: whole numbers, so that nothing is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Sums {
    bytes: [i64; BYTES.len()],
    forward_ns: i64,
    backward_ns: i64,
}

/// Bytes at the step looked at; times are means over the measured steps, or those of step `only`. Means, as
/// medians of parts do not add up to the median of the whole.
pub fn by_scope(memory: &StepMemory, only: Option<i64>) -> Result<ByScope, NoView> {
    let steps = timed_steps(memory, only)?;
    let times = ScopeTimes::of(&memory.phases, &steps);
    let homes = Homes::new(&memory.lifetimes, times.names());
    let tree = tree(memory, &homes);
    let (rows, outside) = fill(memory, &tree, &homes, &times);
    let known = Known::of(memory, steps.len());
    let sum = rows.iter().fold(outside, |sum, row| sum.plus(row));
    let account = account(memory, &times);
    Ok(ByScope {
        run_id: memory.run.run_id.clone(),
        step: memory.step,
        kept_at: kept_at(memory),
        steps: steps.len(),
        rows: scope_rows(&tree, &rows, &known),
        outside: known.cells(&outside),
        sum: known.cells(&sum),
        account: known.cells(&account),
        difference: known.cells(&account.minus(&sum)),
    })
}

/// The end of optimizer, or of backward in a step that has no such phase.
fn kept_at(memory: &StepMemory) -> Moment {
    let there = |moment: &Moment| memory.moment(*moment).is_some();
    let moments = [Moment::OptimizerEnd, Moment::BackwardEnd];
    moments.into_iter().find(there).unwrap_or(Moment::OptimizerEnd)
}

/// The ledger as a category is counted.
fn counted_at(memory: &StepMemory, category: Category) -> Option<&LedgerMoment> {
    memory.moment(if category == Category::Activation { Moment::ForwardEnd } else { kept_at(memory) })
}

/// The steps whose times count; where none is measured, the one looked at.
fn timed_steps(memory: &StepMemory, only: Option<i64>) -> Result<HashSet<i64>, NoView> {
    let chosen = chosen_steps(&memory.run, &memory.steps, only)?;
    let mut steps: HashSet<i64> = chosen.iter().map(|step| step.step).collect();
    if steps.is_empty() {
        steps.insert(memory.step);
    }
    Ok(steps)
}

fn scope_rows(tree: &ScopeTree, sums: &[Sums], known: &Known) -> Vec<ScopeRow> {
    let row = |(node, sums): (&Node, &Sums)| ScopeRow {
        scope: node.path.clone(),
        parent: node.parent.map(|parent| tree.nodes[parent].path.clone()),
        depth: node.depth,
        cells: known.cells(sums),
    };
    tree.nodes.iter().zip(sums).map(row).collect()
}

/// The scopes that ran in forward or backward, and those that hold something which is counted.
fn tree(memory: &StepMemory, homes: &Homes) -> ScopeTree {
    let mut scopes = Scopes::default();
    scopes.learn_spans(memory.phases.iter().filter(|row| ScopeTimes::PHASES.contains(&row.phase)));
    scopes.learn_order(&memory.lifetimes, memory.step);
    for row in counted(memory).flat_map(|(_, rows)| rows) {
        if let Some(home) = homes.of(row) {
            scopes.add(&home);
            scopes.rank(&home, false, row.id);
        }
    }
    scopes.into_tree()
}

/// Each counted category's blocks at its moment, with the column's number.
fn counted(memory: &StepMemory) -> impl Iterator<Item = (usize, Vec<&AllocationRow>)> {
    BYTES.iter().enumerate().filter_map(|(column, category)| {
        let at_ns = counted_at(memory, *category)?.at_ns;
        let alive = memory.alive_at(at_ns).into_iter().filter(|row| row.category == *category);
        Some((column, alive.collect()))
    })
}

/// The sums of each scope of the tree, and those outside.
fn fill(memory: &StepMemory, tree: &ScopeTree, homes: &Homes, times: &ScopeTimes) -> (Vec<Sums>, Sums) {
    let sums = |node: &Node| Sums {
        forward_ns: times.scope_ns(Phase::Forward, &node.path),
        backward_ns: times.scope_ns(Phase::Backward, &node.path),
        ..Sums::default()
    };
    let mut rows: Vec<Sums> = tree.nodes.iter().map(sums).collect();
    let mut outside = Sums {
        forward_ns: times.outside_ns(Phase::Forward),
        backward_ns: times.outside_ns(Phase::Backward),
        ..Sums::default()
    };
    let places = tree.places();
    for (column, blocks) in counted(memory) {
        for block in blocks {
            let place = homes.of(block).and_then(|home| places.get(&home).copied());
            place.map_or(&mut outside, |place| &mut rows[place]).bytes[column] += block.bytes;
        }
    }
    (rows, outside)
}

/// What the columns must add up to, from the ledger and the phases themselves.
fn account(memory: &StepMemory, times: &ScopeTimes) -> Sums {
    let bytes = |category| counted_at(memory, category).map_or(0, |moment| moment.bytes[category]);
    Sums {
        bytes: BYTES.map(bytes),
        forward_ns: times.phase_ns(Phase::Forward),
        backward_ns: times.phase_ns(Phase::Backward),
    }
}

impl Sums {
    fn plus(&self, other: &Sums) -> Sums {
        self.with(other, |a, b| a + b)
    }

    fn minus(&self, other: &Sums) -> Sums {
        self.with(other, |a, b| a - b)
    }

    fn with(&self, other: &Sums, both: fn(i64, i64) -> i64) -> Sums {
        Sums {
            bytes: std::array::from_fn(|column| both(self.bytes[column], other.bytes[column])),
            forward_ns: both(self.forward_ns, other.forward_ns),
            backward_ns: both(self.backward_ns, other.backward_ns),
        }
    }
}

/// Which columns the run has something for, and over how many steps times are means.
struct Known {
    bytes: [bool; BYTES.len()],
    backward: bool,
    steps: usize,
}

impl Known {
    fn of(memory: &StepMemory, steps: usize) -> Self {
        let bytes = BYTES.map(|category| counted_at(memory, category).is_some());
        Known { bytes, backward: memory.run.trace == Trace::Ops, steps }
    }

    fn cells(&self, sums: &Sums) -> Cells {
        let bytes = |column: usize| self.bytes[column].then_some(sums.bytes[column]);
        let mean_ms = |ns: i64| ns as f64 / self.steps as f64 / 1e6;
        Cells {
            parameter_bytes: bytes(0),
            gradient_bytes: bytes(1),
            adam_state_bytes: bytes(2),
            activation_bytes: bytes(3),
            forward_ms: Some(mean_ms(sums.forward_ns)),
            backward_ms: self.backward.then(|| mean_ms(sums.backward_ns)),
        }
    }
}
