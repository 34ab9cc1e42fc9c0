//! GPUs: libtorch's CUDA half, the driver, the cards, the compiler.

use std::env;
use std::fmt::Display;

use crate::device::{
    Card, CompanionError, Compiler, DeviceError, NoDriver, Version, cards, cards_on_bus, driver_cuda,
    is_fault, nvml_driver,
};
use crate::probe::{CudaHalfError, load_cuda};
use crate::rates::computes;
use crate::report::{Check, file_bytes};
use crate::train::device;

/// `--device cpu` does without all of this.
pub const OTHER_LIBTORCH: &str =
    "install a libtorch for CUDA; needed for --device cuda only; --device cpu does without";
const WHOLE_LIBTORCH: &str = "install this libtorch again, with CUDA's libraries that it names; needed for --device cuda only; \
     --device cpu does without";
pub const ASK_THE_DRIVER: &str =
    "look at `nvidia-smi`; needed for --device cuda only; --device cpu does without";

pub const HALF: &str = "libtorch for CUDA";

pub fn half() -> Check {
    of_half(load_cuda())
}

/// One that is there and cannot be loaded would be so in a run on a GPU, too.
fn of_half(half: Result<(), CudaHalfError>) -> Check {
    match half {
        Ok(()) => Check::works(HALF, "libtorch_cuda.so is loaded"),
        Err(error @ CudaHalfError::Missing(_)) => Check::absent(HALF, error.to_string(), OTHER_LIBTORCH),
        Err(error @ CudaHalfError::Broken(_)) => Check::fails(HALF, error.to_string(), WHOLE_LIBTORCH),
    }
}

pub const DRIVER: &str = "CUDA driver";

pub fn driver() -> Check {
    of_driver(driver_cuda())
}

fn of_driver(serves: Result<Version, DeviceError>) -> Check {
    let to_do = |none: &NoDriver| {
        format!("{}; needed for --device cuda only; --device cpu does without", none.way_out())
    };
    match serves {
        Ok(version) => Check::works(DRIVER, format!("libcuda.so.1, for CUDA {version} and older")),
        Err(DeviceError::NoDriver(none @ NoDriver::NotFound)) => {
            Check::absent(DRIVER, "libcuda.so.1 was not found", to_do(&none))
        }
        Err(DeviceError::NoDriver(none)) => Check::fails(DRIVER, none.found(), to_do(&none)),
        Err(error) => Check::fails(DRIVER, error.to_string(), ASK_THE_DRIVER),
    }
}

pub const GPU: &str = "GPU";

pub fn all_cards() -> Vec<Check> {
    match known(cards(), &cards_on_bus(), env::var("CUDA_VISIBLE_DEVICES").ok().as_deref()) {
        Ok(cards) => cards.iter().map(card).collect(),
        Err(check) => vec![check],
    }
}

/// The cards that there are, or what is found instead. A driver that is there and refuses is told from a machine without
/// a GPU, also where it says itself that there is none, while the machine's bus has one; so is a card without a driver.
fn known(
    cards: Result<Vec<Card>, DeviceError>,
    on_bus: &[String],
    visible: Option<&str>,
) -> Result<Vec<Card>, Check> {
    let why = match cards {
        Ok(cards) if !cards.is_empty() => return Ok(cards),
        Ok(_) => DeviceError::NoGpu,
        Err(error) => error,
    };
    let fault = is_fault(&why, on_bus, visible);
    Err(match (&why, visible) {
        (DeviceError::NoDriver(NoDriver::NotFound), _) if fault => without_driver(on_bus),
        (DeviceError::NoDriver(NoDriver::NotFound), _) => Check::not_run(GPU, "there is no driver to ask"),
        (DeviceError::NoGpu, Some(visible)) if fault => {
            let why = format!(
                "{why}; CUDA_VISIBLE_DEVICES is {visible:?}, and the machine has {}",
                of_nvidia(on_bus)
            );
            let way_out = format!("name GPUs of `nvidia-smi` in CUDA_VISIBLE_DEVICES, or {ASK_THE_DRIVER}");
            Check::fails(GPU, why, way_out)
        }
        (DeviceError::NoGpu, Some(visible)) => {
            let why = format!("{why}; CUDA_VISIBLE_DEVICES is {visible:?}");
            Check::absent(GPU, why, "unset CUDA_VISIBLE_DEVICES; --device cpu does without")
        }
        (DeviceError::NoGpu, None) if fault => {
            broken(format!("{why}, but the machine has {}", of_nvidia(on_bus)))
        }
        (DeviceError::NoGpu, None) => Check::absent(GPU, why.to_string(), ASK_THE_DRIVER),
        _ => broken(why),
    })
}

