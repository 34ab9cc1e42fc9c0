//! Why libtorch sees no GPU: it says nothing but their number.

use crate::device::{DeviceError, Version, cards, driver_cuda};

/// What to tell where libtorch, with its CUDA half loaded, sees no GPU.
pub fn why_no_gpu() -> String {
    if !tch::utils::has_cudart() {
        return "libtorch was asked about CUDA before its CUDA half was loaded, and has given it up for good; call \
                stepledger::probe::load_cuda() before anything else"
            .to_owned();
    }
    let libtorch = i32::try_from(tch::utils::version_cudart()).ok().map(Version::of_number);
    why(driver_cuda(), libtorch, cards().err())
}

/// From the newest CUDA that the driver serves, the one that libtorch was built for, and what the driver refuses where it
/// refuses to count its GPUs.
fn why(
    driver: Result<Version, DeviceError>,
    libtorch: Option<Version>,
    refusal: Option<DeviceError>,
) -> String {
    let driver = match driver {
        Ok(driver) => driver,
        Err(error) => return format!("libtorch sees no GPU: {error}"),
    };
    match (libtorch, refusal) {
        // Within a major version, libtorch runs on older drivers too.
        (Some(libtorch), _) if driver.major() < libtorch.major() => format!(
            "libtorch sees no GPU: NVIDIA's driver serves CUDA up to {driver}, and this libtorch was built for CUDA \
             {libtorch}; install a newer driver, or a libtorch for CUDA {}",
            driver.major(),
        ),
        (_, Some(error)) if !matches!(error, DeviceError::NoGpu) => format!(
            "libtorch sees no GPU, and NVIDIA's driver (for CUDA {driver} and older) is there and refuses: {error}; look \
             at `nvidia-smi`"
        ),
        _ => format!(
            "libtorch sees no GPU, and NVIDIA's driver (for CUDA {driver} and older) is there; look at `nvidia-smi`, and \
             at CUDA_VISIBLE_DEVICES"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::NoDriver;

    const LIBTORCH: Option<Version> = Some(Version::of_number(13000));

    fn check(driver: Result<i32, DeviceError>, refusal: Option<DeviceError>, words: &[&str]) {
        let message = why(driver.map(Version::of_number), LIBTORCH, refusal);
        assert!(words.iter().all(|words| message.contains(words)), "{message}");
    }

    #[test]
    fn an_old_driver_is_told_from_none_and_from_hidden_gpus() {
        check(Err(NoDriver::NotFound.into()), None, &["libcuda.so.1", "was not found", "--device cpu"]);
        check(Ok(12040), None, &["up to 12.4", "built for CUDA 13.0", "a newer driver", "for CUDA 12"]);
        check(Ok(13000), Some(DeviceError::NoGpu), &["for CUDA 13.0 and older", "CUDA_VISIBLE_DEVICES"]);
        check(Ok(13020), None, &["CUDA_VISIBLE_DEVICES"]);
    }

    #[test]
    fn a_stub_and_a_driver_that_refuses_are_not_taken_for_a_driver_that_is_missing() {
        check(Err(DeviceError::StubDriver), None, &["is a stub", "LD_LIBRARY_PATH"]);
        check(Ok(13000), Some(DeviceError::StubDriver), &["is there and refuses", "nvidia-smi"]);
    }
}
