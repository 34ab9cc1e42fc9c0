//! The reader of the stream of events.

use std::cell::{Cell, RefCell};
use std::mem;

use super::{ffi, now_ns};
use crate::ledger::Event;

/// So many unread events are half of what there is room for.
const HALF_FULL: usize = 1 << 20;

/// Once so many have been taken out of the stream (320 MiB) no more are, until they are asked for.
const MOST_RELIEVED: usize = 8 << 20;

/// What any thread has written, read by one: there is one of these at a time, as there is one [`Hook`](super::Hook).
#[derive(Debug, Default)]
pub struct Stream {
    /// Older than what the ring holds.
    relieved: RefCell<Vec<Event>>,
    relieving_ns: Cell<i64>,
}

impl Stream {
    /// Makes room in the ring if half of it is full, so that a step can have more events than fit at once.
    pub fn relieve(&self) {
        // SAFETY: loads two atomic numbers.
        if unsafe { ffi::sl_pending() } < HALF_FULL {
            return;
        }
        let mut relieved = self.relieved.borrow_mut();
        if relieved.len() < MOST_RELIEVED {
            let begin_ns = now_ns();
            read_ring(&mut relieved);
            self.relieving_ns.set(self.relieving_ns.get() + now_ns() - begin_ns);
        }
    }

    /// What [`Stream::relieve`] has spent since this was last asked.
    pub fn take_relieving_ns(&self) -> i64 {
        self.relieving_ns.take()
    }

    /// Appends everything unread to `events`, oldest first.
    pub fn drain(&self, events: &mut Vec<Event>) {
        let mut relieved = self.relieved.borrow_mut();
        if !relieved.is_empty() {
            // Its room goes back: few steps need it.
            events.append(&mut mem::take(&mut relieved));
        }
        read_ring(events);
    }

    /// Forgets the events so far. Returns what an account that begins here begins with: the bytes alive in
    /// blocks that a hook of this process has seen made, and the number that the next block will have.
    pub fn begin_account(&self) -> (i64, u64) {
        self.relieved.borrow_mut().clear();
        let (mut total_bytes, mut next_block) = (0, 0);
        // SAFETY: writes two numbers to places of ours; this is the only reader.
        unsafe { ffi::sl_begin_account(&mut total_bytes, &mut next_block) };
        (total_bytes, next_block)
    }
}

fn read_ring(events: &mut Vec<Event>) {
    // SAFETY: `room` elements past the length are reserved, the shim writes at most that many and says how many, and
    // every bit pattern it writes is a valid `Event`. `Stream` is the only reader.
    unsafe {
        let room = ffi::sl_pending();
        events.reserve(room);
        let copied = ffi::sl_drain(events.as_mut_ptr().add(events.len()), room);
        events.set_len(events.len() + copied);
    }
}
