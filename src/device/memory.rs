//! What the measurements take from CUDA's driver for themselves: memory and events.

use std::sync::Arc;

use cudarc::driver::{result, sys};

use super::elapsed::elapsed_ms;
use super::error::DeviceError;
use super::gpu::Gpu;

/// A part of a GPU's memory, all zeros at first.
#[derive(Debug)]
pub struct Buffer {
    gpu: Arc<Gpu>,
    pub address: sys::CUdeviceptr,
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
        // SAFETY: plain numbers in, an address out, which is freed in `drop`.
        let address = unsafe { result::malloc_sync(bytes) }
            .map_err(DeviceError::driver("taking memory to measure with"))?;
        let buffer = Buffer { gpu: gpu.clone(), address, bytes };
        // SAFETY: the memory is that of the call above.
        unsafe { result::memset_d8_sync(address, 0, bytes) }
            .map_err(DeviceError::driver("setting memory to zero"))?;
        Ok(buffer)
    }

    /// Writes these numbers again and again, from the first place to the last.
    pub fn fill(&self, pattern: &[f32]) -> Result<(), DeviceError> {
        let _entered = self.gpu.enter()?;
        for (place, length) in self.stretches(pattern.len()) {
            // SAFETY: a stretch lies within the memory, and is as long as what is copied.
            unsafe { result::memcpy_htod_sync(self.at(place), &pattern[..length]) }
                .map_err(DeviceError::driver("writing what to measure with"))?;
        }
        Ok(())
    }

    /// The first place that does not hold what filling with `pattern` writes there, bit for bit.
    pub fn wrong(&self, pattern: &[f32]) -> Result<Option<Wrong>, DeviceError> {
        let _entered = self.gpu.enter()?;
        let mut found = vec![0.0; pattern.len()];
        for (place, length) in self.stretches(pattern.len()) {
            // SAFETY: as in `fill`.
            unsafe { result::memcpy_dtoh_sync(&mut found[..length], self.at(place)) }
                .map_err(DeviceError::driver("reading a kernel's results"))?;
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

    fn at(&self, place: usize) -> sys::CUdeviceptr {
        self.address + (place * size_of::<f32>()) as sys::CUdeviceptr
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
            let _ = unsafe { result::free_sync(self.address) };
        }
    }
}

/// A pair of events around work on the null stream.
#[derive(Debug)]
pub struct Stopwatch {
    gpu: Arc<Gpu>,
    begin: sys::CUevent,
    end: sys::CUevent,
}

impl Stopwatch {
    pub fn new(gpu: &Arc<Gpu>) -> Result<Stopwatch, DeviceError> {
        let _entered = gpu.enter()?;
        let event = || {
            // The default flags: with timing.
            result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT)
                .map_err(DeviceError::driver("making an event"))
        };
        Ok(Stopwatch { gpu: gpu.clone(), begin: event()?, end: event()? })
    }

    /// Milliseconds that the GPU spends on what `work` queues on the null stream. Waits for it.
    pub fn ms(&self, work: impl FnOnce() -> Result<(), DeviceError>) -> Result<f64, DeviceError> {
        let _entered = self.gpu.enter()?;
        self.record(self.begin)?;
        work()?;
        self.record(self.end)?;
        // SAFETY: both events are alive and have been recorded.
        let ms =
            unsafe { result::event::synchronize(self.end).and_then(|()| elapsed_ms(self.begin, self.end)) };
        ms.map(f64::from).map_err(DeviceError::driver("reading an event"))
    }

    fn record(&self, event: sys::CUevent) -> Result<(), DeviceError> {
        // SAFETY: the event is alive, in the context that has been entered.
        unsafe { result::event::record(event, result::stream::null()) }
            .map_err(DeviceError::driver("recording an event"))
    }
}

impl Drop for Stopwatch {
    fn drop(&mut self) {
        if let Ok(_entered) = self.gpu.enter() {
            for event in [self.begin, self.end] {
                // SAFETY: made by `new` and not used again. A failure here has nobody to go to.
                let _ = unsafe { result::event::destroy(event) };
            }
        }
    }
}
