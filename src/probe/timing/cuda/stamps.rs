//! What the device was asked to take, and how far it has got.

use std::collections::VecDeque;
use std::rc::Rc;

use super::super::clock::Stamp;
use crate::device::{DriverError, Event, Relaxed, Stream};

/// A stamp's event.
pub struct Taken {
    pub event: Rc<Event>,
    pub stream: Stream,
    pub host_ns: i64,
    /// The number of the anchor that was the last one then.
    pub anchor: u64,
}

/// All stamps that are not forgotten, oldest first.
#[derive(Default)]
pub struct Stamps {
    all: VecDeque<Taken>,
    /// The number of the first of them, and of the first that the device is not known to have reached.
    first: u64,
    unreached: u64,
}

impl Stamps {
    pub fn push(&mut self, taken: Taken) -> Stamp {
        self.all.push_back(taken);
        Stamp(self.first + self.all.len() as u64 - 1)
    }

    pub fn get(&self, stamp: Stamp) -> Option<&Taken> {
        self.all.get(usize::try_from(stamp.0.checked_sub(self.first)?).ok()?)
    }

    pub fn oldest(&self) -> Option<&Taken> {
        self.all.front()
    }

    pub fn newest(&self) -> Option<&Taken> {
        self.all.back()
    }

    /// Whether the device has reached everything up to `last`. Asks for the last event of each stream only: those before
    /// it on the same stream come before it.
    pub fn ask(&self, last: Stamp, relaxed: &Relaxed) -> Result<bool, DriverError> {
        let mut asked: Vec<Stream> = Vec::new();
        for taken in (self.unreached..=last.0).rev().filter_map(|number| self.get(Stamp(number))) {
            if asked.contains(&taken.stream) {
                continue;
            }
            if !taken.event.is_done(relaxed)? {
                return Ok(false);
            }
            asked.push(taken.stream);
        }
        Ok(true)
    }

    pub fn set_reached(&mut self, last: Stamp) {
        self.unreached = self.unreached.max(last.0 + 1);
    }

    /// Whether the device has reached one more, the oldest that it was not known to have.
    pub fn advance(&mut self, relaxed: &Relaxed) -> Result<bool, DriverError> {
        let Some(oldest) = self.get(Stamp(self.unreached)) else { return Ok(false) };
        let advanced = oldest.event.is_done(relaxed)?;
        self.unreached += u64::from(advanced);
        Ok(advanced)
    }

    /// Takes out everything up to `last`.
    pub fn forget(&mut self, last: Stamp) -> Vec<Rc<Event>> {
        let count = (last.0 + 1).saturating_sub(self.first).min(self.all.len() as u64);
        self.first += count;
        self.unreached = self.unreached.max(self.first);
        self.all.drain(..count as usize).map(|taken| taken.event).collect()
    }

    pub fn clear(&mut self) {
        self.all.clear();
    }
}
