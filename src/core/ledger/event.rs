//! The raw events of which an account is made: plain data, written by the allocator hook.

/// One line of the stream that the hook writes: an allocation, a free, or a marker that puts a boundary
/// of the step into the same order as the memory events around it.
///
/// The layout is shared with `probe/hook/shim.cpp` (`struct Event`); a test pins its size.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Monotonic clock, nanoseconds.
    pub at_ns: i64,
    /// The block's number, in order of birth; for a marker its payload (phase or step number).
    pub id: u64,
    /// Bytes asked for; 0 for a marker.
    pub bytes: i64,
    /// The allocator's own total just after this event.
    pub total_bytes: i64,
    /// The scope the training thread was in, as numbered by the probe; 0 for none.
    pub scope: u32,
    /// A small number for the thread that the event happened on.
    pub thread: u16,
    /// One of the constants in [`kind`].
    pub kind: u8,
    /// One of the constants in [`origin`].
    pub origin: u8,
}

/// What an [`Event`] is. Plain numbers, since they cross from C++.
pub mod kind {
    pub const ALLOC: u8 = 0;
    pub const FREE: u8 = 1;
    pub const STEP_BEGIN: u8 = 2;
    pub const STEP_END: u8 = 3;
    pub const PHASE_BEGIN: u8 = 4;
    pub const PHASE_END: u8 = 5;
}

/// Which kind of thread an [`Event`] happened on.
pub mod origin {
    /// The training thread or one that works for it (autograd's, OpenMP's).
    pub const STEP: u8 = 0;
    /// A thread that fetches batches.
    pub const LOADER: u8 = 1;
}

#[cfg(test)]
mod tests {
    use super::Event;

    #[test]
    fn the_layout_is_the_one_the_shim_writes() {
        assert_eq!(size_of::<Event>(), 40);
        assert_eq!(align_of::<Event>(), 8);
    }
}
