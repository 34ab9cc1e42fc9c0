//! A run under instruments, from its first allocation to its last record.

use std::cell::RefCell;
use std::rc::Rc;

use chrono::{DateTime, TimeDelta, Utc};
use tch::nn::VarStore;
use tch::{Device, Tensor};

use super::current::{set_current, unset_current};
use super::error::ProbeError;
use super::hook;
use super::memory::Memory;
use super::opening::opening_row;
use super::options::Options;
use super::recorder::{Findings, Recorder};
use super::spans::Spans;
use super::step::Step;
use super::timing::{Clock, CudaClock, load_cuda};
use super::watched::{self, Watched};
use crate::record::{Detail, FailedAllocation, Phase, RunRow, RunStatus, Sink, StepRow};

/// Watches one training loop. Start it before the model is built, so that the model's own memory is seen.
///
/// One at a time in a process while memory is traced: libtorch has one CPU allocator.
pub struct Probe {
    run: RunRow,
    warmup: i64,
    epoch_ns: i64,
    pub(super) spans: Rc<RefCell<Spans>>,
    watched: Watched,
    recorder: Recorder,
    next_step: i64,
    ended: bool,
}

impl Probe {
    /// Turns the instruments on; the records will go to `sink`.
    ///
    /// On a GPU this comes before anything that asks libtorch about CUDA, `tch::manual_seed` included: libtorch looks for
    /// its CUDA half once, and tch does not load it. Here it is loaded and made ready; where something must come before
    /// the probe, [`load_cuda`] comes before that.
    pub fn start(options: Options, sink: impl Sink + 'static) -> Result<Self, ProbeError> {
        hook::check_libtorch()?;
        let device = device_clock(options.device)?;
        let (memory, epoch_ns) = Memory::start(&options)?;
        let hook = memory.as_ref().map(|memory| memory.hook.clone());
        let probe = Probe {
            run: opening_row(&options, memory.as_ref().map(|memory| memory.ns_per_event)),
            warmup: options.warmup,
            epoch_ns,
            spans: Rc::new(RefCell::new(Spans::new(hook, device, epoch_ns))),
            watched: Watched::default(),
            recorder: Recorder::new(Box::new(sink), memory, options.flush_every),
            next_step: 0,
            ended: false,
        };
        set_current(probe.spans.clone());
        Ok(probe)
    }

    /// Opens the run in the sink, now that all is known of it. The first step does this by itself; call it
    /// before to hear of trouble sooner.
    pub fn open(&mut self) -> Result<(), ProbeError> {
        self.recorder.open(&self.run)
    }

    /// Learns the variables of a store: their blocks are parameters or buffers, their `.grad`s gradients.
    pub fn watch(&mut self, store: &VarStore) {
        self.watched.add(store);
        self.run.parameters = self.watched.parameters();
    }

    /// Learns what there is of a model that could not be built to its end: how many parameters it has is not known.
    pub(crate) fn watch_part(&mut self, store: &VarStore) {
        self.watched.add(store);
    }

    /// Learns tensors that belong to a module without being trained, and are in no store.
    pub fn watch_buffers(&mut self, buffers: &[(String, Tensor)]) {
        self.watched.add_buffers(buffers);
    }

