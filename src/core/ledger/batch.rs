//! The blocks that were made in one batch of events: compact, since there may be a million of them.

use std::collections::HashMap;

use super::event::{Event, Site, flag, kind};
use super::filing::{Filing, Life, file_by_lifetime};
use super::place::Place;
use crate::record::Phase;

/// How a block ended.
#[derive(Debug, Clone, Copy)]
pub struct End {
    pub at_ns: i64,
    pub place: Place,
}

/// A block made in this batch.
#[derive(Debug)]
pub struct Birth {
    pub id: u64,
    pub bytes: i64,
    pub at_ns: i64,
    pub site: Site,
    pub thread: u16,
    flags: u8,
    ended_in_loader: bool,
    ended_aside: bool,
    ended_in_op: bool,
    pub filing: Option<Filing>,
    /// Which of the batch's identities it is; [`NONE`] for none.
    pub identity: u32,
    born: u32,
    ended: u32,
    ended_at_ns: i64,
}

/// "No such number", where an `Option` would double the size.
pub const NONE: u32 = u32::MAX;

/// All of a batch's births, found by block number.
#[derive(Debug, Default)]
pub struct Batch {
    births: Vec<Birth>,
    /// The birth of each block number from `base` on. The hook counts blocks up, so this is nearly dense.
    index: Vec<u32>,
    base: u64,
    /// Births whose numbers are too far from the others'.
    strays: HashMap<u64, u32>,
    places: Vec<Place>,
    /// How many have ended.
    ended: usize,
    /// When an allocation could not be made, the last time, and when the step was left.
    failed_ns: Option<i64>,
    left_ns: Option<i64>,
    /// When a backward had last ended before that.
    backward_end_ns: Option<i64>,
}

impl Batch {
    /// Empties it, and keeps its room. `place` is where the run is now.
    pub fn begin(&mut self, place: Place) {
        self.births.clear();
        self.index.clear();
        self.strays.clear();
        self.places.clear();
        self.places.push(place);
        (self.ended, self.failed_ns, self.left_ns, self.backward_end_ns) = (0, None, None, None);
    }

    /// Where the run is.
    pub fn place(&self) -> Place {
        self.places[self.places.len() - 1]
    }

    /// A boundary, which moves the run on, or a failure.
    pub fn pass(&mut self, event: &Event) {
        match event.kind {
            kind::ALLOC_FAILED => self.failed_ns = Some(event.at_ns),
            kind::STEP_LEFT => self.left_ns = Some(event.at_ns),
            // One that fails has no end before its failure.
            kind::PHASE_END if event.id == Phase::Backward as u64 && self.failed_ns.is_none() => {
                self.backward_end_ns = Some(event.at_ns);
            }
            _ => {}
        }
        let place = self.place();
        let next = place.after(event);
        if next != place {
            self.places.push(next);
        }
    }

    pub fn admit(&mut self, event: &Event) {
        let number = self.births.len() as u32;
        self.births.push(Birth {
            id: event.id,
            bytes: event.bytes,
            at_ns: event.at_ns,
            site: event.site,
            thread: event.thread,
            flags: event.flags,
            ended_in_loader: false,
            ended_aside: false,
            ended_in_op: false,
            filing: None,
            identity: NONE,
            born: self.places.len() as u32 - 1,
            ended: NONE,
            ended_at_ns: 0,
        });
        self.enter(event.id, number);
    }

    fn enter(&mut self, id: u64, number: u32) {
        /// How far below the first block of a batch the others may lie: threads take a number first, and
        /// come to write the event later.
        const SLACK: u64 = 1 << 10;
        if self.index.is_empty() {
            self.base = id.saturating_sub(SLACK);
        }
        let place = id.wrapping_sub(self.base);
        if place > 2 * self.index.len() as u64 + 64 * SLACK {
            self.strays.insert(id, number);
            return;
        }
        let place = place as usize;
        if place >= self.index.len() {
            self.index.resize(place + 1, NONE);
        }
        self.index[place] = number;
    }

