//! What several test files need: a sink that keeps records in memory, and a default configuration.
#![allow(dead_code)] // each test file uses its own part of this

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard};

use stepledger::record::{AllocationRow, BetweenRecords, RunRow, Sink, SinkError, StepRecords};
use stepledger::train::Config;

/// A run as a sink was told of it.
#[derive(Debug, Default)]
pub struct Kept {
    pub steps: Vec<StepRecords>,
    pub between: Vec<BetweenRecords>,
    pub open: Vec<AllocationRow>,
    pub run: Option<RunRow>,
}

/// A sink that keeps everything in memory; clones share it.
#[derive(Debug, Clone, Default)]
pub struct MemorySink(pub Rc<RefCell<Kept>>);

impl Sink for MemorySink {
    fn begin(&mut self, run: &RunRow) -> Result<(), SinkError> {
        self.0.borrow_mut().run = Some(run.clone());
        Ok(())
    }

    fn push(&mut self, records: StepRecords) {
        self.0.borrow_mut().steps.push(records);
    }

    fn push_between(&mut self, records: BetweenRecords) {
        self.0.borrow_mut().between.push(records);
    }

    fn flush(&mut self, _open: &[AllocationRow]) -> Result<(), SinkError> {
        Ok(())
    }

    fn end(&mut self, run: &RunRow, open: &[AllocationRow]) -> Result<(), SinkError> {
        let mut kept = self.0.borrow_mut();
        kept.run = Some(run.clone());
        kept.open = open.to_vec();
        Ok(())
    }
}

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// libtorch has one allocator a process: tests that hook it take turns.
pub fn turn() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The default GPT, for three steps after one of warm-up.
pub fn gpt() -> Config {
    Config { steps: 3, warmup: 1, ..Config::default() }
}
