//! The place where instruments learn that a segment is run again.

/// Lives as long as a recomputation: from before the segment is called until its outputs are dropped again.
///
/// On the thread that runs backward's node, which on a CPU is the training thread, inside the phase `backward`. The
/// segment's own scopes open and close inside it. Not inside: the unpacking of the inputs, which for a nested segment
/// is the recomputation of the one around it and has a guard of its own.
///
/// A hook for the profiler: it is to be timed here, and its allocations to be flagged.
pub(super) struct Recomputing;

impl Recomputing {
    pub fn begin(_name: &str) -> Self {
        Recomputing
    }
}
