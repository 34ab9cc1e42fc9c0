//! The driver itself and the devices that it knows, without a context of any.

use std::ffi::{CStr, CString, c_char, c_int};

use cudarc::driver::sys::{CUdevice, CUdevice_attribute};

use super::calls::{
    DEVICE_GET, DEVICE_GET_ATTRIBUTE, DEVICE_GET_COUNT, DEVICE_GET_NAME, DEVICE_GET_PCI_BUS_ID,
    DEVICE_TOTAL_MEM, DRIVER_GET_VERSION, INIT,
};
use super::error::DriverError;

/// Starts the driver, which must come before all but its version.
pub fn init() -> Result<(), DriverError> {
    // SAFETY: takes a number, which must be 0.
    INIT.call(|init| unsafe { init(0) })
}

/// The newest CUDA that it serves: 13.2 is 13020.
pub fn cuda_version() -> Result<i32, DriverError> {
    let mut version = 0;
    // SAFETY: writes one number to a place of ours.
    DRIVER_GET_VERSION.call(|ask| unsafe { ask(&raw mut version) })?;
    Ok(version)
}

/// How many devices this process may use.
pub fn count() -> Result<i32, DriverError> {
    let mut count = 0;
    // SAFETY: writes one number to a place of ours.
    DEVICE_GET_COUNT.call(|ask| unsafe { ask(&raw mut count) })?;
    Ok(count)
}

/// A device that the driver knows.
#[derive(Debug, Clone, Copy)]
pub struct Device(pub(super) CUdevice);

impl Device {
    /// The one with this number, as libtorch counts them.
    pub fn get(ordinal: i32) -> Result<Device, DriverError> {
        let mut device = 0;
        // SAFETY: writes one number to a place of ours.
        DEVICE_GET.call(|get| unsafe { get(&raw mut device, ordinal) })?;
        Ok(Device(device))
    }

    pub fn name(self) -> Result<String, DriverError> {
        // SAFETY: writes a text that ends with a NUL, of so many bytes at most, of a device that it knows.
        let name = text(|text, room| DEVICE_GET_NAME.call(|ask| unsafe { ask(text, room, self.0) }))?;
        Ok(name.to_string_lossy().into_owned())
    }

    /// Its place on the bus, by which NVML knows it.
    pub fn pci_bus_id(self) -> Result<CString, DriverError> {
        // SAFETY: as for its name.
        text(|text, room| DEVICE_GET_PCI_BUS_ID.call(|ask| unsafe { ask(text, room, self.0) }))
    }

    pub fn memory_bytes(self) -> Result<usize, DriverError> {
        let mut bytes = 0;
        // SAFETY: writes one number to a place of ours.
        DEVICE_TOTAL_MEM.call(|ask| unsafe { ask(&raw mut bytes, self.0) })?;
        Ok(bytes)
    }

    /// Major and minor.
    pub fn compute_capability(self) -> Result<(i32, i32), DriverError> {
        let major = self.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = self.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        Ok((major, minor))
    }

    pub fn multiprocessors(self) -> Result<i32, DriverError> {
        self.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
    }

    /// Threads that one multiprocessor keeps at a time.
    pub fn threads_each(self) -> Result<i32, DriverError> {
        self.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)
    }

    fn attribute(self, which: CUdevice_attribute) -> Result<i32, DriverError> {
        let mut value = 0;
        // SAFETY: writes one number to a place of ours.
        DEVICE_GET_ATTRIBUTE.call(|ask| unsafe { ask(&raw mut value, which as c_int, self.0) })?;
        Ok(value)
    }
}

/// What `write` puts into a room of so many bytes.
fn text(write: impl FnOnce(*mut c_char, c_int) -> Result<(), DriverError>) -> Result<CString, DriverError> {
    let mut text: [c_char; 256] = [0; 256];
    write(text.as_mut_ptr(), text.len() as c_int - 1)?;
    // SAFETY: the last byte is 0 still, whatever was written before it.
    Ok(unsafe { CStr::from_ptr(text.as_ptr()) }.to_owned())
}
