//! Event times against work whose length the host has measured, and the stream that the events are recorded on.

use std::ffi::c_void;

use libloading::os::unix::Library;
use stepledger::probe::{Options, Probe};
use stepledger::record::{Phase, SpanKind, Trace};
use stepledger::stats::median;
use tch::Device;

use super::Outcome;
use super::common::MemorySink;
use super::row::Row;
use super::work::Chain;

const ROUNDS: usize = 5;
/// Long against the microseconds that a launch and an event take.
const WORK_MS: f64 = 40.0;
/// Clocks of card and host agree to parts in a million; the host's figure has a launch and a copy of a number in it.
const NEAR: (f64, f64) = (0.97, 1.03);

/// A phase takes as long by its events as by the host's clock, and twice the work twice as long.
pub fn times(device: Device) -> Outcome<Vec<Row>> {
    let Device::Cuda(_) = device else { return Ok(vec![Row::not_run("clock", "a CPU has no events")]) };
    let mut chain = Chain::lasting(device, WORK_MS)?;
    let (once, host) = (events_ms(&chain, device)?, host_ms(&chain)?);
    chain.length *= 2;
    let twice = events_ms(&chain, device)?;
    Ok(vec![
        Row::within("clock: events / host's clock", once / host, NEAR, ""),
        Row::within("clock: twice the work", twice / once, (1.94, 2.06), ""),
    ])
}

/// The same on a stream of our own that is libtorch's current one: events on another stream would not see the work.
pub fn stream(device: Device) -> Outcome<Vec<Row>> {
    let Device::Cuda(ordinal) = device else {
        return Ok(vec![Row::not_run("stream", "a CPU has no streams")]);
    };
    let chain = Chain::lasting(device, WORK_MS)?;
    let _current = OtherStream::enter(ordinal as i32)?;
    let (events, host) = (events_ms(&chain, device)?, host_ms(&chain)?);
    Ok(vec![Row::within("stream: events on the current one / host's clock", events / host, NEAR, "")])
}

fn host_ms(chain: &Chain) -> Outcome<f64> {
    let times: Vec<f64> = (0..ROUNDS).map(|_| chain.host_ms()).collect::<Outcome<_>>()?;
    Ok(median(&times).unwrap_or(f64::NAN))
}

/// The work as the forward phase of steps under a probe, by the device's clock.
fn events_ms(chain: &Chain, device: Device) -> Outcome<f64> {
    let sink = MemorySink::default();
    let options = Options::new("device_checks").trace(Trace::Phases).device(device);
    let mut probe = Probe::start(options, sink.clone())?;
    for _ in 0..ROUNDS {
        chain.wait()?;
        let mut step = probe.step();
        step.forward(|| chain.queue())?;
        chain.wait()?;
        step.finish(None, None)?;
    }
    probe.finish()?;
    let kept = sink.0.borrow();
    let rows = kept.steps.iter().flat_map(|records| &records.phases);
    let forward = rows.filter(|row| row.kind == SpanKind::Phase && row.phase == Phase::Forward);
    let times: Vec<f64> = forward.filter_map(|row| row.device_ns).map(|ns| ns as f64 / 1e6).collect();
    median(&times).ok_or_else(|| "no phase has a device_ns".into())
}

/// A stream that is not the default one, as libtorch's current stream; there is no way to it in tch, but one in libtorch's
/// stable C interface.
struct OtherStream {
    libtorch: Library,
    guard: *mut c_void,
}

type CreateStream = unsafe extern "C" fn(*mut *mut c_void, u32) -> i32;
type Create = unsafe extern "C" fn(*mut c_void, i32, *mut *mut c_void) -> i32;
type Delete = unsafe extern "C" fn(*mut c_void) -> i32;

impl OtherStream {
    fn enter(ordinal: i32) -> Outcome<OtherStream> {
        let stream = other_stream()?;
        // SAFETY: loaded already; this counts it once more.
        let libtorch = unsafe { Library::new("libtorch_cuda.so")? };
        let mut guard = std::ptr::null_mut();
        // SAFETY: declared so in torch/csrc/inductor/aoti_torch/c/shim.h; the stream is never destroyed.
        let code = unsafe {
            let create = libtorch.get::<Create>(b"aoti_torch_create_cuda_stream_guard\0")?;
            create(stream, ordinal, &raw mut guard)
        };
        if code == 0 {
            Ok(OtherStream { libtorch, guard })
        } else {
            Err("the current stream cannot be changed".into())
        }
    }
}

/// One that does not wait for the default stream, of the driver that libtorch works with.
fn other_stream() -> Outcome<*mut c_void> {
    const NON_BLOCKING: u32 = 1;
    // SAFETY: loaded already; this counts it once more.
    let driver = unsafe { Library::new("libcuda.so.1")? };
    let mut stream = std::ptr::null_mut();
    // SAFETY: cuda.h declares it so; writes one pointer to a place of ours.
    let code = unsafe { driver.get::<CreateStream>(b"cuStreamCreate\0")?(&raw mut stream, NON_BLOCKING) };
    if code == 0 { Ok(stream) } else { Err(format!("cuStreamCreate: code {code}").into()) }
}

impl Drop for OtherStream {
    fn drop(&mut self) {
        // SAFETY: the counterpart of `enter`. A failure here has nobody to go to.
        if let Ok(delete) = unsafe { self.libtorch.get::<Delete>(b"aoti_torch_delete_cuda_stream_guard\0") } {
            // SAFETY: as above.
            unsafe { delete(self.guard) };
        }
    }
}
