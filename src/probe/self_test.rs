//! A quick proof that the hook works here: tensors of known sizes are made under a probe, and looked for in its records.

use std::cell::RefCell;
use std::rc::Rc;

use tch::{Device, Kind, Tensor};

use super::error::ProbeError;
use super::options::Options;
use super::session::Probe;
use crate::record::{AllocationRow, BetweenRecords, RunRow, Sink, SinkError, StepRecords};

/// What a probe saw of what was made under it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelfTest {
    /// Tensors made, and freed, in one step.
    pub made: usize,
    /// Lifetimes of their sizes in the records, ended ones only.
    pub seen: usize,
    /// Events that did not fit the buffer.
    pub dropped_events: i64,
    /// The largest difference, at any event, between the allocator's own total and the sum of the categories.
    pub difference_bytes: i64,
}

impl SelfTest {
    /// Whether everything that was made was seen, and every byte of it filed.
    pub fn passed(&self) -> bool {
        self.made == self.seen && self.dropped_events == 0 && self.difference_bytes == 0
    }
}

const TENSORS: i64 = 16;
const BYTES_PER_FLOAT: i64 = 4;

/// An odd number of floats that nothing else in such a step has.
fn floats(number: i64) -> i64 {
    10_007 + 2 * number
}

/// Runs one step on the CPU whose allocations are known.
///
/// # Errors
/// A hook that cannot be set, above all: another probe is recording, or libtorch has another allocator than it was built for.
pub fn self_test() -> Result<SelfTest, ProbeError> {
    let sink = Kept::default();
    let mut probe = Probe::start(Options::new("self_test"), sink.clone())?;
    let mut step = probe.step();
    step.forward(|| {
        for number in 0..TENSORS {
            drop(Tensor::zeros([floats(number)], (Kind::Float, Device::Cpu)));
        }
    });
    step.finish(None, None)?;
    let run = probe.finish()?;
    let kept = sink.0.borrow();
    let expected: Vec<i64> = (0..TENSORS).map(|number| BYTES_PER_FLOAT * floats(number)).collect();
    Ok(SelfTest {
        made: expected.len(),
        seen: kept.ended.iter().filter(|row| expected.contains(&row.bytes)).count(),
        dropped_events: run.dropped_events,
        difference_bytes: kept.difference_bytes,
    })
}

/// The records that the proof looks at.
#[derive(Debug, Default)]
struct Records {
    ended: Vec<AllocationRow>,
    difference_bytes: i64,
}

#[derive(Debug, Clone, Default)]
struct Kept(Rc<RefCell<Records>>);

impl Sink for Kept {
    fn begin(&mut self, _: &RunRow) -> Result<(), SinkError> {
        Ok(())
    }

    fn push(&mut self, records: StepRecords) {
        let mut kept = self.0.borrow_mut();
        kept.ended.extend(records.ended);
        let difference = records.step.difference_bytes.unwrap_or(0).abs();
        kept.difference_bytes = kept.difference_bytes.max(difference);
    }

    fn push_between(&mut self, records: BetweenRecords) {
        self.0.borrow_mut().ended.extend(records.ended);
    }

    fn flush(&mut self, _: &[AllocationRow]) -> Result<(), SinkError> {
        Ok(())
    }

    fn end(&mut self, _: &RunRow, _: &[AllocationRow]) -> Result<(), SinkError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_missed_something_has_not_passed() {
        let whole = SelfTest { made: 16, seen: 16, dropped_events: 0, difference_bytes: 0 };
        assert!(whole.passed());
        for broken in [
            SelfTest { seen: 15, ..whole },
            SelfTest { dropped_events: 1, ..whole },
            SelfTest { difference_bytes: 4, ..whole },
        ] {
            assert!(!broken.passed(), "{broken:?}");
        }
    }
}
