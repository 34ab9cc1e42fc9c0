//! From raw events to a reconciled account: a fold over the stream, one step at a time.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use super::batch::{Batch, Birth, End, NONE};
use super::event::{Event, flag, kind};
use super::filing::Filing;
use super::moments::{Moments, State};
use super::place::Place;
use super::survivors::Survivors;
use crate::record::{
    AllocationRow, ByCategory, Category, FailedAllocation, LedgerMoment, MANY_LIFETIMES, Phase,
};

/// What threads that do not train are marked with.
const BESIDE: u8 = flag::ASIDE | flag::LOADER;

/// A block that is known for what it is by its address, not by its lifetime.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The block's number, as the hook gave it.
    pub id: u64,
    pub filing: Filing,
    pub name: Arc<str>,
}

/// What the ledger says of one step.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StepAccount {
    pub moments: Vec<LedgerMoment>,
    /// The lifetimes that ended in this step or in the time before it.
    pub ended: Vec<AllocationRow>,
    /// Allocations and frees among the events.
    pub events: i64,
    pub peak_bytes: i64,
    pub peak_phase: Option<Phase>,
    /// The largest difference, at any event, between the allocator's own total and what the categories explain of it:
    /// their sum without `unattributed`.
    pub difference_bytes: i64,
    /// What backward spent on each scope, by the scope's number; empty where operators were not traced.
    pub backward: HashMap<u32, NodeTime>,
    /// The last allocation that could not be made, unless training went on to make others.
    pub failed: Option<FailedAllocation>,
}

/// The nodes of the backward graph that belong to one scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NodeTime {
    pub calls: i64,
    pub total_ns: i64,
}

/// Gives the names behind a site's numbers.
pub trait SiteNames {
    /// The dotted path of a scope.
    fn scope(&self, number: u32) -> Option<Arc<str>>;
    fn op(&self, number: u32) -> Option<Arc<str>>;
}

/// Everything that is alive, and what it is filed under.
///
/// Between two calls of [`Ledger::file`] every living block is filed, and the totals add up to the
/// allocator's own.
#[derive(Debug)]
pub struct Ledger {
    epoch_ns: i64,
    first_id: u64,
    next_step: i64,
    survivors: Survivors,
    totals: ByCategory,
    place: Place,
    /// Kept for its room.
    batch: Batch,
    /// For the next batch of many lifetimes.
    room: Vec<AllocationRow>,
}

impl Ledger {
    /// An account that begins at `epoch_ns` with `held_bytes` already alive, in blocks numbered below
    /// `first_id` of which nothing more is known.
    pub fn new(epoch_ns: i64, held_bytes: i64, first_id: u64) -> Self {
        let mut totals = ByCategory::default();
        totals[Category::Workspace] = held_bytes;
        Ledger {
            epoch_ns,
            first_id,
            next_step: 0,
            survivors: Survivors::default(),
            totals,
            place: Place::START,
            batch: Batch::default(),
            room: Vec::new(),
        }
    }

    /// Files the events since the last call, which end with a step's end (or that of a validation pass), so
    /// that it is known what each block turned out to be.
    ///
    /// Two passes: the first follows lifetimes; the second, with every block filed, follows the totals.
    /// The cost is linear in the number of events, whatever else is alive.
    pub fn file(&mut self, events: &[Event], identities: &[Identity], names: &dyn SiteNames) -> StepAccount {
        self.follow_lifetimes(events);
        self.identify(identities);
        let gradients_known = identities.iter().any(|known| known.filing.category == Category::Gradient);
        self.batch.classify(gradients_known);
        let mut account = self.follow_totals(events, names);
        account.ended = self.bury(identities, names);
        account
    }

    /// Takes lifetimes that nobody needs any more, for their room.
    pub fn lend(&mut self, mut room: Vec<AllocationRow>) {
        if room.capacity() > self.room.capacity() {
            room.clear();
            self.room = room;
        }
    }

    /// The lifetimes that have not ended, in order of birth.
    pub fn open(&self) -> Vec<AllocationRow> {
        self.survivors.rows()
    }

    fn follow_lifetimes(&mut self, events: &[Event]) {
        self.batch.begin(self.place);
        for event in events {
            match event.kind {
                kind::ALLOC => self.batch.admit(event),
                kind::FREE if self.batch.dismiss(event) => {}
                kind::FREE => {
                    self.survivors.end(event.id, End { at_ns: event.at_ns, place: self.batch.place() });
                }
                _ => self.batch.pass(event),
            }
        }
    }

    /// Files the blocks that are known for what they are, whatever their lifetime says.
    fn identify(&mut self, identities: &[Identity]) {
        for (number, Identity { id, filing, name }) in identities.iter().enumerate() {
            if let Some(birth) = self.batch.get_mut(*id) {
                birth.filing = Some(*filing);
                birth.identity = number as u32;
            } else if let Some(row) = self.survivors.get_mut(*id) {
                self.totals[row.category] -= row.bytes;
                self.totals[filing.category] += row.bytes;
                (row.category, row.detail) = (filing.category, filing.detail);
                // Nearly always the name that it has already.
                if row.name.as_ref().is_none_or(|known| !Arc::ptr_eq(known, name)) {
                    row.name = Some(name.clone());
                }
            }
        }
    }

