//! What is known of this machine itself, whatever is run on it: kept in `calibration.json` in the user's own folder.

use std::env;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::noise::{Noise, one_or_several};
use super::{Damage, StoreError, file};
use crate::record::{DeviceRates, Machine};

const FILE: &str = "calibration.json";
/// Held by whoever changes the file.
const LOCK: &str = "calibration.lock";

/// The calibrations of a user's machines; a home folder may be shared by several.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Calibrations {
    #[serde(default)]
    machines: Vec<MachineCalibration>,
}

/// What was measured of one machine.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct MachineCalibration {
    pub host: Option<String>,
    pub cpu: Option<String>,
    pub logical_cpus: Option<i64>,
    /// Of each kind of device that it was measured with. One alone may stand without a list.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_several")]
    pub noise: Vec<Noise>,
    /// Of each of its devices, and of its CPU with each number of threads, that was calibrated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<DeviceRates>,
    /// What other builds have measured: kept as it is.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The user's own folder: `$STEPLEDGER_HOME`, else `$XDG_STATE_HOME/stepledger`, else
/// `~/.local/state/stepledger`. `None` where none of them is set.
pub fn home() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = || set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")));
    set("STEPLEDGER_HOME").or_else(|| Some(state()?.join("stepledger")))
}

impl Calibrations {
    /// Those kept in `home`; none where nothing was measured.
    pub fn load(home: &Path) -> Result<Self, StoreError> {
        let path = home.join(FILE);
        let text = match fs::read_to_string(&path) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(Calibrations::default());
            }
            text => text.map_err(|source| StoreError::Read { path: path.clone(), source })?,
        };
        serde_json::from_str(&text)
            .map_err(|error| StoreError::DamagedCalibration { path, damage: Damage::Json(error) })
    }

    /// Changes those kept in `home` and returns their file. Who changes it at the same time is waited for, so that nobody
    /// loses what another has measured.
    pub fn change(home: &Path, change: impl FnOnce(&mut Calibrations)) -> Result<PathBuf, StoreError> {
        let _turn = turn(home)?;
        let mut known = Calibrations::load(home)?;
        change(&mut known);
        known.save(home)
    }

    /// Whether they could be changed: something that takes long to measure is not begun where it could not be kept.
    pub fn check(home: &Path) -> Result<(), StoreError> {
        turn(home)?;
        Calibrations::load(home).map(drop)
    }

    fn save(&self, home: &Path) -> Result<PathBuf, StoreError> {
        let path = home.join(FILE);
        let unwritten =
            |source: serde_json::Error| StoreError::Write { path: path.clone(), source: source.into() };
        let text = serde_json::to_string_pretty(self).map_err(unwritten)?;
        file::replace(&path, (text + "\n").as_bytes())?;
        Ok(path)
    }

    /// What is known of `machine`.
    pub fn of(&self, machine: &Machine) -> Option<&MachineCalibration> {
        self.machines.iter().find(|known| known.is(machine))
    }

    /// What is known of `machine`, to add to.
    pub fn of_mut(&mut self, machine: &Machine) -> &mut MachineCalibration {
        let known = self.machines.iter().position(|known| known.is(machine));
        let place = known.unwrap_or_else(|| {
            self.machines.push(MachineCalibration::new(machine));
            self.machines.len() - 1
        });
        &mut self.machines[place]
    }
}

/// The lock on `home`, for as long as the file is open. Where the file system knows no locks there is none.
fn turn(home: &Path) -> Result<File, StoreError> {
    fs::create_dir_all(home).map_err(|source| StoreError::Write { path: home.to_owned(), source })?;
    let path = home.join(LOCK);
    let file = File::options().create(true).append(true).open(&path);
    let file = file.map_err(|source| StoreError::Write { path, source })?;
    let _ = file.lock();
    Ok(file)
}

impl MachineCalibration {
    fn new(machine: &Machine) -> Self {
        MachineCalibration {
            host: machine.host.clone(),
            cpu: machine.cpu.clone(),
            logical_cpus: machine.logical_cpus,
            ..MachineCalibration::default()
        }
    }

    /// What was measured of a device with this name, computing with so many threads if it is a CPU.
    pub fn rates_of(&self, device: &str, threads: Option<i64>) -> Option<&DeviceRates> {
        self.rates.iter().find(|rates| rates.device == device && rates.threads == threads)
    }

    /// How much runs of the same program differ on a device of this kind.
    pub fn noise_of(&self, device: &str) -> Option<&Noise> {
        self.noise.iter().find(|noise| noise.is_of(device))
    }

    /// Takes in measured noise, in the place of what was known of `device`'s kind.
    pub fn keep_noise(&mut self, device: &str, new: Noise) {
        self.noise.retain(|noise| !noise.is_of(device));
        self.noise.push(new);
    }

    /// Takes in what was measured, in the place of what was known of that device.
    pub fn keep(&mut self, new: DeviceRates) {
        self.rates.retain(|rates| (&rates.device, rates.threads) != (&new.device, new.threads));
        self.rates.push(new);
    }

