//! What `doctor` looks at by itself: the calibration, room on the disk.

use std::path::Path;

use super::machine;
use crate::record::DeviceRates;
use crate::report::{Check, file_bytes, threads, unsteady_rates};
use crate::store::{Calibrations, MachineCalibration, free_bytes, home};

/// Less than this and a run may not be able to keep its records: thousands of steps take a few MiB.
const LEAST_FREE_BYTES: u64 = 64 << 20;

const CALIBRATION: &str = "calibration";

/// What is known of this machine from before.
pub fn calibration() -> Check {
    let Some(home) = home() else {
        let way_out = "set STEPLEDGER_HOME to a folder to keep it in";
        return Check::absent(CALIBRATION, "there is no folder for it: HOME is not set", way_out);
    };
    let file = home.join("calibration.json").display().to_string();
    match Calibrations::load(&home) {
        Err(error) => {
            Check::fails(CALIBRATION, error.to_string(), "mend or remove the file, then calibrate again")
        }
        Ok(known) => calibration_of(known.of(&machine::identity()), &file),
    }
}

/// Rates that scatter widely are there and are no good; runs are held against them all the same.
fn calibration_of(known: Option<&MachineCalibration>, file: &str) -> Check {
    let parts = known.map(measured).unwrap_or_default();
    let listed = || {
        let told: Vec<&str> = parts.iter().map(|part| part.told.as_str()).collect();
        format!("{file}: {}", told.join("; "))
    };
    match parts.iter().any(|part| part.unsteady) {
        true => Check::fails(CALIBRATION, listed(), REST),
        false if parts.is_empty() => {
            let way_out = "`stepledger calibrate` and `stepledger calibrate --noise` measure it";
            Check::absent(CALIBRATION, format!("nothing is known of this machine in {file}"), way_out)
        }
        false => Check::works(CALIBRATION, listed()),
    }
}

const REST: &str = "rates that scatter so widely say little: let the machine come to rest, and `stepledger calibrate` again, with \
     the same --device and --threads";

/// Something that was measured of this machine.
#[derive(Debug, PartialEq)]
struct Measured {
    told: String,
    /// It scattered so widely that it says little.
    unsteady: bool,
}

fn measured(known: &MachineCalibration) -> Vec<Measured> {
    let noise = known.noise.iter().map(|noise| {
        let (device, date) = (noise.device_kind(), noise.measured_at.format("%Y-%m-%d"));
        Measured {
            told: format!("noise of {device} ±{:.2} % ({date})", noise.half_width_pct),
            unsteady: false,
        }
    });
    known.rates.iter().map(measured_rates).chain(noise).collect()
}

fn measured_rates(rates: &DeviceRates) -> Measured {
    let with = rates.threads.map(|number| format!(" with {}", threads(number))).unwrap_or_default();
    let told = format!("rates of {}{with} ({})", rates.device, rates.measured_at.format("%Y-%m-%d"));
    match unsteady_rates(rates) {
        unsteady if unsteady.is_empty() => Measured { told, unsteady: false },
        unsteady => Measured { told: format!("{told}, unsteady: {}", unsteady.join(", ")), unsteady: true },
    }
}

const SPACE: &str = "room for runs";

/// Whether records can be written where runs go.
pub fn free_space(out: &Path) -> Check {
    let folder = out.display();
    match free_bytes(out) {
        Err(error) => Check::fails(
            SPACE,
            error.to_string(),
            "choose another folder with --out, or make this one writable",
        )
        .needed(),
        Ok(bytes) if bytes < LEAST_FREE_BYTES => {
            let found = format!("{} free for {folder}", file_bytes(bytes));
            Check::fails(SPACE, found, "remove runs (`stepledger rm`), or choose another folder with --out")
                .needed()
        }
        Ok(bytes) => Check::works(SPACE, format!("{} free for {folder}", file_bytes(bytes))).needed(),
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use serde_json::json;

    use super::*;
    use crate::report::Standing;
    use crate::store::Noise;

    #[test]
    fn there_is_room_where_a_folder_could_be_made() {
        let check = free_space(Path::new("./not/there/yet"));
        assert_eq!(check.standing, Standing::Works, "{check:?}");
        assert!(check.needed && check.found.contains("free for ./not/there/yet"), "{check:?}");
    }

    #[test]
    fn a_file_in_the_way_is_named() {
        let check = free_space(Path::new("/proc/version/runs"));
        assert_eq!(check.standing, Standing::Fails);
        assert!(check.found.contains("/proc/version") && check.way_out.is_some(), "{check:?}");
    }

    fn noise() -> Noise {
        Noise {
            device: None,
            measured_at: DateTime::UNIX_EPOCH,
            pairs: 5,
            half_width_pct: 1.25,
            pair_sd_pct: 1.0,
            mean_pct: 0.0,
            step_ms: 34.0,
            flags: Vec::new(),
        }
    }

    /// Of a CPU, its products in f32 with such a middle half.
    fn rates(q1: f64, q3: f64) -> DeviceRates {
        let rate = |q1, median, q3| json!({"median": median, "q1": q1, "q3": q3, "rounds": 5});
        let steady = || rate(0.9, 1.0, 1.1);
        serde_json::from_value(json!({
            "device": "cpu", "card": null, "threads": 2, "measured_at": "1970-01-01T00:00:00Z",
            "stepledger": "0.1.0", "torch": "2.11.0", "copy_gb_s": steady(), "triad_gb_s": steady(),
            "matmul_f32_tflop_s": rate(q1, 0.1374, q3), "matmul_bf16_tflop_s": steady(), "fma_f32_tflop_s": null
        }))
        .unwrap()
    }

    #[test]
    fn what_was_measured_is_listed() {
        let known = MachineCalibration {
            noise: vec![noise()],
            rates: vec![rates(0.13, 0.14)],
            ..MachineCalibration::default()
        };
        let check = calibration_of(Some(&known), "a file");
        let found = "a file: rates of cpu with 2 threads (1970-01-01); noise of cpu ±1.25 % (1970-01-01)";
        assert_eq!((check.standing, &*check.found), (Standing::Works, found));
        for nothing in [None, Some(&MachineCalibration::default())] {
            assert_eq!(calibration_of(nothing, "a file").standing, Standing::Absent);
        }
    }

    #[test]
    fn rates_that_scatter_are_no_calibration_that_works() {
        let rates = vec![rates(0.13, 0.14), rates(0.0036, 0.1635)];
        let known = MachineCalibration { rates, ..MachineCalibration::default() };
        let check = calibration_of(Some(&known), "a file");
        assert_eq!((check.standing, check.needed), (Standing::Fails, false));
        let words = "unsteady: matrix product, f32, 3.6 GFLOP/s to 163.5 GFLOP/s";
        assert!(check.found.contains(words) && check.found.matches("unsteady").count() == 1, "{check:?}");
        assert!(check.way_out.is_some_and(|way_out| way_out.contains("calibrate` again")));
    }
}
