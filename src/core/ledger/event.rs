//! The raw events of which an account is made: plain data, written by the allocator hook.

/// One line of the stream that the hook writes: an allocation, a free, or a marker that puts a boundary
/// of the step into the same order as the memory events around it.
///
/// The layout is shared with `probe/hook/events.h` (`struct Event`); a test pins its size.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Monotonic clock, nanoseconds.
    pub at_ns: i64,
    /// The block's number, in order of birth; for a marker its payload (phase or step number).
    pub id: u64,
    /// Bytes asked for; for [`kind::NODE`] nanoseconds; 0 for the other markers.
    pub bytes: i64,
    /// The allocator's own total just after this event.
    pub total_bytes: i64,
    pub site: Site,
    /// A small number for the thread that the event happened on.
    pub thread: u16,
    /// One of the constants in [`kind`].
    pub kind: u8,
    /// The constants in [`flag`] that apply, added up.
    pub flags: u8,
}

impl Event {
    /// Makes the instants of `events`, which are in the stream's order, rise strictly from `last_ns` on: whoever asks
    /// what was alive at an instant then finds what the stream has there. Returns the last instant.
    ///
    /// Threads look at the clock before they take their place in the stream, and may be overtaken in between. One that
    /// was has its instant moved to just after the event it came to follow, which it did happen after.
    pub fn order_instants(events: &mut [Event], last_ns: i64) -> i64 {
        events.iter_mut().fold(last_ns, |last_ns, event| {
            event.at_ns = event.at_ns.max(last_ns + 1);
            event.at_ns
        })
    }
}

/// Where in the program something happened: the number of a scope and that of an operator, as the probe gave
/// them; 0 for none.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Site(u32);

impl Site {
    /// Bits of the scope's number; the operator's has the rest.
    const SCOPE_BITS: u32 = 20;

    /// The largest number a scope can have.
    pub const MAX_SCOPE: u32 = (1 << Self::SCOPE_BITS) - 1;

    pub const fn new(scope: u32, op: u32) -> Self {
        Site(op << Self::SCOPE_BITS | (scope & Self::MAX_SCOPE))
    }

    pub const fn scope(self) -> u32 {
        self.0 & Self::MAX_SCOPE
    }

    pub const fn op(self) -> u32 {
        self.0 >> Self::SCOPE_BITS
    }
}

/// What an [`Event`] is. Plain numbers, since they cross from C++.
pub mod kind {
    pub const ALLOC: u8 = 0;
    pub const FREE: u8 = 1;
    pub const STEP_BEGIN: u8 = 2;
    pub const STEP_END: u8 = 3;
    pub const PHASE_BEGIN: u8 = 4;
    pub const PHASE_END: u8 = 5;
    /// An allocation that could not be made; `bytes` is what was asked for.
    pub const ALLOC_FAILED: u8 = 6;
    /// A node of the backward graph has run; `bytes` is the nanoseconds that it took itself, the site's scope
    /// that of the forward operator it belongs to.
    pub const NODE: u8 = 7;
    /// The step was left before its end.
    pub const STEP_LEFT: u8 = 8;
    /// Backward begins, and ends, to run a part of forward again.
    pub const RECOMPUTE_BEGIN: u8 = 9;
    pub const RECOMPUTE_END: u8 = 10;
}

/// What else is known of an [`Event`].
pub mod flag {
    /// It happened on a thread that fetches batches.
    pub const LOADER: u8 = 1;
    /// Of a free: within the call of the operator that had made the block.
    pub const IN_OP: u8 = 2;
    /// Of an allocation: autocast copied a leaf in half precision.
    pub const AUTOCAST_COPY: u8 = 4;
    /// Of an allocation: a caching allocator rounded the block before it up by this much.
    pub const ROUNDING: u8 = 8;
}

#[cfg(test)]
mod tests {
    use super::{Event, Site, kind};

    #[test]
    fn the_layout_is_the_one_the_shim_writes() {
        assert_eq!(size_of::<Event>(), 40);
        assert_eq!(align_of::<Event>(), 8);
    }

    #[test]
    fn instants_rise_in_the_order_of_the_stream() {
        let at = |at_ns| Event {
            at_ns,
            id: 0,
            bytes: 1,
            total_bytes: 0,
            site: Site::default(),
            thread: 0,
            kind: kind::ALLOC,
            flags: 0,
        };
        let mut events = [7, 20, 20, 12, 90].map(at);
        assert_eq!(Event::order_instants(&mut events, 10), 90);
        assert_eq!(events.map(|event| event.at_ns), [11, 20, 21, 22, 90]);
        assert_eq!(Event::order_instants(&mut [], 90), 90);
    }

    #[test]
    fn a_site_keeps_both_its_numbers() {
        let site = Site::new(Site::MAX_SCOPE, 4095);
        assert_eq!((site.scope(), site.op()), (Site::MAX_SCOPE, 4095));
        assert_eq!((Site::new(7, 0).scope(), Site::new(7, 0).op()), (7, 0));
    }
}
