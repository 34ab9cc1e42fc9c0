//! What the driver says of a device.

use std::fmt::Display;

use super::{CudaError, nvml};
use crate::device::{Context, DriverError, Version, driver_cuda};
use crate::record::DeviceFacts;

/// The facts of the device with this number, as far as anyone tells them, and what is missing of them.
pub fn device_facts(ordinal: i32) -> Result<(DeviceFacts, Vec<String>), CudaError> {
    let context = Context::of(ordinal)?;
    let entered = context.enter()?;
    let device = context.device();
    let memory = entered.memory();
    let nvml = nvml::ask(device.pci_bus_id());
    let mut untold = Untold::default();
    let facts = DeviceFacts {
        device_name: untold.unless("device_name", device.name()),
        compute_capability: untold.unless("compute_capability", device.compute_capability().map(dotted)),
        multiprocessors: untold.unless("multiprocessors", device.multiprocessors().map(i64::from)),
        device_memory_bytes: untold.unless("device_memory_bytes", told(&memory, |(_, all)| all as i64)),
        device_free_bytes: untold.unless("device_free_bytes", told(&memory, |(free, _)| free as i64)),
        driver_version: untold.unless("driver_version", nvml.driver_version),
        cuda_driver_version: untold.unless("cuda_driver_version", driver_cuda().map(|cuda| cuda.to_string())),
        cuda_runtime_version: untold.unless("cuda_runtime_version", runtime_version()),
        sm_clock_mhz: untold.unless("sm_clock_mhz", nvml.sm_clock_mhz),
        memory_clock_mhz: untold.unless("memory_clock_mhz", nvml.memory_clock_mhz),
        power_w: untold.unless("power_w", nvml.power_w),
        power_limit_w: untold.unless("power_limit_w", nvml.power_limit_w),
        allocator_settings: allocator_settings(),
    };
    Ok((facts, untold.lines()))
}

/// The columns that have nothing, by why that is.
#[derive(Default)]
struct Untold(Vec<(String, Vec<&'static str>)>);

impl Untold {
    /// What a column gets, noted where that is nothing.
    fn unless<T>(&mut self, column: &'static str, told: Result<T, impl Display>) -> Option<T> {
        let why = match told {
            Ok(told) => return Some(told),
            Err(why) => why.to_string(),
        };
        match self.0.iter_mut().find(|(known, _)| *known == why) {
            Some((_, columns)) => columns.push(column),
            None => self.0.push((why, vec![column])),
        }
        None
    }

    fn lines(self) -> Vec<String> {
        self.0.into_iter().map(|(why, columns)| format!("{}: {why}", columns.join(", "))).collect()
    }
}

/// One of several facts that were told together.
fn told<A: Copy, T>(all: &Result<A, DriverError>, one: impl Fn(A) -> T) -> Result<T, &DriverError> {
    all.as_ref().map(|&all| one(all))
}

fn dotted((major, minor): (i32, i32)) -> String {
    format!("{major}.{minor}")
}

/// Asks the CUDA runtime that this process has loaded with libtorch, whatever the name of its library; none is loaded for it.
fn runtime_version() -> Result<String, String> {
    use libloading::os::unix::Library;
    type Ask = unsafe extern "C" fn(*mut i32) -> i32;
    let mut version = 0;
    // SAFETY: the runtime declares it so; it writes one number to a place of ours.
    let code = unsafe {
        let everything = Library::this();
        let ask = everything.get::<Ask>(b"cudaRuntimeGetVersion");
        ask.map_err(|_| "no CUDA runtime is loaded that could be asked".to_owned())?(&raw mut version)
    };
    match code {
        0 => Ok(Version::of_number(version).to_string()),
        code => Err(format!("CUDA's runtime, cudaRuntimeGetVersion: code {code}")),
    }
}

/// libtorch 2.11 goes by the first of these that is set.
fn allocator_settings() -> Option<String> {
    ["PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"].iter().find_map(|name| std::env::var(name).ok())
}
