//! Names that stand for a run, or for a folder of its repeats: kept in `<out>/baselines.json`.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::folders::is_plain;
use super::locate::exactly;
use super::{Damage, StoreError, file};
use crate::record::instant;

const FILE: &str = "baselines.json";

/// The baselines of one folder of runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Baselines {
    #[serde(default)]
    baselines: BTreeMap<String, Baseline>,
}

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// A run's folder or a folder of runs: below the folder that the baselines lie in, or an absolute path.
    pub place: PathBuf,
    #[serde(with = "instant")]
    pub set_at: DateTime<Utc>,
}

impl Baselines {
    /// Those of the folder `out`; none where nothing was set.
    pub fn load(out: &Path) -> Result<Self, StoreError> {
        let path = out.join(FILE);
        let text = match fs::read_to_string(&path) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(Baselines::default());
            }
            text => text.map_err(|source| StoreError::Read { path: path.clone(), source })?,
        };
        serde_json::from_str(&text).map_err(|error| StoreError::Damaged { path, damage: Damage::Json(error) })
    }

    /// Keeps them; the file changes in one instant.
    pub fn save(&self, out: &Path) -> Result<(), StoreError> {
        let path = out.join(FILE);
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| StoreError::Write { path: path.clone(), source: error.into() })?;
        file::replace(&path, (text + "\n").as_bytes())?;
        file::sync_folder(out)
    }

    /// Where `name` points.
    pub fn place(&self, name: &str) -> Option<&Path> {
        self.baselines.get(name).map(|baseline| baseline.place.as_path())
    }

    /// By name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Baseline)> {
        self.baselines.iter().map(|(name, baseline)| (name.as_str(), baseline))
    }

    /// Refuses what cannot name a baseline of the folder `out`: what is no plain name, and what runs there, or in its
    /// sweeps, are found by. It would hide the baseline, or the baseline it.
    pub fn check_name(out: &Path, name: &str) -> Result<(), StoreError> {
        let allowed = |c: char| c.is_alphanumeric() || "-_.".contains(c);
        if !is_plain(name) || !name.chars().all(allowed) {
            return Err(StoreError::BaselineName(name.to_owned()));
        }
        let folder = Some(out.join(name)).filter(|place| place.is_dir());
        folder.or_else(|| exactly(out, name)).map_or(Ok(()), |place| Err(StoreError::BaselineTaken(place)))
    }

    /// Lets `name` stand for `place`; returns what it stood for before.
    pub fn set(&mut self, out: &Path, name: &str, place: &Path, set_at: DateTime<Utc>) -> Option<Baseline> {
        self.baselines.insert(name.to_owned(), Baseline { place: portable(out, place), set_at })
    }

    /// Forgets `name`; the runs stay.
    pub fn remove(&mut self, name: &str) -> Result<Baseline, StoreError> {
        let known = || self.baselines.keys().cloned().collect::<Vec<_>>().join(", ");
        let missing = StoreError::NoSuchBaseline { name: name.to_owned(), known: known() };
        self.baselines.remove(name).ok_or(missing)
    }
}

/// Below `out` where it lies there, so that the folder can be moved as a whole.
fn portable(out: &Path, place: &Path) -> PathBuf {
    let whole = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (out, place) = (whole(out), whole(place));
    place.strip_prefix(&out).map(Path::to_owned).unwrap_or(place)
}
