//! The training thread's stack of phases and scopes.

use std::mem;
use std::rc::Rc;
use std::sync::Arc;

use super::device::DeviceTimes;
use super::hook::{Hook, OpNames};
use super::names::{Names, ROOT};
use super::timing::{self, Clock, HostClock, Stamp};
use crate::ledger::{SiteNames, kind};
use crate::record::{Phase, SpanKind};

/// One phase or scope, from enter to leave.
#[derive(Clone)]
pub struct Span {
    /// A phase, a scope, a transfer or a waiting.
    pub kind: SpanKind,
    pub phase: Phase,
    /// The scope itself, or of what is none the innermost scope around it; [`ROOT`] for none.
    pub scope: u32,
    pub begin_ns: i64,
    pub end_ns: i64,
    /// `None` without a device's clock, and where it could not take one of the two.
    pub device: Option<(Stamp, Stamp)>,
}

/// What has been closed in a step, or between two.
#[derive(Default)]
pub struct Closed {
    pub spans: Vec<Span>,
    /// When the device gets to the step's end. `None` between steps, and where its clock could not take it.
    pub end: Option<Stamp>,
}

struct Open {
    kind: SpanKind,
    phase: Phase,
    scope: u32,
    begin_ns: i64,
    device: Option<Stamp>,
    /// It was open when the step began, which has it from there on.
    carried: bool,
    /// Held for its drop, which closes it.
    _range: timing::Range,
}

/// What is open on the training thread, and what has been closed in this step.
pub struct Spans {
    pub(super) names: Names,
    ops: OpNames,
    /// When the run started.
    pub(super) epoch_ns: i64,
    hook: Option<Rc<Hook>>,
    host: HostClock,
    pub(super) device: Option<DeviceTimes>,
    ranges: timing::Ranges,
    in_step: bool,
    /// A step was left, and what the device still has to do of it is not known.
    left: bool,
    open: Vec<Open>,
    closed: Closed,
}

impl Spans {
    /// `epoch_ns`: when the run started.
    pub fn new(hook: Option<Rc<Hook>>, device: Option<Box<dyn Clock>>, epoch_ns: i64) -> Self {
        Spans {
            names: Names::new(),
            ops: OpNames::default(),
            epoch_ns,
            hook,
            host: HostClock,
            device: device.map(DeviceTimes::new),
            ranges: timing::Ranges::new(),
            in_step: false,
            left: false,
            open: Vec::new(),
            closed: Closed::default(),
        }
    }

    /// Begins a step; returns its first instant.
    pub fn begin_step(&mut self, step: i64) -> i64 {
        self.ranges.set_step(step);
        if let Some(device) = &mut self.device {
            device.begin_step(step);
        }
        let begin_ns = self.mark(kind::STEP_BEGIN, step as u64);
        self.keep_from(begin_ns);
        begin_ns
    }

    /// Ends the step; returns its last instant.
    pub fn end_step(&mut self, step: i64) -> i64 {
        let end_ns = self.mark(kind::STEP_END, step as u64);
        self.in_step = false;
        // What was given to the device outside of all phases, too, lies before it.
        self.closed.end = self.device.as_mut().and_then(|device| device.stamp(end_ns));
        self.cut_waits(end_ns);
        end_ns
    }

    /// Leaves the step before its end.
    pub fn leave_step(&mut self, step: i64) {
        self.mark(kind::STEP_LEFT, step as u64);
        self.in_step = false;
        self.left = true;
        self.closed = Closed::default();
    }

    /// Begins to keep spans outside the steps.
    pub fn begin_between(&mut self) {
        self.keep_from(self.host.now_ns());
    }

    /// Keeps what is closed from now on, of what is open already the part from now on.
    fn keep_from(&mut self, begin_ns: i64) {
        self.in_step = true;
        self.closed = Closed::default();
        let carries = !self.open.is_empty();
        let device = self.device.as_mut().filter(|_| carries).and_then(|device| device.stamp(begin_ns));
        for open in &mut self.open {
            (open.begin_ns, open.device, open.carried) = (begin_ns, device, true);
        }
    }

    /// Of a waiting or a transfer of the step that goes on beyond its end, the part until there. One around the step as a
    /// whole tells nothing of it.
    fn cut_waits(&mut self, end_ns: i64) {
        for open in &self.open {
            if matches!(open.kind, SpanKind::Sync | SpanKind::Transfer) && !open.carried {
                let Open { kind, phase, scope, begin_ns, device, .. } = *open;
                let device = device.zip(self.closed.end);
                self.closed.spans.push(Span { kind, phase, scope, begin_ns, end_ns, device });
            }
        }
    }