    /// Second pass: the totals by category after each event, read at the step's moments.
    fn follow_totals(&mut self, events: &[Event], names: &dyn SiteNames) -> StepAccount {
        let mut account = StepAccount::default();
        let mut moments = None;
        for event in events {
            match event.kind {
                kind::ALLOC | kind::FREE => {
                    account.events += 1;
                    self.count(event);
                    if event.kind == kind::ALLOC && event.flags & BESIDE == 0 {
                        // Training has got over it.
                        account.failed = None;
                    }
                }
                // A backward within forward, as of a gradient penalty, is a part of that.
                kind::NODE if self.place.phase == Some(Phase::Backward) => note_node(&mut account, event),
                _ => {}
            }
            account.difference_bytes = account.difference_bytes.max(self.reconcile(event));
            self.note(event, &mut moments);
            if event.kind == kind::ALLOC_FAILED && event.flags & BESIDE == 0 {
                account.failed = Some(self.failed(event, names));
            }
        }
        if let Some((phase, peak)) = moments.as_ref().and_then(Moments::peak) {
            account.peak_bytes = peak.bytes.total();
            account.peak_phase = Some(phase);
        }
        account.moments = moments.map(Moments::into_rows).unwrap_or_default();
        account
    }

    fn count(&mut self, event: &Event) {
        let category = match self.batch.get(event.id) {
            Some(birth) => birth.filing.map(|filing| filing.category),
            None => self.survivors.category(event.id),
        };
        match (event.kind, category) {
            (kind::ALLOC, Some(category)) => self.totals[category] += event.bytes,
            (kind::FREE, Some(category)) => self.totals[category] -= event.bytes,
            (kind::FREE, None) if event.id < self.first_id => self.totals[Category::Workspace] -= event.bytes,
            _ => {}
        }
    }

    /// Whatever the allocator counts and the categories do not is shown as unattributed. Returns how much is unattributed
    /// by now, what was filed so included.
    fn reconcile(&mut self, event: &Event) -> i64 {
        let difference = event.total_bytes - self.totals.total();
        self.totals[Category::Unattributed] += difference;
        (event.total_bytes - self.totals.attributed()).abs()
    }

    /// Moves on to where the run is after `event`, and reads the ledger there.
    fn note(&mut self, event: &Event, moments: &mut Option<Moments>) {
        let before = self.place;
        self.place = before.after(event);
        match event.kind {
            kind::STEP_BEGIN => {
                self.next_step = event.id as i64 + 1;
                *moments = Some(Moments::new(event.id as i64));
            }
            // Validation, or an allocation that failed outside the steps.
            kind::PHASE_BEGIN | kind::ALLOC_FAILED if moments.is_none() => {
                *moments = Some(Moments::new(self.next_step));
            }
            _ => {}
        }
        let Some(moments) = moments else { return };
        let at_ns = event.at_ns - self.epoch_ns;
        let state = State { at_ns, bytes: self.totals, allocator_bytes: event.total_bytes };
        match (event.kind, before.phase) {
            (kind::PHASE_END, Some(phase)) => moments.end(phase, &state),
            (kind::ALLOC_FAILED, _) => moments.fail(&state),
            _ => {}
        }
        if let Some(phase) = self.place.phase {
            moments.observe(phase, &state);
        }
    }

    fn failed(&self, event: &Event, names: &dyn SiteNames) -> FailedAllocation {
        FailedAllocation {
            at_ns: event.at_ns - self.epoch_ns,
            asked_bytes: event.bytes,
            step: self.place.step,
            phase: self.place.phase,
            scope: names.scope(event.site.scope()),
            op: names.op(event.site.op()),
        }
    }

    fn room_for(&mut self, count: usize) -> Vec<AllocationRow> {
        let mut rows = if count < MANY_LIFETIMES { Vec::new() } else { mem::take(&mut self.room) };
        rows.reserve_exact(count);
        rows
    }

    /// Takes what has ended out of the books.
    fn bury(&mut self, identities: &[Identity], names: &dyn SiteNames) -> Vec<AllocationRow> {
        let mut rows = self.room_for(self.survivors.ended() + self.batch.ended());
        rows.extend(self.survivors.take_ended().map(|(row, end)| ended(row, end, self.epoch_ns)));
        for (birth, born, end) in self.batch.drain() {
            let row = row(&birth, born, self.epoch_ns, identities, names);
            match end {
                Some(end) => rows.push(ended(row, end, self.epoch_ns)),
                None => self.survivors.admit(birth.id, row),
            }
        }
        rows
    }
}

fn note_node(account: &mut StepAccount, event: &Event) {
    let time = account.backward.entry(event.site.scope()).or_default();
    time.calls += 1;
    time.total_ns += event.bytes;
}

fn row(
    birth: &Birth,
    born: Place,
    epoch_ns: i64,
    identities: &[Identity],
    names: &dyn SiteNames,
) -> AllocationRow {
    AllocationRow {
        id: birth.id as i64,
        step: born.step,
        bytes: birth.bytes,
        category: birth.filing.map_or(Category::Unattributed, |filing| filing.category),
        detail: birth.filing.and_then(|filing| filing.detail),
        name: (birth.identity != NONE).then(|| identities[birth.identity as usize].name.clone()),
        phase: born.phase,
        scope: names.scope(birth.site.scope()),
        op: names.op(birth.site.op()),
        thread: i32::from(birth.thread),
        at_ns: birth.at_ns - epoch_ns,
        freed_ns: None,
        freed_step: None,
        freed_phase: None,
    }
}

fn ended(row: AllocationRow, end: End, epoch_ns: i64) -> AllocationRow {
    AllocationRow {
        freed_ns: Some(end.at_ns - epoch_ns),
        freed_step: end.place.step,
        freed_phase: end.place.phase,
        ..row
    }
}