fn without_driver(on_bus: &[String]) -> Check {
    let found = format!("the machine has {}, and no driver for it", of_nvidia(on_bus));
    let way_out = "install NVIDIA's driver; a container has to be started with the GPUs (`docker run --gpus all`); needed for \
                   --device cuda only; --device cpu does without";
    Check::fails(GPU, found, way_out)
}

/// `1 of NVIDIA's: 0000:01:00.0 (10de:2330)`.
fn of_nvidia(on_bus: &[String]) -> String {
    format!("{} of NVIDIA's: {}", on_bus.len(), on_bus.join(", "))
}

fn broken(why: impl Display) -> Check {
    Check::fails(GPU, why.to_string(), ASK_THE_DRIVER)
}

fn card(card: &Card) -> Check {
    let Card { ordinal, name, arch, memory_bytes } = card;
    let found =
        format!("{name}, compute capability {}.{}, {}", arch.major, arch.minor, file_bytes(*memory_bytes));
    Check::works(&format!("{GPU} {ordinal}"), found)
}

pub const ON_GPU: &str = "libtorch on a GPU";

/// Whether libtorch sees what the driver sees, and computes on all of it.
pub fn libtorch_on_gpu() -> Check {
    if let Err(error) = load_cuda() {
        return Check::not_run(ON_GPU, error.to_string());
    }
    match (cards(), device("cuda")) {
        (Err(DeviceError::NoDriver(NoDriver::NotFound) | DeviceError::NoGpu), _) => {
            Check::not_run(ON_GPU, "there is no GPU")
        }
        (Err(_), _) => Check::not_run(ON_GPU, "the driver does not tell which GPUs there are"),
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
    let way_out = "use another GPU, or a libtorch with kernels for this one's compute capability; if it has them, look at `nvidia-smi`; \
         needed for --device cuda only; --device cpu does without";
    Check::fails(ON_GPU, ill.join("; ") + &beside, way_out)
}

pub const NVML: &str = "NVML";

pub fn nvml() -> Check {
    told_by_nvml(nvml_driver())
}

/// One that is there and fails tells of a driver that is not in order.
fn told_by_nvml(driver: Result<String, CompanionError>) -> Check {
    match driver {
        Ok(version) => Check::works(NVML, format!("driver {version}")),
        Err(error @ CompanionError::NotFound { .. }) => {
            Check::absent(NVML, error.to_string(), "it comes with NVIDIA's driver; nothing here rests on it")
        }
        Err(error) => Check::fails(NVML, error.to_string(), ASK_THE_DRIVER),
    }
}

pub const NVRTC: &str = "NVRTC";
pub const COMPILER_IS_FOR: &str = "needed for --adamw kernel and for calibrating a GPU only";

pub fn compiler() -> Check {
    match Compiler::find() {
        Ok(compiler) => Check::works(NVRTC, compiler.version().to_string()),
        Err(error) => without_compiler(&error),
    }
}

fn without_compiler(error: &DeviceError) -> Check {
    match error {
        DeviceError::NoCompiler { .. } => Check::absent(NVRTC, error.to_string(), COMPILER_IS_FOR),
        _ => Check::fails(NVRTC, error.to_string(), COMPILER_IS_FOR),
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
    fn a_driver_that_refuses_is_told_from_a_machine_without_a_gpu() {
        let on_bus = ["0000:01:00.0 (10de:2330)".to_owned()];
        let standing = |cards: Result<Vec<Card>, DeviceError>, count: usize, visible| {
            known(cards, &on_bus[..count], visible).unwrap_err().standing
        };
        let (absent, fails) = (Standing::Absent, Standing::Fails);
        assert_eq!(standing(Err(NoDriver::NotFound.into()), 0, None), Standing::NotRun);
        assert_eq!(standing(Err(DeviceError::NoGpu), 0, None), absent);
        for hidden in ["", "-1", "-1,0", "NoDevFiles"] {
            assert_eq!(standing(Ok(Vec::new()), 1, Some(hidden)), absent, "{hidden}");
        }
        assert_eq!(standing(Err(DeviceError::NoGpu), 0, Some("0")), absent, "none on the bus");
        let unseen = known(Err(DeviceError::NoGpu), &on_bus, Some("0")).unwrap_err();
        assert_eq!(unseen.standing, fails, "a scheduler names one, and the bus has it");
        assert!(unseen.found.contains("\"0\"") && unseen.found.contains("has 1"), "{unseen:?}");
        assert_eq!(standing(Err(DeviceError::NoGpu), 1, None), fails, "the bus has one");
        assert_eq!(standing(Err(DeviceError::StubDriver), 0, Some("0")), fails);
        assert_eq!(known(Ok(two_cards().to_vec()), &[], None).unwrap().len(), 2);
    }

    #[test]
    fn a_card_without_a_driver_fails_and_is_named() {
        let on_bus = ["0000:01:00.0", "0000:41:00.0"].map(|place| format!("{place} (10de:2330)"));
        let check = known(Err(NoDriver::NotFound.into()), &on_bus, None).unwrap_err();
        assert_eq!((check.standing, check.needed), (Standing::Fails, false));
        let named = "2 of NVIDIA's: 0000:01:00.0 (10de:2330), 0000:41:00.0 (10de:2330), and no driver";
        assert!(check.found.contains(named), "{check:?}");
        assert!(check.way_out.is_some_and(|way_out| way_out.contains("install NVIDIA's driver")));
    }

    #[test]
    fn a_library_that_is_broken_is_told_from_none() {
        let load = |name: &str| {
            // SAFETY: neither is a library.
            unsafe { libloading::os::unix::Library::new(name) }.unwrap_err()
        };
        let none = of_half(Err(CudaHalfError::Missing(load("libtorch_cuda.so.none"))));
        assert_eq!((none.standing, none.needed), (Standing::Absent, false));
        let broken = of_half(Err(CudaHalfError::Broken(load("/dev/null"))));
        assert!(broken.standing == Standing::Fails && broken.found.contains("/dev/null"), "{broken:?}");
        assert!(broken.way_out.unwrap().contains("again"));
        let none = without_compiler(&DeviceError::NoCompiler { looked: Vec::new() });
        let broken = without_compiler(&DeviceError::BrokenCompiler { reasons: "file too short".to_owned() });
        assert_eq!((none.standing, broken.standing), (Standing::Absent, Standing::Fails));
        assert!(broken.found.contains("file too short"), "{broken:?}");
    }

    #[test]
    fn an_nvml_that_fails_is_told_from_none() {
        let library = "libnvidia-ml.so.1";
        let none = told_by_nvml(Err(CompanionError::NotFound { library }));
        assert_eq!((none.standing, &*none.found), (Standing::Absent, "libnvidia-ml.so.1 was not found"));
        let failed = told_by_nvml(Err(CompanionError::Failed { library, function: "nvmlInit_v2", code: 18 }));
        assert_eq!((failed.standing, failed.needed), (Standing::Fails, false));
        assert!(failed.found.contains("another version"), "{failed:?}");
    }

    #[test]
    fn what_is_no_driver_is_told_once_with_one_way_out() {
        let lacks = NoDriver::Lacks { library: "/opt/libcuda.so".to_owned(), function: "cuInit" };
        for (none, standing, words) in [
            (NoDriver::NotFound, Standing::Absent, "was not found"),
            (NoDriver::Broken { reasons: "file too short".to_owned() }, Standing::Fails, "file too short"),
            (lacks, Standing::Fails, "/opt/libcuda.so"),
        ] {
            let check = of_driver(Err(none.into()));
            assert_eq!(check.standing, standing, "{check:?}");
            let text = check.found + &check.way_out.unwrap();
            assert!(text.contains(words) && text.matches("--device cpu").count() == 1, "{text}");
        }
    }
}
