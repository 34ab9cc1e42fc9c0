//! The allocator's own counters, read where a run ends, against the account's blocks that are alive then.
//!
//! The account's totals come from the allocator's total, so holding the two together proves little. What was asked for the
//! allocator counts for itself, and the hook has never looked at it: the account adds up the requests it was told of. (The
//! counter falls when a block is free for others, the account when it is given back; of a run on one stream that is the same
//! instant.)

use std::cell::Cell;
use std::ffi::c_int;
use std::rc::Rc;

use stepledger::record::{AllocationRow, BetweenRecords, Detail, RunRow, Sink, SinkError, StepRecords};
use tch::Device;

use super::common::MemorySink;
use super::row::Row;

/// Bytes that the allocator has given out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    /// As was asked for, and of the blocks that they lie in.
    pub requested: i64,
    pub allocated: i64,
}

unsafe extern "C" {
    fn device_counters(device: c_int, requested: *mut i64, allocated: *mut i64) -> bool;
}

impl Counters {
    /// Those of a GPU's caching allocator; `None` before it has begun, and where there is none.
    pub fn of(device: Device) -> Option<Counters> {
        let Device::Cuda(ordinal) = device else { return None };
        let (mut requested, mut allocated) = (0, 0);
        // SAFETY: declared so in counters.cpp; it writes two numbers to places of ours.
        let told = unsafe { device_counters(ordinal as c_int, &raw mut requested, &raw mut allocated) };
        told.then_some(Counters { requested, allocated })
    }

    /// The same as the account has them: what lives, and of it what is there for rounding alone.
    pub fn of_account(alive: &[AllocationRow]) -> Counters {
        let asked = alive.iter().filter(|row| row.detail != Some(Detail::Rounding));
        Counters {
            requested: asked.map(|row| row.bytes).sum(),
            allocated: alive.iter().map(|row| row.bytes).sum(),
        }
    }
}

/// Keeps a run in memory, and reads the counters when it ends: everything is alive still, and nothing moves.
pub struct Counting {
    kept: MemorySink,
    device: Device,
    counted: Rc<Cell<Option<Counters>>>,
}

impl Counting {
    pub fn new(kept: MemorySink, device: Device) -> Self {
        Counting { kept, device, counted: Rc::default() }
    }

    /// Where the counters will be.
    pub fn counted(&self) -> Rc<Cell<Option<Counters>>> {
        self.counted.clone()
    }
}

impl Sink for Counting {
    fn begin(&mut self, run: &RunRow) -> Result<(), SinkError> {
        self.kept.begin(run)
    }

    fn push(&mut self, records: StepRecords) {
        self.kept.push(records);
    }

    fn push_between(&mut self, records: BetweenRecords) {
        self.kept.push_between(records);
    }

    fn flush(&mut self, open: &[AllocationRow]) -> Result<(), SinkError> {
        self.kept.flush(open)
    }

    fn end(&mut self, run: &RunRow, open: &[AllocationRow]) -> Result<(), SinkError> {
        self.counted.set(Counters::of(self.device));
        self.kept.end(run, open)
    }
}

/// The account's bytes against the allocator's, of which so many were there before.
pub fn against(account: Counters, before: Option<Counters>, after: Option<Counters>) -> [Row; 2] {
    let check = "account: bytes asked for and alive, against the allocator's requested_bytes";
    let whole = "account: blocks alive, against the allocator's allocated_bytes";
    let Some(after) = after else {
        return [check, whole].map(|check| Row::not_run(check, "a CPU has no caching allocator"));
    };
    let before = before.unwrap_or(Counters { requested: 0, allocated: 0 });
    [
        Row::same(check, account.requested, after.requested - before.requested, " bytes"),
        Row::same(whole, account.allocated, after.allocated - before.allocated, " bytes"),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::row::verdict;
    use super::*;

    const ACCOUNT: Counters = Counters { requested: 1000, allocated: 1024 };

    fn code(before: Option<Counters>, after: Option<Counters>) -> u8 {
        verdict(&against(ACCOUNT, before, after)).code()
    }

    #[test]
    fn a_byte_that_the_hook_was_not_told_of_fails() {
        let after = |requested, allocated| Some(Counters { requested, allocated });
        assert_eq!(code(None, after(1000, 1024)), 0);
        assert_eq!(code(None, after(1001, 1024)), 1);
        assert_eq!(code(None, after(1000, 1536)), 1);
        assert_eq!(code(after(8, 512), after(1008, 1536)), 0, "what was there before is not the run's");
        assert_eq!(code(None, None), 77);
    }

    #[test]
    fn a_cpu_has_no_such_counters() {
        assert_eq!(Counters::of(Device::Cpu), None);
    }
}
