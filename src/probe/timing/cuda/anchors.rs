//! Where the device's timeline and the host's meet.

use std::collections::VecDeque;
use std::rc::Rc;

use crate::device::Event;

/// One older than this is replaced at the first opportunity: clocks drift apart by parts in a million, and the driver tells
/// long times coarsely.
const FRESH_NS: i64 = 1_000_000_000;
/// One older than this says nothing of the host's timeline any more.
const STALE_NS: i64 = 60 * FRESH_NS;
/// How far apart two stamps may be on the host for the first to be an anchor if the device has reached it by the second. The
/// device did so at some instant between the two, so that much the timelines may be apart afterwards: every lead and
/// every bound of an exposed interval is known to 0.1 ms. A wait that the loop tells of is known to a few microseconds.
const CLOSE_NS: i64 = 100_000;

/// An event that the device reached at a known instant of the host's clock.
pub struct Anchor {
    pub event: Rc<Event>,
    pub host_ns: i64,
}

impl Anchor {
    /// Whether it is too old to tell of this instant.
    pub fn is_stale(&self, host_ns: i64) -> bool {
        host_ns - self.host_ns > STALE_NS
    }
}

/// All that stamps refer to, by number; the newest is in use.
#[derive(Default)]
pub struct Anchors {
    first: u64,
    all: VecDeque<Anchor>,
}

impl Anchors {
    pub fn add(&mut self, event: Rc<Event>, host_ns: i64) {
        self.all.push_back(Anchor { event, host_ns });
    }

    /// The number of the newest.
    pub fn newest(&self) -> u64 {
        self.first + self.all.len().saturating_sub(1) as u64
    }

    pub fn get(&self, number: u64) -> Option<&Anchor> {
        self.all.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// Whether a stamp that was asked for at `asked_ns`, and that the device has got to by `now_ns`, is better than the
    /// newest.
    pub fn would_gain(&self, asked_ns: i64, now_ns: i64) -> bool {
        let newest_ns = self.all.back().map_or(i64::MIN, |anchor| anchor.host_ns);
        let old = now_ns.saturating_sub(newest_ns) > FRESH_NS && asked_ns > newest_ns;
        old && Anchors::are_close(asked_ns, now_ns)
    }

    /// Whether a stamp that was asked for at `asked_ns`, and that the device has got to by `now_ns`, tells when it did.
    pub fn are_close(asked_ns: i64, now_ns: i64) -> bool {
        now_ns - asked_ns <= CLOSE_NS
    }

    /// Takes out those that no stamp needs, of which the oldest refers to number `needed`; the newest stays.
    pub fn forget_before(&mut self, needed: Option<u64>) -> Vec<Rc<Event>> {
        let until = needed.unwrap_or(u64::MAX).min(self.newest());
        let count = usize::try_from(until.saturating_sub(self.first)).unwrap_or(0);
        self.first += count as u64;
        self.all.drain(..count).map(|anchor| anchor.event).collect()
    }

    pub fn clear(&mut self) {
        self.all.clear();
    }

    #[cfg(test)]
    pub fn all(&self) -> &VecDeque<Anchor> {
        &self.all
    }
}