    /// Notes the end of a block, if it was made in this batch.
    pub fn dismiss(&mut self, event: &Event) -> bool {
        let Some(number) = self.find(event.id) else { return false };
        let birth = &mut self.births[number];
        birth.ended = self.places.len() as u32 - 1;
        birth.ended_at_ns = event.at_ns;
        birth.ended_in_loader = event.flags & flag::LOADER != 0;
        birth.ended_aside = event.flags & flag::ASIDE != 0;
        birth.ended_in_op = event.flags & flag::IN_OP != 0;
        self.ended += 1;
        true
    }

    fn find(&self, id: u64) -> Option<usize> {
        let place = usize::try_from(id.wrapping_sub(self.base)).ok()?;
        let indexed = self.index.get(place).copied().filter(|&number| number != NONE);
        // The index may have grown past a stray's place since.
        indexed.or_else(|| self.strays.get(&id).copied()).map(|number| number as usize)
    }

    pub fn get(&self, id: u64) -> Option<&Birth> {
        self.find(id).map(|number| &self.births[number])
    }

    pub fn get_mut(&mut self, id: u64) -> Option<&mut Birth> {
        self.find(id).map(|number| &mut self.births[number])
    }

    /// Files by lifetime every block that is not known by identity.
    pub fn classify(&mut self, gradients_known: bool) {
        let failure = self.failure();
        for birth in self.births.iter_mut().filter(|birth| birth.filing.is_none()) {
            let life = life(birth, &self.places, failure);
            birth.filing = Some(file_by_lifetime(&life, gradients_known));
        }
    }

    /// The births in order, with where they were made and how they ended.
    pub fn drain(&mut self) -> impl Iterator<Item = (Birth, Place, Option<End>)> + '_ {
        let places = &self.places;
        self.births.drain(..).map(move |birth| {
            let (born, end) = (places[birth.born as usize], end(&birth, places));
            (birth, born, end)
        })
    }

    /// How many have ended.
    pub fn ended(&self) -> usize {
        self.ended
    }

    /// What went wrong: the last allocation that could not be made, or else that the step was left.
    fn failure(&self) -> Option<Failure> {
        let at_ns = self.failed_ns.or(self.left_ns)?;
        Some(Failure { at_ns, left: self.left_ns.is_some(), backward_end_ns: self.backward_end_ns })
    }
}

fn end(birth: &Birth, places: &[Place]) -> Option<End> {
    let place = *places.get(birth.ended as usize)?;
    Some(End { at_ns: birth.ended_at_ns, place })
}

fn life(birth: &Birth, places: &[Place], failure: Option<Failure>) -> Life {
    let end = end(birth, places);
    let alive_at = |at_ns: i64| birth.at_ns <= at_ns && end.is_none_or(|end| end.at_ns > at_ns);
    Life {
        born: places[birth.born as usize],
        ended: end.map(|end| end.place),
        from_loader: birth.flags & flag::LOADER != 0,
        ended_in_loader: birth.ended_in_loader,
        made_aside: birth.flags & flag::ASIDE != 0,
        ended_aside: birth.ended_aside,
        ended_in_op: birth.ended_in_op,
        autocast_copy: birth.flags & flag::AUTOCAST_COPY != 0,
        rounding: birth.flags & flag::ROUNDING != 0,
        at_failure: failure.is_some_and(|failure| alive_at(failure.at_ns)),
        step_left: failure.is_some_and(|failure| failure.left),
        outlived_backward: failure
            .and_then(|failure| failure.backward_end_ns)
            .is_some_and(|ns| birth.at_ns < ns),
    }
}

/// That something went wrong in a step.
#[derive(Debug, Clone, Copy)]
struct Failure {
    at_ns: i64,
    /// The step was left for it, and not finished all the same.
    left: bool,
    backward_end_ns: Option<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// README.md says what a block takes while its step is filed: this, and its number in the index.
    #[test]
    fn a_birth_is_as_small_as_the_documents_say() {
        assert_eq!(size_of::<Birth>() + size_of::<u32>(), 60);
    }
}
