//! The machine's bus, which knows its cards whatever their driver says.

use std::fs;
use std::path::Path;

/// As the PCI's registry has them: NVIDIA, and the class of display controllers.
const NVIDIA: &str = "0x10de";
const DISPLAY: &str = "0x03";

/// NVIDIA's cards on it; 0 also where it cannot be read.
pub fn cards() -> usize {
    cards_in(Path::new("/sys/bus/pci/devices"))
}

fn cards_in(folder: &Path) -> usize {
    let devices = fs::read_dir(folder).into_iter().flatten().flatten();
    let says = |device: &Path, fact: &str, begin: &str| {
        fs::read_to_string(device.join(fact)).is_ok_and(|text| text.starts_with(begin))
    };
    devices
        .map(|device| device.path())
        .filter(|device| says(device, "vendor", NVIDIA) && says(device, "class", DISPLAY))
        .count()
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
        }
        assert_eq!(cards_in(folder.path()), 1);
        assert_eq!(cards_in(Path::new("/not/there")), 0);
    }
}
