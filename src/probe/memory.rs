//! The memory half of the instruments: the hook, and the ledger that reads what it writes.

use std::rc::Rc;

use super::error::ProbeError;
use super::hook::{self, Beside, Hook, HookError, Watch};
use super::options::Options;
use crate::ledger::{Event, Identity, Ledger, SiteNames, StepAccount, kind};
use crate::record::{AllocationRow, Trace};

/// Absent when only times are traced.
pub struct Memory {
    pub hook: Rc<Hook>,
    /// Nanoseconds that recording one event costs.
    pub ns_per_event: f64,
    ledger: Ledger,
    /// What has been read and is not filed yet, after the first `filed`, which are.
    events: Vec<Event>,
    filed: usize,
    /// The instant of the last event that was read.
    last_ns: i64,
    /// Columns that the device did not tell, and why, as it was the first time.
    untold: Vec<(&'static str, String)>,
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
        let (held_bytes, first_id) = hook.stream.begin_account();
        let ledger = Ledger::new(epoch_ns, held_bytes, first_id);
        let memory = Memory {
            hook: Rc::new(hook),
            ns_per_event,
            ledger,
            events: Vec::new(),
            filed: 0,
            last_ns: epoch_ns,
            untold: Vec::new(),
        };
        Ok((Some(memory), epoch_ns))
    }

    /// Takes what the hook has written, so that all its room is there for what comes.
    pub fn read(&mut self) {
        if self.filed == self.events.len() {
            self.events.clear();
            self.filed = 0;
        }
        let known = self.events.len();
        self.hook.stream.drain(&mut self.events);
        self.last_ns = Event::order_instants(&mut self.events[known..], self.last_ns);
    }

    /// What lies beside the account at the end of `step`. What is not told is null and missing; a device that is lost tells
    /// nothing any more, and costs no step its row. `non_torch` is as for [`Hook::beside`].
    pub fn beside(&mut self, step: i64, non_torch: bool) -> Option<Beside> {
        match self.hook.beside(non_torch) {
            Ok(beside) => beside,
            Err(error) if non_torch => {
                self.note_untold("non_torch_bytes", step, &error);
                // The rest is known without the device.
                self.beside(step, false)
            }
            Err(error) => {
                self.note_untold("rounding_bytes, cached_bytes", step, &error);
                None
            }
        }
    }

    fn note_untold(&mut self, columns: &'static str, step: i64, error: &HookError) {
        if self.untold.iter().all(|(known, _)| *known != columns) {
            let error = error.to_string();
            // Behind the first line libtorch tells how to look for a bug.
            let why = error.lines().next().unwrap_or_default();
            self.untold.push((columns, format!("null where it was not told, first at step {step}: {why}")));
        }
    }

    /// What could not be learnt, each thing once, in words.
    pub fn missing(&self) -> Vec<String> {
        self.untold.iter().map(|(columns, why)| format!("{columns}: {why}")).collect()
    }

    /// How many events have been read and not filed yet.
    pub fn waiting(&self) -> usize {
        self.events.len() - self.filed
    }

    /// Files what has been read: until the end of `step`, or all of it.
    pub fn file(&mut self, step: Option<i64>, identities: &[Identity], names: &dyn SiteNames) -> StepAccount {
        let waiting = &self.events[self.filed..];
        let is_end = |event: &Event| event.kind == kind::STEP_END && Some(event.id as i64) == step;
        let count = waiting.iter().position(is_end).map_or(waiting.len(), |place| place + 1);
        self.filed += count;
        self.ledger.file(&waiting[..count], identities, names)
    }

    /// Takes lifetimes that nobody needs any more, for their room.
    pub fn lend(&mut self, room: Vec<AllocationRow>) {
        self.ledger.lend(room);
    }

    /// The lifetimes that have not ended.
    pub fn open(&self) -> Vec<AllocationRow> {
        self.ledger.open()
    }
}
