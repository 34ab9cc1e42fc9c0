//! Why libtorch sees no GPU: it says nothing but their number.

use super::facts::{driver_version, version};

/// What to tell where libtorch, with its CUDA half loaded, sees no GPU.
pub fn why_no_gpu() -> String {
    if !tch::utils::has_cudart() {
        return "libtorch was asked about CUDA before its CUDA half was loaded, and has given it up for good; call \
                stepledger::probe::load_cuda() before anything else"
            .to_owned();
    }
    why(driver_version(), i32::try_from(tch::utils::version_cudart()).ok())
}

/// From the newest CUDA that the driver serves, and the one that libtorch was built for, as CUDA counts.
fn why(driver: Option<i32>, libtorch: Option<i32>) -> String {
    const MAJOR: i32 = 1000;
    match (driver, libtorch) {
        (None, _) => "libtorch sees no GPU: NVIDIA's driver (libcuda.so.1) was not found; install it, or use --device cpu"
            .to_owned(),
        // Within a major version, libtorch runs on older drivers too.
        (Some(driver), Some(libtorch)) if driver / MAJOR < libtorch / MAJOR => format!(
            "libtorch sees no GPU: NVIDIA's driver serves CUDA up to {}, and this libtorch was built for CUDA {}; install \
             a newer driver, or a libtorch for CUDA {}",
            version(driver),
            version(libtorch),
            driver / MAJOR,
        ),
        (Some(driver), _) => format!(
            "libtorch sees no GPU, and NVIDIA's driver (for CUDA {} and older) is there; look at `nvidia-smi`, and at \
             CUDA_VISIBLE_DEVICES",
            version(driver),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_driver_is_told_from_none_and_from_hidden_gpus() {
        let check = |driver, words: &[&str]| {
            let message = why(driver, Some(13000));
            assert!(words.iter().all(|words| message.contains(words)), "{message}");
        };
        check(None, &["libcuda.so.1", "was not found", "--device cpu"]);
        check(Some(12040), &["up to 12.4", "built for CUDA 13.0", "a newer driver", "for CUDA 12"]);
        check(Some(13000), &["for CUDA 13.0 and older", "CUDA_VISIBLE_DEVICES"]);
        check(Some(13020), &["CUDA_VISIBLE_DEVICES"]);
    }
}
