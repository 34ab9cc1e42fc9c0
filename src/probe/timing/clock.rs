//! The seam between what is timed and what times it.

use super::super::hook;

/// An instant on some clock's timeline: only that clock can read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp(pub(super) i64);

/// A clock that takes instants now and tells, later, how far apart they lie.
pub trait Clock {
    /// Takes this instant. Never waits for a device.
    fn stamp(&mut self) -> Stamp;

    /// Nanoseconds from `begin` to `end`; `None` if one of them was lost. May wait for a device: ask
    /// outside the step only.
    fn elapsed_ns(&mut self, begin: Stamp, end: Stamp) -> Option<i64>;

    /// Forgets all stamps, so that their resources serve the next step.
    fn reset(&mut self) {}

    /// The first thing that went wrong, in words, if anything did.
    fn trouble(&self) -> Option<&str> {
        None
    }
}

/// The host's monotonic clock, the one that the allocator's events are stamped with.
#[derive(Debug, Default)]
pub struct HostClock;

impl HostClock {
    /// Nanoseconds since the clock's own beginning.
    pub fn now_ns(&self) -> i64 {
        hook::now_ns()
    }
}

impl Clock for HostClock {
    fn stamp(&mut self) -> Stamp {
        Stamp(self.now_ns())
    }

    fn elapsed_ns(&mut self, begin: Stamp, end: Stamp) -> Option<i64> {
        Some(end.0 - begin.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_clock_never_runs_backwards() {
        let mut clock = HostClock;
        let (begin, end) = (clock.stamp(), clock.stamp());
        assert!(clock.elapsed_ns(begin, end).is_some_and(|ns| ns >= 0));
        assert_eq!(clock.elapsed_ns(begin, begin), Some(0));
    }
}