    /// Learns the optimizer's tensors, each with the name of the variable it belongs to. They are
    /// `adam_state` without that too, by their lifetime; this gives them names, and a finer word to those that
    /// have one. Call it once they are there.
    pub fn watch_states<'a>(
        &mut self,
        states: impl IntoIterator<Item = (&'a str, &'a Tensor)>,
        detail: Option<Detail>,
    ) -> Result<(), ProbeError> {
        if self.recorder.traces_memory() {
            self.recorder.identify(watched::states(states, detail)?);
        }
        Ok(())
    }

    /// Runs a pass without training between two steps, as a phase of its own: it is timed, and its memory is
    /// accounted for, but neither is any step's.
    ///
    /// # Errors
    /// When the records cannot be kept. The work has been done all the same.
    pub fn validation<T>(&mut self, work: impl FnOnce() -> T) -> Result<T, ProbeError> {
        let opened = self.open();
        let depth = {
            let mut spans = self.spans.borrow_mut();
            spans.begin_between();
            spans.enter_phase(Phase::Validation)
        };
        let made = in_phase(&self.spans, Phase::Validation, depth, work);
        let identified = self.identify_meanwhile();
        self.file_between();
        opened.and(identified).map(|()| made)
    }

    /// The run's id, which is also its folder's name.
    pub fn run_id(&self) -> &str {
        &self.run.run_id
    }

    /// Begins the next step. It is recorded by [`Step::finish`]; a step that is dropped before is not.
    pub fn step(&mut self) -> Step<'_> {
        let outcome = self.open();
        let step = self.next_step;
        let begin_ns = self.spans.borrow_mut().begin_step(step);
        Step::new(self, step, begin_ns, outcome)
    }

    /// Ends the run well.
    pub fn finish(self) -> Result<RunRow, ProbeError> {
        self.finish_as(RunStatus::Complete, None)
    }

    /// Ends the run as `status`, for this reason.
    pub fn finish_as(mut self, status: RunStatus, reason: Option<String>) -> Result<RunRow, ProbeError> {
        self.end(status, reason)?;
        Ok(self.run.clone())
    }

    /// Looks up which blocks are variables, gradients and libraries' workspaces at this instant.
    pub(super) fn identify(&mut self) -> Result<(), ProbeError> {
        if self.recorder.traces_memory() {
            self.recorder.identify(self.watched.identities()?);
            self.recorder.identify(watched::library_workspaces()?);
        }
        Ok(())
    }

    /// The same where the loop goes on right after, in its own time: that is told as the observer's.
    pub(super) fn identify_meanwhile(&mut self) -> Result<(), ProbeError> {
        let begin_ns = hook::now_ns();
        let identified = self.identify();
        self.recorder.charge(hook::now_ns() - begin_ns);
        identified
    }

    /// Takes note that a step was left before its end. Nothing else gets its number: what is known of it has that.
    pub(super) fn leave_step(&mut self, step: i64) {
        self.spans.borrow_mut().leave_step(step);
        self.next_step = step + 1;
        // Without the gradients' names what is left of the step is still filed, by lifetime.
        let _ = self.identify();
        self.run.out_of_memory = self.file_between();
    }

    /// Files what belongs to no finished step; returns the last allocation that failed in it.
    fn file_between(&mut self) -> Option<FailedAllocation> {
        self.recorder.add_between(self.next_step, &mut self.spans.borrow_mut())
    }

    /// Records a step that has just ended. One whose gradients cannot be named is left instead: its account would be wrong.
    pub(super) fn record(&mut self, ended: EndedStep) -> Result<(), ProbeError> {
        if let Err(error) = self.identify() {
            self.leave_step(ended.step);
            return Err(error);
        }
        let row = StepRow {
            step: ended.step,
            warmup: ended.step < self.warmup,
            started_at: self.instant(ended.begin_ns),
            wall_ns: ended.end_ns - ended.begin_ns,
            loss: ended.loss,
            tokens: ended.tokens,
            ..StepRow::default()
        };
        self.next_step = ended.step + 1;
        self.recorder.add(row, ended.begin_ns, &mut self.spans.borrow_mut())
    }

    fn end(&mut self, status: RunStatus, reason: Option<String>) -> Result<(), ProbeError> {
        self.ended = true;
        unset_current(&self.spans);
        self.spans.borrow_mut().release_hook();
        // A run that failed before it began leaves nothing behind; one whose model did not fit is a result.
        if matches!(status, RunStatus::Complete | RunStatus::OutOfMemory) {
            self.open()?;
        }
        if !self.recorder.is_open() {
            return Ok(());
        }
        // A model whose building did not fit has been in no step yet. Without names it is filed all the same.
        let _ = self.identify();
        let failed = self.file_between();
        let Findings { steps, events, dropped_events, unexplained_bytes } = self.recorder.findings();
        self.run.steps = Some(steps);
        (self.run.events, self.run.dropped_events) = (events, dropped_events);
        // A run that is ended by something else has got over it.
        self.run.out_of_memory =
            failed.or(self.run.out_of_memory.take()).filter(|_| status == RunStatus::OutOfMemory);
        self.run.status = status;
        self.run.reason = reason;
        self.run.finished_at = Some(Utc::now());
        if let Some(device) = &self.spans.borrow().device {
            self.run.missing.extend(device.missing());
        }
        self.run.missing.extend(self.recorder.missing());
        if dropped_events > 0 {
            self.run.missing.push(format!(
                "allocations: {dropped_events} events did not fit the buffer and were dropped"
            ));
        }
        if unexplained_bytes > 0 {
            self.run.missing.push(format!(
                "allocations: up to {unexplained_bytes} bytes of the allocator's total are unattributed"
            ));
        }
        self.recorder.end(&self.run)
    }

    fn instant(&self, at_ns: i64) -> DateTime<Utc> {
        self.run.started_at + TimeDelta::nanoseconds(at_ns - self.epoch_ns)
    }
}

impl Drop for Probe {
    /// A loop that was left early, by an error or a panic, still leaves what it recorded.
    fn drop(&mut self) {
        if !self.ended {
            let reason = "the program left the loop without finishing the run".to_owned();
            let status = match self.run.out_of_memory {
                Some(_) => RunStatus::OutOfMemory,
                None => RunStatus::Failed,
            };
            // There is nobody left to tell; the run's row then still says `running`.
            let _ = self.end(status, Some(reason));
        }
    }
}

/// What is known of a step when its last instant has been taken.
pub(super) struct EndedStep {
    pub step: i64,
    pub begin_ns: i64,
    pub end_ns: i64,
    pub loss: Option<f64>,
    pub tokens: Option<i64>,
}

/// Runs `work` as `phase`, which has just been entered, and leaves it however the work ends, by a panic too.
pub(super) fn in_phase<T>(spans: &RefCell<Spans>, phase: Phase, depth: usize, work: impl FnOnce() -> T) -> T {
    struct Leave<'a>(&'a RefCell<Spans>, Phase, usize);
    impl Drop for Leave<'_> {
        fn drop(&mut self) {
            self.0.borrow_mut().leave_phase(self.1, self.2);
        }
    }
    let _leave = Leave(spans, phase, depth);
    work()
}

fn device_clock(device: Device) -> Result<Option<Box<dyn Clock>>, ProbeError> {
    match device {
        Device::Cuda(ordinal) => {
            load_cuda()?;
            hook::init_cuda()?;
            Ok(Some(Box::new(CudaClock::new(ordinal as i32)?)))
        }
        _ => Ok(None),
    }
}
