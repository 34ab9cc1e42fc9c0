//! The memory half of the instruments: the hook, and the ledger that reads what it writes.

use std::rc::Rc;

use super::error::ProbeError;
use super::hook::{self, Beside, Hook, HookError, Watch};
use super::options::Options;
use crate::ledger::{Event, Identity, Ledger, SiteNames, StepAccount};
use crate::record::{AllocationRow, Trace};

/// Absent when only times are traced.
pub struct Memory {
    pub hook: Rc<Hook>,
    /// Nanoseconds that recording one event costs.
    pub ns_per_event: f64,
    ledger: Ledger,
    /// Kept for its room.
    events: Vec<Event>,
}

impl Memory {
    /// Starts the hook, if the options ask for memory. Returns also the instant at which the account begins.
    pub fn start(options: &Options) -> Result<(Option<Memory>, i64), ProbeError> {
        let Options { device, limit_bytes, trace, .. } = *options;
        if trace == Trace::Phases {
            return match limit_bytes {
                Some(_) => Err(ProbeError::LimitWithoutTrace),
                None => Ok((None, hook::now_ns())),
            };
        }
        let hook = Hook::start(Watch { device, limit_bytes, ops: trace == Trace::Ops })?;
        let ns_per_event = hook.measure_event_cost();
        let epoch_ns = hook::now_ns();
        let (held_bytes, first_id) = hook.begin_account();
        let ledger = Ledger::new(epoch_ns, held_bytes, first_id);
        Ok((Some(Memory { hook: Rc::new(hook), ns_per_event, ledger, events: Vec::new() }), epoch_ns))
    }

    /// Reads what the hook has written since the last time, and files it.
    pub fn file(&mut self, identities: &[Identity], names: &dyn SiteNames) -> StepAccount {
        self.events.clear();
        self.hook.drain(&mut self.events);
        self.ledger.file(&self.events, identities, names)
    }

    /// The lifetimes that have not ended.
    pub fn open(&self) -> Vec<AllocationRow> {
        self.ledger.open()
    }

    /// What lies beside the account, where the device has a caching allocator.
    pub fn beside(&self) -> Result<Option<Beside>, HookError> {
        self.hook.beside()
    }
}
