//! A GPU's own clock: CUDA events on the stream that libtorch works on. Tested against a double of the driver, never
//! yet run on a card.

mod anchors;
#[cfg(test)]
pub mod double;
mod error;
mod facts;
mod load;
mod no_gpu;
mod nvml;
mod patience;
mod stamps;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod timeline_tests;
mod trouble;
#[cfg(test)]
mod trouble_tests;

use std::rc::Rc;
use std::time::Duration;

use self::anchors::Anchors;
use self::patience::{Progress, until};
use self::stamps::{Stamps, Taken};
use self::trouble::Trouble;
use super::super::hook::{self, HookError};
use super::clock::{Clock, Stamp};
use crate::device::{Context, DriverError, Event, Relaxed, Stream, is_capturing};

pub use error::CudaError;
pub use facts::device_facts;
pub use load::{CudaHalfError, load_cuda};
pub use no_gpu::why_no_gpu;

/// How long the device may take from one event to the next. A hung one must not hang the run's end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Tells which stream is to be timed, at each stamp anew.
type CurrentStream = Box<dyn FnMut() -> Result<Stream, HookError>>;

/// Tells the time on the host's clock.
type Now = Box<dyn Fn() -> i64>;

/// Times by CUDA events, recorded on libtorch's current stream of one device.
pub struct CudaClock {
    taken: Stamps,
    anchors: Anchors,
    spare: Vec<Event>,
    stream: CurrentStream,
    now: Now,
    patience: Duration,
    /// The step in progress; `None` before the first.
    step: Option<i64>,
    /// The step whose times are being read: the device is a few behind.
    read: Option<i64>,
    trouble: Option<Trouble>,
    /// Nothing more is to be learnt of what the device does: it could not be asked, or it hangs.
    lost: bool,
    captured: bool,
    across_streams: bool,
    /// A stamp was too far from the last anchor.
    adrift: bool,
    /// Last, since the events must go first.
    context: Context,
}

impl CudaClock {
    /// A clock for the device with this number, on the stream that libtorch names there. Waits for the device, once:
    /// an instant must be known at which it was idle.
    pub fn new(ordinal: i32) -> Result<Self, CudaError> {
        Self::on(ordinal, Box::new(move || hook::current_stream(ordinal)), Box::new(hook::now_ns), PATIENCE)
    }

    /// The same with the stream named by `stream` and the time told by `now`.
    fn on(ordinal: i32, stream: CurrentStream, now: Now, patience: Duration) -> Result<Self, CudaError> {
        Event::can_be_timed().map_err(DriverError::from)?;
        let mut clock = CudaClock {
            taken: Stamps::default(),
            anchors: Anchors::default(),
            spare: Vec::new(),
            stream,
            now,
            patience,
            step: None,
            read: None,
            trouble: None,
            lost: false,
            captured: false,
            across_streams: false,
            adrift: false,
            context: Context::of(ordinal)?,
        };
        clock.first_anchor()?;
        Ok(clock)
    }

    /// Waits until the device has nothing to do, and takes that instant on both clocks.
    fn first_anchor(&mut self) -> Result<(), CudaError> {
        let _entered = self.context.enter()?;
        let stream = (self.stream)()?;
        let (event, relaxed) = (Event::create()?, Relaxed::begin()?);
        let ask = || Ok(if event.is_done(&relaxed)? { Progress::Done } else { Progress::None });
        let mut host_ns = 0;
        // What was there before the run is waited for the first time; the second time the device is idle.
        for _ in 0..2 {
            host_ns = (self.now)();
            // SAFETY: libtorch has just named this stream.
            unsafe { event.record(stream)? };
            if !until::<CudaError>(self.patience, ask)? {
                return Err(CudaError::Hung(self.patience));
            }
        }
        self.anchors.add(Rc::new(event), host_ns);
        Ok(())
    }

    /// `None` while a graph is captured: an event in it would take no time until the graph is launched.
    fn record(&mut self, host_ns: i64) -> Result<Option<Stamp>, CudaError> {
        let _entered = self.context.enter()?;
        let stream = (self.stream)()?;
        // SAFETY: libtorch has just named this stream.
        if unsafe { is_capturing(stream)? } {
            self.captured = true;
            return Ok(None);
        }
        self.freshen(host_ns)?;
        let event = self.spare.pop().map_or_else(Event::create, Ok)?;
        // SAFETY: as above.
        unsafe { event.record(stream)? };
        let anchor = self.anchors.newest();
        Ok(Some(self.taken.push(Taken { event: Rc::new(event), stream, host_ns, anchor })))
    }

    /// Where the last anchor is old and nobody says that the host has waited: if the device has got to the newest stamp
    /// already, and that was asked for just now, it did so then. Just now is by the clock after the answer: since `host_ns`
    /// the driver has been called, and the probe may have moved a buffer of events.
    fn freshen(&mut self, host_ns: i64) -> Result<(), DriverError> {
        let Some(last) = self.taken.newest() else { return Ok(()) };
        let gains =
            self.anchors.would_gain(last.host_ns, host_ns) && last.event.is_done(&Relaxed::begin()?)?;
        if gains && Anchors::are_close(last.host_ns, (self.now)()) {
            self.anchors.add(last.event.clone(), last.host_ns);
        }
        Ok(())
    }

    fn ask(&mut self, last: Stamp) -> Result<bool, DriverError> {
        let _entered = self.context.enter()?;
        let reached = self.taken.ask(last, &Relaxed::begin()?)?;
        if reached {
            self.taken.set_reached(last);
        }
        Ok(reached)
    }

