//! The training thread's stack of phases and scopes, and the times they took.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::mem;
use std::rc::Rc;
use std::sync::Arc;

use super::hook::{Hook, OpNames};
use super::names::{Names, ROOT};
use super::timing::{self, Clock, HostClock, Stamp};
use crate::ledger::{NodeTime, SiteNames, kind};
use crate::record::{Phase, PhaseRow, SpanKind};

/// One phase or scope, from enter to leave.
pub struct Span {
    phase: Phase,
    /// [`ROOT`] for the phase itself.
    scope: u32,
    begin_ns: i64,
    end_ns: i64,
    device: Option<(Stamp, Stamp)>,
}

struct Open {
    phase: Phase,
    scope: u32,
    begin_ns: i64,
    device: Option<Stamp>,
    /// Held for its drop, which closes it.
    _range: timing::Range,
}

/// What is open on the training thread, and what has been closed in this step.
pub struct Spans {
    names: Names,
    ops: OpNames,
    epoch_ns: i64,
    hook: Option<Rc<Hook>>,
    host: HostClock,
    device: Option<Box<dyn Clock>>,
    phase_names: Vec<timing::Name>,
    in_step: bool,
    open: Vec<Open>,
    closed: Vec<Span>,
}

impl Spans {
    /// `epoch_ns`: when the run started.
    pub fn new(hook: Option<Rc<Hook>>, device: Option<Box<dyn Clock>>, epoch_ns: i64) -> Self {
        let phase_names = Phase::ALL.iter().map(|phase| timing::register(phase.as_str())).collect();
        Spans {
            names: Names::new(),
            ops: OpNames::default(),
            epoch_ns,
            hook,
            host: HostClock,
            device,
            phase_names,
            in_step: false,
            open: Vec::new(),
            closed: Vec::new(),
        }
    }

    /// Begins a step; returns its first instant.
    pub fn begin_step(&mut self, step: i64) -> i64 {
        self.in_step = true;
        self.closed.clear();
        self.mark(kind::STEP_BEGIN, step as u64)
    }

    /// Ends the step; returns its last instant.
    pub fn end_step(&mut self, step: i64) -> i64 {
        let end_ns = self.mark(kind::STEP_END, step as u64);
        self.in_step = false;
        end_ns
    }

    /// Leaves the step before its end.
    pub fn leave_step(&mut self, step: i64) {
        self.mark(kind::STEP_LEFT, step as u64);
        self.in_step = false;
        self.closed.clear();
    }

    /// Begins to keep spans outside the steps.
    pub fn begin_between(&mut self) {
        self.in_step = true;
        self.closed.clear();
    }

    /// Opens a phase; returns the depth to give to [`Spans::leave_phase`].
    pub fn enter_phase(&mut self, phase: Phase) -> usize {
        if phase == Phase::Backward {
            self.observe_ops(false);
        }
        let range = timing::open(self.phase_names[phase as usize]);
        let begin_ns = self.mark(kind::PHASE_BEGIN, phase as u64);
        self.push(phase, ROOT, begin_ns, range)
    }

    /// Closes the phase at `depth`, and any scope whose guard was carried out of it.
    pub fn leave_phase(&mut self, phase: Phase, depth: usize) {
        let end_ns = self.mark(kind::PHASE_END, phase as u64);
        if phase == Phase::Backward {
            self.observe_ops(true);
        }
        self.close_to(depth, end_ns);
    }

    /// Opens a scope inside what is open; returns the depth to give to [`Spans::leave_scope`].
    pub fn enter_scope(&mut self, name: &str) -> usize {
        let (phase, parent) = self.open.last().map_or((Phase::Other, ROOT), |open| (open.phase, open.scope));
        let scope = self.names.number(parent, name);
        let range = timing::open(self.names.get(scope).nvtx);
        self.set_scope(scope);
        let begin_ns = self.host.now_ns();
        self.push(phase, scope, begin_ns, range)
    }

