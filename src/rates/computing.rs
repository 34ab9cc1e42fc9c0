//! Whether libtorch computes on a device at all.

use tch::{Device, Kind, Tensor};

use super::error::RatesError;

const ROWS: i64 = 64;

/// Has libtorch multiply two matrices of ones there, and reads a number of the product: a device that libtorch counts may
/// be of a kind that it has no kernels for, or out of order.
///
/// # Errors
/// What libtorch says of it; a product that is wrong.
pub fn computes(device: Device) -> Result<(), RatesError> {
    let ones = Tensor::f_ones([ROWS, ROWS], (Kind::Float, device))?;
    let found = ones.f_mm(&ones)?.f_double_value(&[ROWS - 1, ROWS - 1])?;
    right(found)
}

fn right(found: f64) -> Result<(), RatesError> {
    let expected = ROWS as f64;
    if found == expected { Ok(()) } else { Err(RatesError::WrongProduct { found, expected }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_computes() {
        computes(Device::Cpu).unwrap();
    }

    #[test]
    fn a_device_that_is_counted_and_cannot_compute_is_told() {
        // Known to every libtorch, and backed by nothing in this one.
        assert!(computes(Device::Vulkan).is_err());
        let message = right(f64::NAN).unwrap_err().to_string();
        assert!(message.contains("NaN") && message.contains("64"), "{message}");
    }
}
