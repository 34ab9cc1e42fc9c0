//! From steps that have ended to records in a sink.

use std::mem;

use super::error::ProbeError;
use super::hook;
use super::memory::Memory;
use super::pending::{EndedStep, Pending, TimedStep};
use super::shares::{compute_pct, kernel_pct};
use super::spans::Spans;
use crate::ledger::{Identity, StepAccount};
use crate::record::{
    AllocationRow, BetweenRecords, FailedAllocation, PhaseRow, RunRow, Sink, StepRecords, StepRow,
};

/// Lifetimes that wait for a flush at most, but for those of one step. At about 200 bytes each (of two events) that is
/// 100 MiB, and as much again while a flush is being written.
const MOST_LIFETIMES: usize = 1 << 19;

/// Events that may wait to be filed before the steps that they belong to are. Small steps are filed several at a
/// time: each would begin with cold caches otherwise, which doubles what it costs.
const WAITING_EVENTS: usize = 1 << 12;
const WAITING_STEPS: usize = 32;

/// Steps that the device may be behind at a step's end. An older one is waited for then, before the next begins: the host
/// gains nothing by running further ahead, and what is not read yet stays little.
const MOST_BEHIND: usize = 4;

/// Files what the hook writes, and hands it on.
pub struct Recorder {
    sink: Box<dyn Sink>,
    memory: Option<Memory>,
    flush_every: usize,
    /// Of the step in progress.
    identities: Vec<Identity>,
    pending: Pending,
    opened: bool,
    /// Filed, and not flushed yet.
    unflushed: usize,
    unflushed_lifetimes: usize,
    /// What the observer took and no step has been charged with yet: looking up gradients within the step in progress,
    /// and flushing after the last one.
    carried_observer_ns: i64,
    findings: Findings,
    /// Something was filed that no sink was open for.
    lost_unopened: bool,
}

/// What filing has brought to light so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Findings {
    /// Passed on to the sink.
    pub steps: i64,
    pub events: i64,
    pub dropped_events: i64,
    /// The most that the allocator's total and the categories differed by, `unattributed` left out.
    pub unexplained_bytes: i64,
}

impl Recorder {
    pub fn new(sink: Box<dyn Sink>, memory: Option<Memory>, flush_every: usize) -> Self {
        Recorder {
            sink,
            memory,
            flush_every,
            identities: Vec::new(),
            pending: Pending::default(),
            opened: false,
            unflushed: 0,
            unflushed_lifetimes: 0,
            carried_observer_ns: 0,
            findings: Findings::default(),
            lost_unopened: false,
        }
    }

    /// Opens the run in the sink, if it is not open yet.
    pub fn open(&mut self, run: &RunRow) -> Result<(), ProbeError> {
        if !self.opened {
            self.sink.begin(run).map_err(ProbeError::Open)?;
            self.opened = true;
        }
        Ok(())
    }

    pub fn is_open(&self) -> bool {
        self.opened
    }

    pub fn findings(&self) -> Findings {
        self.findings
    }

    /// What the account lacks beside what it found, in words.
    pub fn missing(&self) -> Vec<String> {
        let unopened =
            "phases, ledger, allocations: what came before the run could be opened is not in its records";
        let unopened = self.lost_unopened.then(|| unopened.to_owned());
        self.memory.as_ref().map(Memory::missing).unwrap_or_default().into_iter().chain(unopened).collect()
    }

    pub fn traces_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// Says what blocks are, for the events since the last step's end. Of a block that is known already the later word
    /// holds, so that they do not pile up with the micro-batches of a step.
    pub fn identify(&mut self, identities: Vec<Identity>) {
        let fresh = self.identities.is_empty();
        self.identities.extend(identities);
        if !fresh {
            keep_last_of_each(&mut self.identities);
        }
    }

    /// Charges the step in progress with what the observer has just taken.
    pub fn charge(&mut self, observer_ns: i64) {
        self.carried_observer_ns += observer_ns;
    }

    /// Takes a step that began at `begin_ns` and has just ended: all since its end is the observer's work. A device's times
    /// are read as soon as it is through; the step is filed now or with one of the next.
    pub fn add(&mut self, row: StepRow, begin_ns: i64, spans: &mut Spans) -> Result<(), ProbeError> {
        self.read();
        let due = self.unflushed + self.pending.len() + 1 >= self.flush_every;
        let end_ns = begin_ns + row.wall_ns;
        let row = self.complete(row, end_ns, due);
        let identities = mem::take(&mut self.identities);
        self.pending.push(EndedStep { row, begin_ns, closed: spans.take_closed(), identities });
        if spans.device.is_some() {
            self.pending.harvest(spans, MOST_BEHIND, hook::now_ns);
        }
        if due || self.pending.len() >= WAITING_STEPS || self.waiting_events() >= WAITING_EVENTS {
            self.settle(spans, MOST_BEHIND);
        }
        // After so many steps, or before what waits takes too much memory.
        let due = due && self.unflushed > 0;
        if due || self.unflushed_lifetimes >= MOST_LIFETIMES { self.flush() } else { Ok(()) }
    }

    /// Files what belongs to no finished step, after the steps before it, and passes it on. Returns the last
    /// allocation that failed in it.
    pub fn add_between(&mut self, next_step: i64, spans: &mut Spans) -> Option<FailedAllocation> {
        self.read();
        self.settle(spans, 0);
        let closed = spans.take_between();
        if let Some(device) = &mut spans.device {
            device.wait(&closed);
        }
        let phases = spans.rows_between(&closed.spans, next_step);
        spans.forget(&closed);
        let identities = mem::take(&mut self.identities);
        let StepAccount { moments, ended, failed, .. } = self.file(None, &identities, spans);
        match self.opened {
            true => self.sink.push_between(BetweenRecords { phases, moments, ended }),
            false => self.lost_unopened = true,
        }
        failed
    }

