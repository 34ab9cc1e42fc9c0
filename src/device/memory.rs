//! What the measurements take from CUDA's driver for themselves: memory and events.

use std::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;

use super::driver::{DriverError, Entered, Event, MEM_ALLOC, MEM_FREE, MEM_SET, MEM_TO_DEVICE, MEM_TO_HOST};
use super::error::DeviceError;
use super::gpu::Gpu;

/// A part of a GPU's memory, all zeros at first.
#[derive(Debug)]
pub struct Buffer {
    gpu: Arc<Gpu>,
    pub address: CUdeviceptr,
    bytes: usize,
}

/// A place, counted in f32, that does not hold what it should.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wrong {
    pub place: usize,
    pub found: f32,
    pub expected: f32,
}

impl Buffer {
    pub fn zeros(gpu: &Arc<Gpu>, bytes: usize) -> Result<Buffer, DeviceError> {
        let _entered = gpu.enter()?;
        let mut address = 0;
        // SAFETY: writes an address to a place of ours, whose memory is freed in `drop`.
        let taken = MEM_ALLOC.call(|take| unsafe { take(&raw mut address, bytes) });
        taken.map_err(DeviceError::driver("taking memory to measure with"))?;
        let buffer = Buffer { gpu: gpu.clone(), address, bytes };
        // SAFETY: the memory is that of the call above.
        let set = MEM_SET.call(|set| unsafe { set(address, 0, bytes) });
        set.map_err(DeviceError::driver("setting memory to zero"))?;
        Ok(buffer)
    }

    /// Writes these numbers again and again, from the first place to the last.
    pub fn fill(&self, pattern: &[f32]) -> Result<(), DeviceError> {
        let _entered = self.gpu.enter()?;
        for (place, length) in self.stretches(pattern.len()) {
            let (to, from) = (self.at(place), &pattern[..length]);
            // SAFETY: a stretch lies within the memory, and is as long as what is copied.
            let written =
                MEM_TO_DEVICE.call(|copy| unsafe { copy(to, from.as_ptr().cast(), size_of_val(from)) });
            written.map_err(DeviceError::driver("writing what to measure with"))?;
        }
        Ok(())
    }

    /// The first place that does not hold what filling with `pattern` writes there, bit for bit.
    pub fn wrong(&self, pattern: &[f32]) -> Result<Option<Wrong>, DeviceError> {
        let _entered = self.gpu.enter()?;
        let mut found = vec![0.0; pattern.len()];
        for (place, length) in self.stretches(pattern.len()) {
            let (to, from) = (&mut found[..length], self.at(place));
            // SAFETY: as in `fill`.
            let read =
                MEM_TO_HOST.call(|copy| unsafe { copy(to.as_mut_ptr().cast(), from, size_of_val(to)) });
            read.map_err(DeviceError::driver("reading a kernel's results"))?;
            if let Some(wrong) = first_wrong(&found[..length], pattern) {
                return Ok(Some(Wrong { place: place + wrong.place, ..wrong }));
            }
        }
        Ok(None)
    }

    /// Places and lengths that cover it, each as long as the pattern but for the last.
    fn stretches(&self, pattern: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let all = self.bytes / size_of::<f32>();
        (0..all).step_by(pattern.max(1)).map(move |place| (place, pattern.min(all - place)))
    }

    fn at(&self, place: usize) -> CUdeviceptr {
        self.address + (place * size_of::<f32>()) as CUdeviceptr
    }
}

fn first_wrong(found: &[f32], expected: &[f32]) -> Option<Wrong> {
    let pairs = found.iter().zip(expected).enumerate();
    let mut wrong = pairs.filter(|(_, (found, expected))| found.to_bits() != expected.to_bits());
    wrong.next().map(|(place, (&found, &expected))| Wrong { place, found, expected })
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Ok(_entered) = self.gpu.enter() {
            // SAFETY: taken by `zeros` and not used again. A failure here has nobody to go to.
            let _ = MEM_FREE.call(|free| unsafe { free(self.address) });
        }
    }
}

/// A pair of events around work on the null stream, in the GPU's context, which is this thread's meanwhile.
#[derive(Debug)]
pub struct Stopwatch {
    begin: Event,
    end: Event,
    /// Left when the events are gone, and before the context may be.
    _entered: Entered,
    _gpu: Arc<Gpu>,
}

impl Stopwatch {
    pub fn new(gpu: &Arc<Gpu>) -> Result<Stopwatch, DeviceError> {
        let entered = gpu.enter()?;
        let event = || Event::create().map_err(DeviceError::driver("making an event"));
        Ok(Stopwatch { begin: event()?, end: event()?, _entered: entered, _gpu: gpu.clone() })
    }

    /// Milliseconds that the GPU spends on what `work` queues on the null stream. Waits for it.
    pub fn ms(&self, work: impl FnOnce() -> Result<(), DeviceError>) -> Result<f64, DeviceError> {
        record(&self.begin)?;
        work()?;
        record(&self.end)?;
        self.read().map_err(DeviceError::driver("reading an event"))
    }

    fn read(&self) -> Result<f64, DriverError> {
        self.end.synchronize()?;
        self.begin.elapsed_ms(&self.end).map(f64::from)
    }
}

fn record(event: &Event) -> Result<(), DeviceError> {
    // SAFETY: the null stream is one of any context.
    unsafe { event.record(std::ptr::null_mut()) }.map_err(DeviceError::driver("recording an event"))
}
