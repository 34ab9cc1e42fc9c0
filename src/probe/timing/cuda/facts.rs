//! What the driver says of a device.

use cudarc::driver::{result, sys};

use super::driver::Context;
use super::{CudaError, nvml};
use crate::device::driver_cuda;
use crate::record::DeviceFacts;

/// The facts of the device with this number, as far as anyone tells them, and what is missing of them.
pub fn device_facts(ordinal: i32) -> Result<(DeviceFacts, Vec<String>), CudaError> {
    let context = Context::retain(ordinal)?;
    let _entered = context.enter()?;
    let device = context.device();
    let memory = result::mem_get_info().ok();
    let facts = DeviceFacts {
        device_name: result::device::get_name(device).ok(),
        compute_capability: compute_capability(device),
        multiprocessors: attribute(device, sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
        device_memory_bytes: memory.map(|(_, total)| total as i64),
        device_free_bytes: memory.map(|(free, _)| free as i64),
        cuda_driver_version: driver_cuda().ok().map(|version| version.to_string()),
        cuda_runtime_version: runtime_version().map(version),
        allocator_settings: allocator_settings(),
        ..DeviceFacts::default()
    };
    let told = pci_bus_id(device).ok_or_else(|| "the driver does not tell the device's bus".to_owned());
    Ok(match told.and_then(|id| nvml::ask(&id)) {
        Ok(from_nvml) => {
            let untold = from_nvml.untold().join(", ");
            let missing =
                (!untold.is_empty()).then(|| format!("{untold}: NVML does not tell it of this device"));
            (from_nvml.into_facts(facts), missing.into_iter().collect())
        }
        Err(why) => (facts, vec![format!("driver_version, clocks and power of the device: {why}")]),
    })
}

fn attribute(device: sys::CUdevice, which: sys::CUdevice_attribute) -> Option<i64> {
    // SAFETY: the device comes from the driver.
    unsafe { result::device::get_attribute(device, which) }.ok().map(i64::from)
}

fn compute_capability(device: sys::CUdevice) -> Option<String> {
    let part = |which| attribute(device, which);
    let major = part(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = part(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    Some(format!("{major}.{minor}"))
}

/// Asks the CUDA runtime that libtorch has loaded; none is loaded for it.
fn runtime_version() -> Option<i32> {
    use libloading::os::unix::{Library, RTLD_LAZY};
    const RTLD_NOLOAD: i32 = 4;
    let loaded = ["libcudart.so.13", "libcudart.so.12"].into_iter().find_map(|name| {
        // SAFETY: only a library that is there already is opened, so nothing of it runs.
        unsafe { Library::open(Some(name), RTLD_LAZY | RTLD_NOLOAD) }.ok()
    })?;
    let mut version = 0;
    // SAFETY: the runtime declares it so; it writes one number to a place of ours.
    let failed = unsafe {
        let ask = loaded.get::<unsafe extern "C" fn(*mut i32) -> i32>(b"cudaRuntimeGetVersion").ok()?;
        ask(&raw mut version)
    };
    (failed == 0).then_some(version)
}

/// CUDA counts 13.2 as 13020.
pub fn version(number: i32) -> String {
    format!("{}.{}", number / 1000, number % 1000 / 10)
}

/// As NVML knows a device.
fn pci_bus_id(device: sys::CUdevice) -> Option<std::ffi::CString> {
    let mut id = [0; 32];
    // SAFETY: writes a NUL-terminated text of at most that many bytes to a place of ours.
    unsafe { sys::cuDeviceGetPCIBusId(id.as_mut_ptr(), id.len() as i32, device) }.result().ok()?;
    let id = id.map(|byte| byte as u8);
    Some(std::ffi::CStr::from_bytes_until_nul(&id).ok()?.to_owned())
}

/// libtorch 2.11 goes by the first of these that is set.
fn allocator_settings() -> Option<String> {
    ["PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"].iter().find_map(|name| std::env::var(name).ok())
}
