//! The device that a name stands for.

use tch::Device;

use super::error::TrainError;
use crate::probe::{load_cuda, why_no_gpu};

/// Reads `cpu`, `cuda` or `cuda:N`, and checks that libtorch can work there.
pub fn device(name: &str) -> Result<Device, TrainError> {
    let bad = |reason: String| TrainError::Device { device: name.to_owned(), reason };
    let Some(ordinal) = ordinal(name).map_err(bad)? else { return Ok(Device::Cpu) };
    load_cuda().map_err(|error| bad(error.to_string()))?;
    among(ordinal, tch::Cuda::device_count()).map_err(bad)
}

/// The number of the GPU that a name stands for; `None` for the CPU.
fn ordinal(name: &str) -> Result<Option<usize>, String> {
    let number = match name {
        "cpu" => return Ok(None),
        "cuda" => Some(0),
        _ => name.strip_prefix("cuda:").and_then(number),
    };
    number.map(Some).ok_or_else(|| "allowed: cpu, cuda, cuda:0, cuda:1, …".to_owned())
}

/// Written in one way only: a run's row has the device by that, and runs are told apart by it.
fn number(digits: &str) -> Option<usize> {
    digits.parse().ok().filter(|number: &usize| number.to_string() == digits)
}

/// The GPU with this number, of as many as libtorch sees.
fn among(ordinal: usize, count: i64) -> Result<Device, String> {
    match usize::try_from(count).unwrap_or(0) {
        0 => Err(why_no_gpu()),
        count if ordinal < count => Ok(Device::Cuda(ordinal)),
        1 => Err("this machine has one GPU: cuda:0".to_owned()),
        _ => Err(format!("this machine has {count} GPUs: cuda:0 to cuda:{}", count - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_devices_are_read_and_others_are_refused() {
        assert_eq!(ordinal("cpu"), Ok(None));
        assert_eq!(ordinal("cuda"), Ok(Some(0)));
        assert_eq!(ordinal("cuda:7"), Ok(Some(7)));
        assert_eq!(ordinal("cuda:0"), Ok(Some(0)));
        for name in ["cuda:+7", "cuda:07", "cuda:00", "cuda: 7"] {
            let message = device(name).unwrap_err().to_string();
            assert!(message.contains(name) && message.contains("allowed: cpu, cuda"), "{message}");
        }
        for name in ["gpu", "cuda:", "cuda:-1", "cuda:x", "cuda:18446744073709551616", "CUDA", ""] {
            assert!(ordinal(name).is_err_and(|reason| reason.contains("allowed: cpu")), "{name}");
        }
    }

    #[test]
    fn a_gpu_that_is_not_there_is_refused_with_those_that_are() {
        assert_eq!(among(0, 1), Ok(Device::Cuda(0)));
        assert_eq!(among(7, 8), Ok(Device::Cuda(7)));
        // The largest number of all is none below zero.
        for beyond in [7, 1 << 32, usize::MAX] {
            assert_eq!(among(beyond, 1).unwrap_err(), "this machine has one GPU: cuda:0");
        }
        assert_eq!(among(7, 4).unwrap_err(), "this machine has 4 GPUs: cuda:0 to cuda:3");
    }
}
