//! From raw events to a reconciled account: a fold over the stream, one step at a time.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use super::block::{Block, End, Filing, Place, file_by_lifetime};
use super::event::{Event, kind, origin};
use super::moments::{Moments, State};
use crate::record::{AllocationRow, ByCategory, Category, LedgerMoment, Phase};

/// A block that is known for what it is by its address, not by its lifetime.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The block's number, as the hook gave it.
    pub id: u64,
    pub category: Category,
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
    /// The largest difference between the allocator's own total and the sum of the categories.
    pub difference_bytes: i64,
}

/// Gives the dotted path of a scope's number.
pub type ScopeNames<'a> = &'a dyn Fn(u32) -> Option<Arc<str>>;

/// Everything that is alive, and what it is filed under.
///
/// Between two calls of [`Ledger::file`] every living block is filed, and the totals add up to the
/// allocator's own.
#[derive(Debug)]
pub struct Ledger {
    epoch_ns: i64,
    first_id: u64,
    blocks: Vec<Block>,
    vacant: Vec<usize>,
    by_id: HashMap<u64, usize, BuildHasherDefault<IdHasher>>,
    totals: ByCategory,
    place: Place,
}

/// Spreads block numbers, which come in order and from ourselves: a defence against chosen keys, which the
/// standard hasher is, would cost more than all the rest of an event.
#[derive(Debug, Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, id: u64) {
        // 2⁶⁴ over the golden ratio: neighbours land far apart, in the upper bits too.
        self.0 = (self.0 ^ id).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
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
            blocks: Vec::new(),
            vacant: Vec::new(),
            by_id: HashMap::default(),
            totals,
            place: Place::START,
        }
    }

    /// Files the events since the last call, which end with a step's end, so that it is known what each
    /// block turned out to be.
    ///
    /// Two passes: the first follows lifetimes; the second, with every block filed, follows the totals.
    /// The cost is linear in the number of events, whatever else is alive.
    pub fn file(&mut self, events: &[Event], identities: &[Identity], scopes: ScopeNames) -> StepAccount {
        let slots = self.follow_lifetimes(events);
        self.identify(identities);
        self.classify(&slots, identities.iter().any(|identity| identity.category == Category::Gradient));
        let mut account = self.follow_totals(events, &slots);
        account.ended = self.bury(&slots, scopes);
        account
    }

    /// The lifetimes that have not ended, in order of birth.
    pub fn open(&self, scopes: ScopeNames) -> Vec<AllocationRow> {
        let mut rows: Vec<_> =
            self.by_id.values().map(|&slot| self.row(&self.blocks[slot], scopes)).collect();
        rows.sort_by_key(|row| row.id);
        rows
    }

    /// First pass. Returns the slot of each event's block: `None` for markers, and for blocks from
    /// before the account began or whose birth was lost.
    fn follow_lifetimes(&mut self, events: &[Event]) -> Vec<Option<usize>> {
        let mut place = self.place;
        let follow = |event: &Event| match event.kind {
            kind::ALLOC => Some(self.admit(event, place)),
            kind::FREE => self.dismiss(event, place),
            _ => {
                place = place.after(event);
                None
            }
        };
        events.iter().map(follow).collect()
    }

    fn admit(&mut self, event: &Event, born: Place) -> usize {
        let block = Block {
            id: event.id,
            bytes: event.bytes,
            at_ns: event.at_ns,
            scope: event.scope,
            thread: event.thread,
            from_loader: event.origin == origin::LOADER,
            born,
            end: None,
            filing: None,
            name: None,
            counted: false,
        };
        let slot = self.vacant.pop().unwrap_or(self.blocks.len());
        if slot == self.blocks.len() {
            self.blocks.push(block);
        } else {
            self.blocks[slot] = block;
        }
        self.by_id.insert(event.id, slot);
        slot
    }

    fn dismiss(&mut self, event: &Event, place: Place) -> Option<usize> {
        let slot = *self.by_id.get(&event.id)?;
        self.blocks[slot].end = Some(End { at_ns: event.at_ns, place, thread: event.thread });
        Some(slot)
    }

    /// Files the blocks that are known for what they are, whatever their lifetime says.
    fn identify(&mut self, identities: &[Identity]) {
        for identity in identities {
            let Some(&slot) = self.by_id.get(&identity.id) else { continue };
            let block = &mut self.blocks[slot];
            if block.counted
                && let Some(old) = block.filing
            {
                self.totals[old.category] -= block.bytes;
                self.totals[identity.category] += block.bytes;
            }
            block.filing = Some(Filing::plain(identity.category));
            block.name = Some(identity.name.clone());
        }
    }

    /// Files by lifetime every block born in this batch that is not known by identity.
    fn classify(&mut self, slots: &[Option<usize>], gradients_known: bool) {
        for &slot in slots.iter().flatten() {
            let block = &mut self.blocks[slot];
            if block.filing.is_none() {
                block.filing = Some(file_by_lifetime(block, gradients_known));
            }
        }
    }

    /// Second pass: the totals by category after each event, read at the step's moments.
    fn follow_totals(&mut self, events: &[Event], slots: &[Option<usize>]) -> StepAccount {
        let mut account = StepAccount::default();
        let mut moments = None;
        for (event, &slot) in events.iter().zip(slots) {
            account.events += i64::from(matches!(event.kind, kind::ALLOC | kind::FREE));
            self.count(event, slot);
            account.difference_bytes = account.difference_bytes.max(self.reconcile(event));
            let state = State {
                at_ns: event.at_ns - self.epoch_ns,
                bytes: self.totals,
                allocator_bytes: event.total_bytes,
            };
            self.note(event, &state, &mut moments);
        }
        if let Some((phase, peak)) = moments.as_ref().and_then(Moments::peak) {
            account.peak_bytes = peak.bytes.total();
            account.peak_phase = Some(phase);
        }
        account.moments = moments.map(Moments::into_rows).unwrap_or_default();
        account
    }

    fn count(&mut self, event: &Event, slot: Option<usize>) {
        match (event.kind, slot) {
            (kind::ALLOC, Some(slot)) => {
                let block = &mut self.blocks[slot];
                block.counted = true;
                self.totals[block.category()] += block.bytes;
            }
            (kind::FREE, Some(slot)) => self.totals[self.blocks[slot].category()] -= event.bytes,
            (kind::FREE, None) if event.id < self.first_id => self.totals[Category::Workspace] -= event.bytes,
            _ => {}
        }
    }

    /// Whatever the allocator counts and the categories do not is shown as unattributed. Returns its size.
    fn reconcile(&mut self, event: &Event) -> i64 {
        let difference = event.total_bytes - self.totals.total();
        self.totals[Category::Unattributed] += difference;
        difference.abs()
    }

    /// Moves on to where the run is after `event`, and reads the ledger there.
    fn note(&mut self, event: &Event, state: &State, moments: &mut Option<Moments>) {
        let before = self.place;
        self.place = before.after(event);
        if event.kind == kind::STEP_BEGIN {
            *moments = Some(Moments::new(event.id as i64));
        }
        let Some(moments) = moments else { return };
        if event.kind == kind::PHASE_END
            && let Some(phase) = before.phase
        {
            moments.end(phase, state);
        }
        if let Some(phase) = self.place.phase {
            moments.observe(phase, state);
        }
    }

    /// Takes the blocks that ended out of the books.
    fn bury(&mut self, slots: &[Option<usize>], scopes: ScopeNames) -> Vec<AllocationRow> {
        let mut rows = Vec::new();
        for &slot in slots.iter().flatten() {
            let block = &self.blocks[slot];
            // A block born and freed in this batch is met twice; it leaves at the first meeting.
            if block.end.is_some() && self.by_id.remove(&block.id).is_some() {
                rows.push(self.row(block, scopes));
                self.vacant.push(slot);
            }
        }
        rows
    }

    fn row(&self, block: &Block, scopes: ScopeNames) -> AllocationRow {
        AllocationRow {
            id: block.id as i64,
            step: block.born.step,
            bytes: block.bytes,
            category: block.category(),
            detail: block.filing.and_then(|filing| filing.detail),
            name: block.name.clone(),
            phase: block.born.phase,
            scope: scopes(block.scope),
            thread: i32::from(block.thread),
            at_ns: block.at_ns - self.epoch_ns,
            freed_ns: block.end.map(|end| end.at_ns - self.epoch_ns),
            freed_step: block.end.and_then(|end| end.place.step),
            freed_phase: block.end.and_then(|end| end.place.phase),
        }
    }
}
