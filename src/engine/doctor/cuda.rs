//! GPUs: libtorch's CUDA half, the driver, the cards, the compiler.

use std::fmt::Display;

use crate::device::{Card, Compiler, DeviceError, cards, driver_cuda, nvml_driver};
use crate::probe::load_cuda;
use crate::report::{Check, file_bytes};
use crate::train::device;

const WITHOUT: &str = "needed for --device cuda only; --device cpu does without";

pub fn checks() -> Vec<Check> {
    let (half, driver) = (half(), driver());
    let mut checks = vec![half, driver];
    checks.extend(all_cards());
    checks.extend([libtorch_on_gpu(), nvml(), compiler()]);
    checks
}

fn half() -> Check {
    const NAME: &str = "libtorch for CUDA";
    match load_cuda() {
        Ok(()) => Check::works(NAME, "libtorch_cuda.so is loaded"),
        Err(why) => Check::absent(NAME, why, format!("install a libtorch for CUDA; {WITHOUT}")),
    }
}

fn driver() -> Check {
    const NAME: &str = "CUDA driver";
    match driver_cuda() {
        Ok(version) => Check::works(NAME, format!("libcuda.so.1, for CUDA {version} and older")),
        Err(error) => Check::absent(NAME, error.to_string(), WITHOUT),
    }
}

fn all_cards() -> Vec<Check> {
    match cards() {
        Ok(cards) if cards.is_empty() => vec![no_card("the driver knows none")],
        Ok(cards) => cards.iter().map(card).collect(),
        Err(DeviceError::NoDriver) => vec![Check::not_run("GPU", "there is no driver to ask")],
        Err(error) => vec![no_card(error)],
    }
}

fn no_card(why: impl Display) -> Check {
    let way_out = "look at `nvidia-smi`, and at CUDA_VISIBLE_DEVICES; --device cpu does without";
    Check::absent("GPU", why.to_string(), way_out)
}

fn card(card: &Card) -> Check {
    let Card { ordinal, name, arch, memory_bytes } = card;
    let found =
        format!("{name}, compute capability {}.{}, {}", arch.major, arch.minor, file_bytes(*memory_bytes));
    Check::works(&format!("GPU {ordinal}"), found)
}

/// Whether libtorch sees what the driver sees.
fn libtorch_on_gpu() -> Check {
    const NAME: &str = "libtorch on a GPU";
    match (cards(), device("cuda")) {
        (Err(_), _) => Check::not_run(NAME, "there is no GPU"),
        (Ok(cards), _) if cards.is_empty() => Check::not_run(NAME, "there is no GPU"),
        (Ok(_), Ok(_)) => Check::works(NAME, "--device cuda works"),
        (Ok(_), Err(error)) => {
            let way_out = "the driver must serve the CUDA that libtorch was built for: compare the two above";
            Check::fails(NAME, error.to_string(), way_out)
        }
    }
}

fn nvml() -> Check {
    const NAME: &str = "NVML";
    match nvml_driver() {
        Ok(version) => Check::works(NAME, format!("driver {version}")),
        Err(error) => {
            Check::absent(NAME, error.to_string(), "it comes with NVIDIA's driver; nothing here rests on it")
        }
    }
}

fn compiler() -> Check {
    const NAME: &str = "NVRTC";
    match Compiler::find() {
        Ok(compiler) => Check::works(NAME, compiler.version().to_string()),
        Err(error) => {
            Check::absent(NAME, error.to_string(), "needed for --adamw kernel and for calibrating a GPU only")
        }
    }
}