    /// The same, and where it has not whether it has got any further since.
    fn progress(&mut self, last: Stamp) -> Result<Progress, DriverError> {
        if self.ask(last)? {
            return Ok(Progress::Done);
        }
        let _entered = self.context.enter()?;
        Ok(if self.taken.advance(&Relaxed::begin()?)? { Progress::Some } else { Progress::None })
    }

    fn read(&mut self, begin: Stamp, end: Stamp) -> Result<Option<i64>, DriverError> {
        let Some((begin, end)) = self.taken.get(begin).zip(self.taken.get(end)) else { return Ok(None) };
        let across_streams = begin.stream != end.stream;
        let _entered = self.context.enter()?;
        let ns = begin.event.elapsed_ns(&end.event)?;
        self.across_streams |= across_streams;
        // Two streams need not have got to their events in the order in which they were recorded.
        Ok((ns >= 0).then_some(ns))
    }

    fn read_host(&mut self, stamp: Stamp) -> Result<Option<i64>, DriverError> {
        let Some(taken) = self.taken.get(stamp) else { return Ok(None) };
        let Some(anchor) = self.anchors.get(taken.anchor) else { return Ok(None) };
        if anchor.is_stale(taken.host_ns) {
            self.adrift = true;
            return Ok(None);
        }
        let _entered = self.context.enter()?;
        let since_ns = anchor.event.elapsed_ns(&taken.event)?;
        Ok(Some((anchor.host_ns + since_ns).max(taken.host_ns)))
    }

    /// Keeps the first failure, and the earliest step that one has cost its times.
    fn note<T>(&mut self, outcome: Result<T, impl Into<CudaError>>) -> Option<T> {
        let step = self.read.or(self.step);
        let outcome = outcome.map_err(|error| Trouble::new(error.into(), step));
        outcome.map_err(|trouble| self.trouble.get_or_insert(trouble).reaches(step)).ok()
    }

    /// The same of what reads the device.
    fn note_reading<T>(&mut self, outcome: Result<T, impl Into<CudaError>>) -> Option<T> {
        self.lost |= outcome.is_err();
        self.note(outcome)
    }

    fn reuse(&mut self, event: Rc<Event>) {
        // While an anchor has it too, it is the anchor that gives it back.
        self.spare.extend(Rc::try_unwrap(event).ok());
    }
}

impl Clock for CudaClock {
    fn begin_step(&mut self, step: i64) {
        self.step = Some(step);
    }

    fn read_step(&mut self, step: Option<i64>) {
        self.read = step;
    }

    fn stamp(&mut self, host_ns: i64) -> Option<Stamp> {
        if self.trouble.is_some() {
            return None;
        }
        let outcome = self.record(host_ns);
        self.note(outcome).flatten()
    }

    fn pin(&mut self, begin: Stamp, end: Stamp) {
        // If the device had not even got to where the waiting began, that was no waiting for it.
        if self.taken.get(end).is_none() || !self.reached(begin) {
            return;
        }
        let idle = self.taken.get(end).map(|taken| (taken.event.clone(), taken.host_ns));
        if let Some((event, host_ns)) = idle {
            self.anchors.add(event, host_ns);
        }
    }

    fn reached(&mut self, last: Stamp) -> bool {
        let outcome = self.ask(last);
        // A clock that fails will never say more.
        self.note_reading(outcome).unwrap_or_else(|| {
            self.taken.set_reached(last);
            true
        })
    }

    fn wait(&mut self, last: Stamp) {
        // What was stamped before a stamp failed is reached all the same.
        let patience = if self.lost { Duration::ZERO } else { self.patience };
        let done = until(patience, || self.progress(last));
        if self.note_reading(done) == Some(false) {
            self.note_reading(Err::<(), _>(CudaError::Hung(patience)));
        }
    }

    fn elapsed_ns(&mut self, begin: Stamp, end: Stamp) -> Option<i64> {
        let outcome = self.read(begin, end);
        self.note_reading(outcome).flatten()
    }

    fn host_ns(&mut self, stamp: Stamp) -> Option<i64> {
        let outcome = self.read_host(stamp);
        self.note_reading(outcome).flatten()
    }

    fn same_stream(&self, a: Stamp, b: Stamp) -> bool {
        self.taken.get(a).zip(self.taken.get(b)).is_some_and(|(a, b)| a.stream == b.stream)
    }

    fn forget(&mut self, last: Stamp) {
        for event in self.taken.forget(last) {
            self.reuse(event);
        }
        let needed = self.taken.oldest().map(|taken| taken.anchor);
        for event in self.anchors.forget_before(needed) {
            self.reuse(event);
        }
    }

    fn missing(&self) -> Vec<String> {
        let captured =
            "device_ns: nothing is recorded while a CUDA graph is captured; what ran then has none";
        let across = "device_ns: some spans began on one stream and ended on another: theirs goes from the one event to the other";
        let adrift = "lead_ns, transfer_ns, sync_ns, launch_ns, device_busy_pct: null where the host had not been seen to \
                      find the device idle for over a minute; probe::waiting() marks where it waits";
        let remarks = [(self.captured, captured), (self.across_streams, across), (self.adrift, adrift)];
        let remarks = remarks.iter().filter(|(so, _)| *so).map(|(_, remark)| (*remark).to_owned());
        self.trouble.iter().map(Trouble::to_string).chain(remarks).collect()
    }
}

impl Drop for CudaClock {
    fn drop(&mut self) {
        let _entered = self.context.enter();
        self.taken.clear();
        self.anchors.clear();
        self.spare.clear();
    }
}