    /// Closes the run, whose row now says how it ended. Nothing may wait any more.
    pub fn end(&mut self, run: &RunRow) -> Result<(), ProbeError> {
        let open = self.open_lifetimes();
        self.sink.end(run, &open).map_err(ProbeError::Sink)
    }

    /// What is known of a step beside what it did: losses of events, memory beside the account, its own cost. What
    /// takes long to learn is asked after the first step, and where a flush is `due`.
    fn complete(&mut self, row: StepRow, end_ns: i64, due: bool) -> StepRow {
        let Some(memory) = &mut self.memory else { return row };
        let beside = memory.beside(row.step, due || row.step == 0);
        let dropped = memory.hook.dropped() as i64;
        let before = mem::replace(&mut self.findings.dropped_events, dropped);
        StepRow {
            dropped_events: dropped - before,
            rounding_bytes: beside.map(|beside| beside.rounding_bytes),
            cached_bytes: beside.map(|beside| beside.cached_bytes),
            non_torch_bytes: beside.and_then(|beside| beside.non_torch_bytes),
            observer_ns: hook::now_ns() - end_ns
                + mem::take(&mut self.carried_observer_ns)
                + memory.hook.stream.take_relieving_ns(),
            ..row
        }
    }

    fn read(&mut self) {
        if let Some(memory) = &mut self.memory {
            memory.read();
        }
    }

    fn waiting_events(&self) -> usize {
        self.memory.as_ref().map_or(0, Memory::waiting)
    }

    /// Files the steps that wait, in order, and passes them on, but for at most `most_behind` of which the device is not
    /// through yet. What that takes is charged to the last of them.
    fn settle(&mut self, spans: &mut Spans, most_behind: usize) {
        self.pending.harvest(spans, most_behind, hook::now_ns);
        let begin_ns = hook::now_ns();
        let timed = self.pending.take_timed();
        let last = timed.len();
        for (number, TimedStep { mut row, identities, rows, exposed }) in timed.into_iter().enumerate() {
            let account = self.file(Some(row.step), &identities, spans);
            let phases = spans.step_rows(rows, row.step, row.wall_ns, &account.backward);
            row.device_busy_pct = match spans.device {
                Some(_) => exposed.and_then(|parts| kernel_pct(&parts)),
                None => compute_pct(&phases, row.wall_ns),
            };
            row.transfer_ns = exposed.map(|parts| parts.transfer_ns);
            row.sync_ns = exposed.map(|parts| parts.sync_ns);
            row.launch_ns = exposed.map(|parts| parts.launch_ns);
            self.unflushed += 1;
            self.findings.steps += 1;
            self.unflushed_lifetimes += account.ended.len();
            if number + 1 == last {
                row.observer_ns += hook::now_ns() - begin_ns;
            }
            self.sink.push(records(row, phases, account, self.memory.is_some()));
        }
    }

    /// Files the events until the end of `step`, or all there are.
    fn file(&mut self, step: Option<i64>, identities: &[Identity], spans: &Spans) -> StepAccount {
        let Some(memory) = &mut self.memory else { return StepAccount::default() };
        if let Some(room) = self.sink.spent() {
            memory.lend(room);
        }
        let account = memory.file(step, identities, spans);
        self.findings.events += account.events;
        self.findings.unexplained_bytes = self.findings.unexplained_bytes.max(account.difference_bytes);
        account
    }

    fn flush(&mut self) -> Result<(), ProbeError> {
        (self.unflushed, self.unflushed_lifetimes) = (0, 0);
        let begin_ns = hook::now_ns();
        let open = self.open_lifetimes();
        self.sink.flush(&open).map_err(ProbeError::Sink)?;
        self.charge(hook::now_ns() - begin_ns);
        Ok(())
    }

    fn open_lifetimes(&self) -> Vec<AllocationRow> {
        self.memory.as_ref().map(Memory::open).unwrap_or_default()
    }
}

fn keep_last_of_each(identities: &mut Vec<Identity>) {
    identities.sort_by_key(|known| known.id);
    identities.dedup_by(|later, kept| {
        let same = later.id == kept.id;
        if same {
            mem::swap(later, kept);
        }
        same
    });
}

/// A step's records, its row completed by what was made of its spans and events.
fn records(row: StepRow, phases: Vec<PhaseRow>, account: StepAccount, traced: bool) -> StepRecords {
    let StepAccount { moments, ended, events, peak_bytes, peak_phase, difference_bytes, .. } = account;
    let step = StepRow {
        events,
        peak_bytes: traced.then_some(peak_bytes),
        peak_phase,
        difference_bytes: traced.then_some(difference_bytes),
        ..row
    };
    StepRecords { step, phases, moments, ended }
}

#[cfg(test)]
mod tests {
    use super::super::kept::Kept;
    use super::*;
    use crate::ledger::Filing;
    use crate::record::Category;

    #[test]
    fn a_block_has_one_identity_however_often_it_is_looked_up() {
        let mut recorder = Recorder::new(Box::new(Kept::default()), None, 1);
        let known =
            |id, category: Category| Identity { id, filing: Filing::plain(category), name: "w".into() };
        for _ in 0..3 {
            recorder.identify(vec![known(7, Category::Gradient), known(2, Category::Parameter)]);
        }
        recorder.identify(vec![known(2, Category::Buffer)]);
        let kept: Vec<_> =
            recorder.identities.iter().map(|known| (known.id, known.filing.category)).collect();
        assert_eq!(kept, [(2, Category::Buffer), (7, Category::Gradient)]);
    }
}