    fn is(&self, machine: &Machine) -> bool {
        let Machine { host, cpu, logical_cpus, .. } = machine;
        (&self.host, &self.cpu, &self.logical_cpus) == (host, cpu, logical_cpus)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use chrono::DateTime;

    use super::*;
    use crate::record::MeasuredRate;

    fn rates(device: &str, threads: Option<i64>, copy: f64) -> DeviceRates {
        let rate = |median| MeasuredRate { median, q1: median, q3: median, rounds: 5 };
        DeviceRates {
            device: device.to_owned(),
            card: None,
            threads,
            measured_at: DateTime::UNIX_EPOCH,
            stepledger: "0.1.0".to_owned(),
            torch: "2.11.0".to_owned(),
            array_bytes: None,
            caches_bytes: None,
            copy_gb_s: rate(copy),
            triad_gb_s: rate(copy),
            matmul_f32_tflop_s: rate(0.1),
            matmul_bf16_tflop_s: rate(0.2),
            matmul_f32_rows: Some(2048),
            matmul_bf16_rows: None,
            fma_f32_tflop_s: None,
        }
    }

    #[test]
    fn rates_are_those_of_a_device_and_its_threads() {
        let mut machine = MachineCalibration::default();
        for new in [rates("cpu", Some(1), 5.0), rates("cpu", Some(2), 9.0), rates("cpu", Some(2), 10.0)] {
            machine.keep(new);
        }
        let copy = |device, threads| machine.rates_of(device, threads).map(|rates| rates.copy_gb_s.median);
        assert_eq!(copy("cpu", Some(1)), Some(5.0));
        assert_eq!(copy("cpu", Some(2)), Some(10.0), "the newer one is kept");
        assert_eq!((copy("cpu", Some(4)), copy("cuda:0", None)), (None, None));
        assert_eq!(machine.rates.len(), 2);
    }

    #[test]
    fn those_who_measure_at_the_same_time_lose_nothing() {
        let home = env::temp_dir().join(format!("stepledger-turns-{}", std::process::id()));
        let names: Vec<String> = (0..16).map(|card| format!("cuda:{card}")).collect();
        thread::scope(|scope| {
            for name in &names {
                scope.spawn(|| {
                    let keep = |known: &mut Calibrations| {
                        known.of_mut(&Machine::default()).keep(rates(name, None, 9.0));
                    };
                    Calibrations::change(&home, keep).unwrap()
                });
            }
        });
        let kept = Calibrations::load(&home).unwrap();
        let kept = kept.of(&Machine::default()).unwrap();
        assert!(names.iter().all(|name| kept.rates_of(name, None).is_some()), "{kept:?}");
        fs::remove_dir_all(home).unwrap();
    }

    #[test]
    fn a_home_that_cannot_be_written_to_is_told_before() {
        for home in ["/proc/version/home", "/proc/not/there"] {
            let error = Calibrations::check(Path::new(home)).unwrap_err().to_string();
            assert!(error.contains("/proc/"), "{error}");
        }
    }

    #[test]
    fn a_damaged_file_is_named_with_a_way_out_that_helps() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join(FILE), "{\"machines\": [").unwrap();
        let (load, check) = (Calibrations::load(home.path()).map(drop), Calibrations::check(home.path()));
        for error in [load, check].map(Result::unwrap_err) {
            let told = error.to_string();
            assert!(told.contains(FILE) && told.contains("move it away and calibrate again"), "{told}");
            assert!(!told.contains("restore"), "{told}");
        }
    }

    #[test]
    fn rates_of_before_the_sizes_were_kept_are_read() {
        let mut old = serde_json::to_value(rates("cpu", Some(2), 9.0)).unwrap();
        for key in ["matmul_f32_rows", "matmul_bf16_rows", "array_bytes", "caches_bytes"] {
            old.as_object_mut().unwrap().remove(key);
        }
        let read: DeviceRates = serde_json::from_value(old).unwrap();
        assert_eq!((read.matmul_f32_rows, read.matmul_bf16_rows), (None, None));
        assert_eq!((read.array_bytes, read.caches_bytes), (None, None));
    }

    #[test]
    fn a_file_of_before_there_were_rates_is_read_and_what_others_measured_is_kept() {
        let old = r#"{"machines":[{"host":"a","cpu":null,"logical_cpus":2,"later":{"x":1}}]}"#;
        let mut known: Calibrations = serde_json::from_str(old).unwrap();
        let machine = Machine { host: Some("a".to_owned()), logical_cpus: Some(2), ..Machine::default() };
        assert_eq!(known.of(&machine).unwrap().rates, []);
        known.of_mut(&machine).keep(rates("cuda:0", None, 3000.0));
        let again: Calibrations = serde_json::from_str(&serde_json::to_string(&known).unwrap()).unwrap();
        assert_eq!(again, known);
        assert_eq!(again.of(&machine).unwrap().other["later"]["x"], 1);
    }
}
