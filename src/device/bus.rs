//! The machine's bus, which knows its cards whatever their driver says, and so tells a machine without a GPU from one whose
//! GPU does not work.

use std::fs;
use std::path::Path;

use super::driver::NoDriver;
use super::error::DeviceError;

/// As the PCI's registry has them: NVIDIA, and the class of display controllers.
const NVIDIA: &str = "0x10de";
const DISPLAY: &str = "0x03";

/// NVIDIA's cards on it, each by its place and its vendor and kind, as `lspci -nn` has them: `0000:01:00.0 (10de:2330)`. None
/// also where it cannot be read.
pub fn cards_on_bus() -> Vec<String> {
    cards_in(Path::new("/sys/bus/pci/devices"))
}

/// Whether something is broken where the driver gives no card for this reason: not where the bus (`on_bus`) has none, nor where
/// CUDA_VISIBLE_DEVICES (`visible`) names none and means that.
pub fn is_fault(why: &DeviceError, on_bus: &[String], visible: Option<&str>) -> bool {
    match why {
        DeviceError::NoDriver(NoDriver::NotFound) => !on_bus.is_empty(),
        DeviceError::NoGpu => !on_bus.is_empty() && !visible.is_some_and(hides_all),
        _ => true,
    }
}

/// Whether a list of GPUs names none, and means that: it counts up to the first entry that is no GPU. A scheduler says
/// `NoDevFiles` to a job that it has given none.
fn hides_all(visible: &str) -> bool {
    let first = visible.split(',').next().unwrap_or_default().trim();
    ["", "-1", "NoDevFiles"].contains(&first)
}

fn cards_in(folder: &Path) -> Vec<String> {
    let devices = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut cards: Vec<String> = devices.filter_map(|device| card(&device.path())).collect();
    cards.sort();
    cards
}

fn card(device: &Path) -> Option<String> {
    let fact = |name: &str| Some(fs::read_to_string(device.join(name)).ok()?.trim().to_owned());
    let (vendor, class) = (fact("vendor")?, fact("class")?);
    let is_card = vendor == NVIDIA && class.starts_with(DISPLAY);
    let place = device.file_name().filter(|_| is_card)?.to_string_lossy();
    let kind = fact("device").unwrap_or_default();
    Some(format!("{place} ({}:{})", number(&vendor), number(&kind)))
}

fn number(hexadecimal: &str) -> &str {
    hexadecimal.trim_start_matches("0x")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_are_told_from_other_devices() {
        let folder = tempfile::tempdir().unwrap();
        for (device, vendor, class) in [
            ("0000:01:00.0", "0x10de\n", "0x030200\n"),
            ("0000:01:00.1", "0x10de\n", "0x040300\n"),
            ("0000:02:00.0", "0x1002\n", "0x030000\n"),
        ] {
            let device = folder.path().join(device);
            fs::create_dir(&device).unwrap();
            fs::write(device.join("vendor"), vendor).unwrap();
            fs::write(device.join("class"), class).unwrap();
            fs::write(device.join("device"), "0x2330\n").unwrap();
        }
        assert_eq!(cards_in(folder.path()), ["0000:01:00.0 (10de:2330)"]);
        assert_eq!(cards_in(Path::new("/not/there")), [""; 0]);
    }

    #[test]
    fn only_a_card_that_there_is_and_that_nobody_hides_can_be_broken() {
        let on_bus = ["0000:01:00.0 (10de:2330)".to_owned()];
        let none = || DeviceError::from(NoDriver::NotFound);
        assert_eq!([is_fault(&none(), &[], None), is_fault(&none(), &on_bus, Some(""))], [false, true]);
        for hidden in ["", "-1", "-1,0", " NoDevFiles"] {
            assert!(!is_fault(&DeviceError::NoGpu, &on_bus, Some(hidden)), "{hidden}");
        }
        for visible in [None, Some("0"), Some("0,-1")] {
            assert!(is_fault(&DeviceError::NoGpu, &on_bus, visible), "{visible:?}");
            assert!(!is_fault(&DeviceError::NoGpu, &[], visible), "{visible:?}");
        }
        assert!(is_fault(&DeviceError::StubDriver, &[], Some("-1")), "a library that is there");
    }
}
