//! What a probe is told about the run it watches.

use serde_json::{Map, Value};
use tch::Device;

use crate::record::{ReferenceRates, Trace};

/// What to watch, and how often to make it safe.
#[derive(Debug, Clone)]
pub struct Options {
    pub(super) program: String,
    pub(super) run_id: Option<String>,
    pub(super) config: Map<String, Value>,
    pub(super) trace: Trace,
    pub(super) warmup: i64,
    pub(super) flush_every: usize,
    pub(super) device: Device,
    pub(super) limit_bytes: Option<i64>,
    pub(super) reference_rates: Option<ReferenceRates>,
}

impl Options {
    /// A run of the program with this name: every allocation traced, on the CPU, no warm-up, made safe
    /// every 50 steps.
    pub fn new(program: impl Into<String>) -> Self {
        Options {
            program: program.into(),
            run_id: None,
            config: Map::new(),
            trace: Trace::Allocations,
            warmup: 0,
            flush_every: 50,
            device: Device::Cpu,
            limit_bytes: None,
            reference_rates: None,
        }
    }

    /// The run's id, which must be new where its records go and fit in a path; `None` makes one of the time
    /// and the program's name.
    pub fn run_id(mut self, run_id: Option<String>) -> Self {
        self.run_id = run_id;
        self
    }

    /// The configuration, kept with the run and compared between runs.
    pub fn config(mut self, config: Map<String, Value>) -> Self {
        self.config = config;
        self
    }

    pub fn trace(mut self, trace: Trace) -> Self {
        self.trace = trace;
        self
    }

    /// How many steps come before the measured ones.
    pub fn warmup(mut self, steps: i64) -> Self {
        self.warmup = steps;
        self
    }

    /// How many steps a crash may cost at most; at least 1.
    pub fn flush_every(mut self, steps: usize) -> Self {
        self.flush_every = steps.max(1);
        self
    }

    /// The device whose memory the account is of, and whose clock times the phases beside the host's.
    pub fn device(mut self, device: Device) -> Self {
        self.device = device;
        self
    }

    /// The most bytes that may be alive on the device: an allocation beyond fails as if the memory were full.
    /// On a CPU to the byte; on a GPU as the share of its memory that the caching allocator may reserve. Takes
    /// a trace of allocations.
    pub fn limit(mut self, bytes: Option<i64>) -> Self {
        self.limit_bytes = bytes;
        self
    }
    /// What the device can do at most, kept with the run so that reports can hold its rates against it.
    pub fn reference_rates(mut self, rates: Option<ReferenceRates>) -> Self {
        self.reference_rates = rates;
        self
    }
}