    /// Opens a phase; returns the depth to give to [`Spans::leave_phase`].
    pub fn enter_phase(&mut self, phase: Phase) -> usize {
        if phase == Phase::Backward {
            self.observe_ops(false);
        }
        let range = self.ranges.phase(phase);
        let begin_ns = self.mark(kind::PHASE_BEGIN, phase as u64);
        // A scope is within a phase; one around it goes on where the phase ends.
        self.set_scope(ROOT);
        self.push(SpanKind::Phase, phase, ROOT, begin_ns, range)
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
        let (phase, parent) = self.innermost();
        let scope = self.names.number(parent, name);
        let range = self.ranges.scope(self.names.get(scope).nvtx, phase);
        self.set_scope(scope);
        let begin_ns = self.host.now_ns();
        self.push(SpanKind::Scope, phase, scope, begin_ns, range)
    }

    /// Opens a transfer or a waiting, which has no name but that; closed like a scope. `None` where there is no device
    /// beside the host, to copy to or wait for, and within another of the kind, whose time this is already: one of this
    /// step, that is, since nobody knows whether one from before will be kept.
    pub fn enter_device_span(&mut self, kind: SpanKind) -> Option<usize> {
        self.device.as_ref()?;
        if self.open.iter().any(|open| open.kind == kind && !open.carried) {
            return None;
        }
        let (phase, scope) = self.innermost();
        let range = self.ranges.nameless(kind, phase);
        let begin_ns = self.host.now_ns();
        Some(self.push(kind, phase, scope, begin_ns, range))
    }

    /// Closes the scope at `depth`; does nothing if its phase has closed it already.
    pub fn leave_scope(&mut self, depth: usize) {
        let end_ns = self.host.now_ns();
        self.close_to(depth, end_ns);
    }

    /// What has been closed in the step just ended.
    pub fn take_closed(&mut self) -> Closed {
        mem::take(&mut self.closed)
    }

    /// What has been closed between steps, which no longer is kept.
    pub fn take_between(&mut self) -> Closed {
        self.in_step = false;
        if let (true, Some(device)) = (mem::take(&mut self.left), &mut self.device) {
            device.lose_track();
        }
        self.take_closed()
    }

    /// Ends what these have to do with the hook: the guard of a scope may keep them alive after the probe, and libtorch is
    /// to have its allocator back.
    pub fn release_hook(&mut self) {
        self.hook = None;
    }

    /// Returns whether they were observed.
    pub fn observe_ops(&self, on: bool) -> bool {
        self.hook.as_ref().is_some_and(|hook| hook.observe_ops(on))
    }

    fn innermost(&self) -> (Phase, u32) {
        self.open.last().map_or((Phase::Other, ROOT), |open| (open.phase, open.scope))
    }

    fn push(
        &mut self,
        kind: SpanKind,
        phase: Phase,
        scope: u32,
        begin_ns: i64,
        range: timing::Range,
    ) -> usize {
        // Outside the steps nothing is kept, so nothing is taken.
        let device = self.device.as_mut().filter(|_| self.in_step).and_then(|device| device.stamp(begin_ns));
        self.open.push(Open { kind, phase, scope, begin_ns, device, carried: false, _range: range });
        self.open.len() - 1
    }

    fn close_to(&mut self, depth: usize, end_ns: i64) {
        while self.open.len() > depth {
            let Some(open) = self.open.pop() else { break };
            if self.in_step {
                if open.carried && matches!(open.kind, SpanKind::Sync | SpanKind::Transfer) {
                    // All of its kind in the step so far lay within it.
                    self.closed.spans.retain(|span| span.kind != open.kind);
                }
                let end = open.device.and_then(|_| self.device.as_mut()?.stamp(end_ns));
                let Open { kind, phase, scope, begin_ns, device, .. } = open;
                self.close(Span { kind, phase, scope, begin_ns, end_ns, device: device.zip(end) });
            }
        }
        self.set_scope(self.open.last().map_or(ROOT, |open| open.scope));
    }

    fn close(&mut self, span: Span) {
        if let (SpanKind::Sync, Some(device)) = (span.kind, &mut self.device) {
            device.waited(&span);
        }
        self.closed.spans.push(span);
    }

    fn mark(&self, kind: u8, payload: u64) -> i64 {
        self.hook.as_ref().map_or_else(|| self.host.now_ns(), |hook| hook.mark(kind, payload))
    }

    /// At every boundary of a phase or scope.
    fn set_scope(&self, scope: u32) {
        if let Some(hook) = &self.hook {
            hook.set_scope(scope);
            hook.stream.relieve();
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
