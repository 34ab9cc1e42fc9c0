//! GPUs: libtorch's CUDA half, the driver, the cards, the compiler.

use std::fmt::Display;

use crate::device::{Card, Compiler, DeviceError, cards, driver_cuda, nvml_driver};
use crate::probe::load_cuda;
use crate::rates::computes;
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
        Err(DeviceError::NoDriver) => {
            Check::absent(NAME, "libcuda.so.1 was not found", format!("install NVIDIA's driver; {WITHOUT}"))
        }
        Err(error) => Check::fails(NAME, error.to_string(), format!("look at `nvidia-smi`; {WITHOUT}")),
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

const ON_GPU: &str = "libtorch on a GPU";

/// Whether libtorch sees what the driver sees, and computes on all of it.
fn libtorch_on_gpu() -> Check {
    match (cards(), device("cuda")) {
        (Err(_), _) => Check::not_run(ON_GPU, "there is no GPU"),
        (Ok(cards), _) if cards.is_empty() => Check::not_run(ON_GPU, "there is no GPU"),
        (Ok(cards), Ok(_)) => computing(&cards, |name| {
            let device = device(name).map_err(|error| error.to_string())?;
            computes(device).map_err(|error| error.to_string())
        }),
        (Ok(_), Err(error)) => {
            let way_out = "the driver must serve the CUDA that libtorch was built for: compare the two above";
            Check::fails(ON_GPU, error.to_string(), way_out)
        }
    }
}

/// What came of having libtorch compute on each card; `compute` takes the value of `--device`.
fn computing(cards: &[Card], compute: impl Fn(&str) -> Result<(), String>) -> Check {
    let names = || cards.iter().map(|card| format!("cuda:{}", card.ordinal));
    let (well, ill): (Vec<_>, Vec<_>) =
        names().map(|name| (compute(&name), name)).partition(|(done, _)| done.is_ok());
    let well = well.into_iter().map(|(_, name)| name).collect::<Vec<_>>().join(", ");
    let ill: Vec<_> =
        ill.into_iter().filter_map(|(done, name)| Some(format!("{name}: {}", done.err()?))).collect();
    if ill.is_empty() {
        return Check::works(ON_GPU, format!("computes on {well}"));
    }
    let beside = if well.is_empty() { String::new() } else { format!("; it computes on {well}") };
    let way_out = format!(
        "use another GPU, or a libtorch with kernels for this one's compute capability; if it has them, look at `nvidia-smi`; \
         {WITHOUT}"
    );
    Check::fails(ON_GPU, ill.join("; ") + &beside, way_out)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Arch;
    use crate::report::Standing;

    fn two_cards() -> [Card; 2] {
        [0, 1].map(|ordinal| Card {
            ordinal,
            name: "a card".to_owned(),
            arch: Arch::new(9, 0),
            memory_bytes: 1 << 30,
        })
    }

    #[test]
    fn a_card_that_is_counted_and_cannot_compute_fails() {
        let check = computing(&two_cards(), |name| match name {
            "cuda:0" => Ok(()),
            _ => Err("no kernel image is available".to_owned()),
        });
        assert_eq!((check.standing, check.needed), (Standing::Fails, false), "{check:?}");
        assert_eq!(check.found, "cuda:1: no kernel image is available; it computes on cuda:0");
        assert!(check.way_out.is_some());
    }

    #[test]
    fn cards_that_compute_are_named() {
        let check = computing(&two_cards(), |_| Ok(()));
        assert_eq!((check.standing, &*check.found), (Standing::Works, "computes on cuda:0, cuda:1"));
    }

    #[test]
    fn a_missing_driver_is_told_once_with_one_way_out() {
        if crate::device::driver_cuda().is_ok() {
            return;
        }
        let check = driver();
        let text = check.found + &check.way_out.unwrap();
        assert_eq!(text.matches("--device cpu").count(), 1, "{text}");
    }
}
