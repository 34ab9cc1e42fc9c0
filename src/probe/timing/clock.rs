//! The seam between what is timed and what times it.

use super::super::hook;

/// An instant that a device's clock was asked to take: they are numbered in the order of asking, and only that clock
/// can read them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(pub(super) u64);

#[cfg(test)]
impl Stamp {
    /// For clocks that tests make up.
    pub fn numbered(number: u64) -> Self {
        Stamp(number)
    }
}

/// A device's clock. The device works behind the host, so it takes an instant when it gets there, and tells later.
pub trait Clock {
    /// Says which step begins, to be told with what goes wrong from now on.
    fn begin_step(&mut self, step: i64);

    /// Says which step the readings are of from now on: the device is a few behind. `None` where nothing more is read of
    /// one.
    fn read_step(&mut self, step: Option<i64>);

    /// Has the device take the instant at which it gets through what it has been given so far. `host_ns` is now, on
    /// the host's clock. `None` where that cannot be done. Never waits.
    fn stamp(&mut self, host_ns: i64) -> Option<Stamp>;

    /// Says that the host has just waited for the device, from `begin` to `end`: if the device had nothing left to do
    /// by then, the two timelines meet at `end`. Never waits.
    fn pin(&mut self, begin: Stamp, end: Stamp);

    /// Whether the device has taken everything up to `last`, or never will. Never waits.
    fn reached(&mut self, last: Stamp) -> bool;

    /// Waits until [`reached`](Clock::reached), but not for a device that gets no further. Call it outside the steps only.
    fn wait(&mut self, last: Stamp);

    /// Nanoseconds from `begin` to `end` on the device; `None` if one of them was lost, or not reached.
    fn elapsed_ns(&mut self, begin: Stamp, end: Stamp) -> Option<i64>;

    /// When the device reached `stamp`, on the host's timeline, to 0.1 ms: never before the host asked. `None` where the
    /// two timelines have not been seen to meet for long.
    fn host_ns(&mut self, stamp: Stamp) -> Option<i64>;

    /// Whether both were asked for on the same stream, so that the device got to them in order.
    fn same_stream(&self, a: Stamp, b: Stamp) -> bool;

    /// Forgets everything up to `last`, so that its resources serve again.
    fn forget(&mut self, last: Stamp);

    /// What could not be measured, each thing once, in words.
    fn missing(&self) -> Vec<String>;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_clock_never_runs_backwards() {
        let (begin, end) = (HostClock.now_ns(), HostClock.now_ns());
        assert!(begin <= end);
    }
}