    /// Closes the scope at `depth`; does nothing if its phase has closed it already.
    pub fn leave_scope(&mut self, depth: usize) {
        let end_ns = self.host.now_ns();
        self.close_to(depth, end_ns);
    }

    /// What has been closed in the step just ended, for [`Spans::rows`].
    pub fn take_closed(&mut self) -> Vec<Span> {
        mem::take(&mut self.closed)
    }

    /// One row for each phase and scope of a step, which took `wall_ns`; `other` is what is left of it.
    /// `backward` is what backward's nodes took, by the scope they belong to.
    pub fn rows(
        &mut self,
        closed: Vec<Span>,
        step: i64,
        wall_ns: i64,
        backward: &HashMap<u32, NodeTime>,
    ) -> Vec<PhaseRow> {
        let mut rows = self.span_rows(closed, step);
        rows.extend(backward.iter().filter(|(scope, _)| **scope != ROOT).map(|(&scope, time)| PhaseRow {
            kind: SpanKind::Node,
            calls: time.calls,
            total_ns: time.total_ns,
            ..self.row(step, Phase::Backward, scope)
        }));
        rows.push(other_row(step, wall_ns, &rows));
        rows.sort_by(|a, b| (a.phase, a.kind, &a.name).cmp(&(b.phase, b.kind, &b.name)));
        rows
    }

    /// The same of what has run between steps: its phases are no part of one.
    pub fn rows_between(&mut self, next_step: i64) -> Vec<PhaseRow> {
        self.in_step = false;
        let closed = self.take_closed();
        let mut rows = self.span_rows(closed, next_step);
        let phases = rows.iter_mut().filter(|row| row.kind == SpanKind::Phase);
        phases.for_each(|row| row.kind = SpanKind::Between);
        rows
    }

    /// One row for each phase and scope among `closed`.
    fn span_rows(&mut self, closed: Vec<Span>, step: i64) -> Vec<PhaseRow> {
        let mut rows: Vec<PhaseRow> = Vec::new();
        let mut row_of: HashMap<(Phase, u32), usize> = HashMap::new();
        for span in closed {
            let device_ns = self.device_ns(&span);
            match row_of.entry((span.phase, span.scope)) {
                Entry::Occupied(row) => add(&mut rows[*row.get()], &span, device_ns),
                Entry::Vacant(vacant) => {
                    vacant.insert(rows.len());
                    rows.push(self.first_row(step, &span, device_ns));
                }
            }
        }
        rows
    }

    /// Says that no stamp taken so far will be asked for again.
    pub fn reset_clock(&mut self) {
        if let Some(clock) = &mut self.device {
            clock.reset();
        }
    }

    /// The first thing that went wrong with the device's clock.
    pub fn device_trouble(&self) -> Option<&str> {
        self.device.as_deref().and_then(Clock::trouble)
    }

    fn first_row(&self, step: i64, span: &Span, device_ns: Option<i64>) -> PhaseRow {
        let row = self.row(step, span.phase, span.scope);
        let begin_ns = (row.kind == SpanKind::Phase).then_some(span.begin_ns - self.epoch_ns);
        PhaseRow { calls: 1, begin_ns, total_ns: span.end_ns - span.begin_ns, device_ns, ..row }
    }

    fn row(&self, step: i64, phase: Phase, scope: u32) -> PhaseRow {
        let parent = self.names.get(scope).parent;
        PhaseRow {
            step,
            kind: if scope == ROOT { SpanKind::Phase } else { SpanKind::Scope },
            phase,
            name: self.names.path(scope).unwrap_or_else(|| phase.as_str().into()),
            parent: self.names.path(parent),
            calls: 0,
            begin_ns: None,
            total_ns: 0,
            device_ns: None,
        }
    }

