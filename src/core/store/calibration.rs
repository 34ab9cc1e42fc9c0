//! What is known of this machine itself, whatever is run on it: kept in `calibration.json` in the user's own folder.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Damage, StoreError, file, instant};
use crate::record::Machine;

const FILE: &str = "calibration.json";

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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<Noise>,
    /// What other builds have measured: kept as it is.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// How much runs of the same program differ here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    #[serde(with = "instant")]
    pub measured_at: DateTime<Utc>,
    /// Pairs of runs of the same program.
    pub pairs: usize,
    /// Half the width of Student's 95 % interval of the pairs' log ratios, in percent.
    pub half_width_pct: f64,
    /// The standard deviation of the pairs' log ratios, in percent.
    pub pair_sd_pct: f64,
    /// The mean log ratio in percent, which would be 0 if chance had no part in it.
    pub mean_pct: f64,
    pub step_ms: f64,
    /// The flags of `stepledger run` that it was measured with.
    pub flags: Vec<String>,
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
        serde_json::from_str(&text).map_err(|error| StoreError::Damaged { path, damage: Damage::Json(error) })
    }

    /// Keeps them; returns the file.
    pub fn save(&self, home: &Path) -> Result<PathBuf, StoreError> {
        fs::create_dir_all(home).map_err(|source| StoreError::Write { path: home.to_owned(), source })?;
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

impl MachineCalibration {
    fn new(machine: &Machine) -> Self {
        MachineCalibration {
            host: machine.host.clone(),
            cpu: machine.cpu.clone(),
            logical_cpus: machine.logical_cpus,
            ..MachineCalibration::default()
        }
    }

    fn is(&self, machine: &Machine) -> bool {
        let Machine { host, cpu, logical_cpus, .. } = machine;
        (&self.host, &self.cpu, &self.logical_cpus) == (host, cpu, logical_cpus)
    }
}
