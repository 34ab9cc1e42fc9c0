//! What the driver says of itself and of the cards it knows, without taking a context of any.

use super::arch::Arch;
use super::driver::{self, Device};
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
    let number = driver::cuda_version().map_err(DeviceError::driver("asking for its version"))?;
    Ok(Version::of_number(number))
}

/// All cards that this process may use.
///
/// # Errors
/// Without NVIDIA's driver, or if it does not start (which is also how it says that there is no card).
pub fn cards() -> Result<Vec<Card>, DeviceError> {
    driver::init().map_err(DeviceError::driver("starting"))?;
    let count = driver::count().map_err(DeviceError::driver("counting the GPUs"))?;
    (0..count).map(card).collect()
}

fn card(ordinal: i32) -> Result<Card, DeviceError> {
    let device = Device::get(ordinal).map_err(DeviceError::driver("opening the GPU"))?;
    let name = device.name().map_err(DeviceError::driver("asking for the GPU's name"))?;
    let memory = device.memory_bytes().map_err(DeviceError::driver("asking for the GPU's memory"))?;
    Ok(Card { ordinal, name, arch: arch(device)?, memory_bytes: memory as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_driver_each_question_is_an_error() {
        for error in [driver_cuda().map(|_| ()).err(), cards().map(|_| ()).err()] {
            let none = error.filter(|error| matches!(error, DeviceError::NoDriver(_)));
            assert_eq!(none.is_none(), driver::is_loadable(), "{none:?}");
            if let Some(message) = none.map(|none| none.to_string()) {
                assert!(message.contains("libcuda.so.1") && message.contains("--device cpu"), "{message}");
            }
        }
    }
}