    fn device_ns(&mut self, span: &Span) -> Option<i64> {
        let (begin, end) = span.device?;
        self.device.as_mut()?.elapsed_ns(begin, end)
    }

    fn push(&mut self, phase: Phase, scope: u32, begin_ns: i64, range: timing::Range) -> usize {
        let device = self.device.as_mut().map(|clock| clock.stamp());
        self.open.push(Open { phase, scope, begin_ns, device, _range: range });
        self.open.len() - 1
    }

    fn close_to(&mut self, depth: usize, end_ns: i64) {
        while self.open.len() > depth {
            let Some(open) = self.open.pop() else { break };
            let device = open.device.and_then(|begin| Some((begin, self.device.as_mut()?.stamp())));
            if self.in_step {
                let Open { phase, scope, begin_ns, .. } = open;
                self.closed.push(Span { phase, scope, begin_ns, end_ns, device });
            }
        }
        self.set_scope(self.open.last().map_or(ROOT, |open| open.scope));
    }

    fn mark(&self, kind: u8, payload: u64) -> i64 {
        self.hook.as_ref().map_or_else(|| self.host.now_ns(), |hook| hook.mark(kind, payload))
    }

    fn observe_ops(&self, on: bool) {
        if let Some(hook) = &self.hook {
            hook.observe_ops(on);
        }
    }

    fn set_scope(&self, scope: u32) {
        if let Some(hook) = &self.hook {
            hook.set_scope(scope);
        }
    }
}

impl SiteNames for Spans {
    fn scope(&self, number: u32) -> Option<Arc<str>> {
        self.names.path(number)
    }

    fn op(&self, number: u32) -> Option<Arc<str>> {
        self.ops.get(number)
    }
}

fn add(row: &mut PhaseRow, span: &Span, device_ns: Option<i64>) {
    row.calls += 1;
    row.total_ns += span.end_ns - span.begin_ns;
    row.device_ns = row.device_ns.zip(device_ns).map(|(sum, ns)| sum + ns);
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
    }
}

thread_local! {
    /// The spans of the probe that this thread trains under, if any.
    static CURRENT: RefCell<Option<Rc<RefCell<Spans>>>> = const { RefCell::new(None) };
}

/// Makes `spans` the ones that [`scope`] on this thread adds to.
pub fn set_current(spans: Rc<RefCell<Spans>>) {
    CURRENT.with(|current| *current.borrow_mut() = Some(spans));
}

/// Makes [`scope`] do nothing on this thread, if it was `spans` that it added to.
pub fn unset_current(spans: &Rc<RefCell<Spans>>) {
    CURRENT.with(|current| {
        let ours = current.borrow().as_ref().is_some_and(|set| Rc::ptr_eq(set, spans));
        if ours {
            *current.borrow_mut() = None;
        }
    });
}

/// A named part of the work, nested as the calls are; it ends when the guard is dropped.
///
/// Costs next to nothing where no probe is running, so models can carry their scopes always:
///
/// ```
/// let _scope = stepledger::probe::scope("encoder");
/// ```
#[must_use = "the scope ends when this guard is dropped"]
pub fn scope(name: &str) -> Scope {
    let spans = CURRENT.with(|current| current.borrow().clone());
    let open = spans.map(|spans| {
        let depth = spans.borrow_mut().enter_scope(name);
        (spans, depth)
    });
    Scope { open }
}

/// Whether operators are observed on this thread, if the probe that it trains under observes them at all.
pub fn observe_ops(on: bool) {
    CURRENT.with(|current| {
        if let Some(spans) = &*current.borrow() {
            spans.borrow().observe_ops(on);
        }
    });
}

/// An open scope; see [`scope`].
pub struct Scope {
    open: Option<(Rc<RefCell<Spans>>, usize)>,
}

impl Drop for Scope {
    fn drop(&mut self) {
        if let Some((spans, depth)) = &self.open {
            spans.borrow_mut().leave_scope(*depth);
        }
    }
}
