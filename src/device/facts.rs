//! What the driver says of itself and of the cards it knows, without taking a context of any.

use cudarc::driver::{result, sys};

use super::arch::Arch;
use super::error::DeviceError;
use super::gpu::arch;
use super::nvrtc::Version;

/// A card as the driver knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// As libtorch counts them.
    pub ordinal: i32,
    pub name: String,
    /// Its compute capability.
    pub arch: Arch,
    pub memory_bytes: u64,
}

/// The newest CUDA that the driver serves.
///
/// # Errors
/// Without NVIDIA's driver.
pub fn driver_cuda() -> Result<Version, DeviceError> {
    present()?;
    let mut number = 0;
    // SAFETY: writes one number to a place of ours; the library is there.
    unsafe { sys::cuDriverGetVersion(&raw mut number) }
        .result()
        .map_err(DeviceError::driver("asking for its version"))?;
    Ok(Version::of_number(number))
}

/// All cards that this process may use.
///
/// # Errors
/// Without NVIDIA's driver, or if it does not start (which is also how it says that there is no card).
pub fn cards() -> Result<Vec<Card>, DeviceError> {
    present()?;
    result::init().map_err(DeviceError::driver("starting"))?;
    let count = result::device::get_count().map_err(DeviceError::driver("counting the GPUs"))?;
    (0..count).map(card).collect()
}

fn card(ordinal: i32) -> Result<Card, DeviceError> {
    let device = result::device::get(ordinal).map_err(DeviceError::driver("opening the GPU"))?;
    let name = result::device::get_name(device).map_err(DeviceError::driver("asking for the GPU's name"))?;
    // SAFETY: the device comes from the call above.
    let memory = unsafe { result::device::total_mem(device) };
    let memory_bytes = memory.map_err(DeviceError::driver("asking for the GPU's memory"))? as u64;
    Ok(Card { ordinal, name, arch: arch(device)?, memory_bytes })
}

fn present() -> Result<(), DeviceError> {
    // SAFETY: looks for a library by name. cudarc panics on any call if it is missing, so ask first.
    if unsafe { sys::is_culib_present() } { Ok(()) } else { Err(DeviceError::NoDriver) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_driver_each_question_is_an_error() {
        if present().is_ok() {
            return;
        }
        for error in [driver_cuda().map(|_| ()).unwrap_err(), cards().map(|_| ()).unwrap_err()] {
            assert!(error.to_string().contains("libcuda.so.1"), "{error}");
        }
    }
}
