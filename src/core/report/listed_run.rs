//! One line of a list of runs, and its fields by name.

use std::path::Path;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use serde_json::{Map, Value};

use super::step_rates::StepRates;
use crate::record::{Recency, RunRow};

/// The status of a run whose files are damaged.
pub const UNREADABLE: &str = "unreadable";

/// A run in a list. Its fields, in order, are the documented object of `list --json`; the row's facts among them
/// can be filtered and sorted by.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ListedRun {
    pub run_id: String,
    pub dir: String,
    /// When it began, or where that cannot be read how old its file is: a list is in the order of this.
    #[serde(skip)]
    pub began: Option<DateTime<Utc>>,
    /// UTC, to the microsecond, which is what the dataset keeps; null for a run that is unreadable, like all that follows but status and reason.
    pub started_at: Option<String>,
    pub finished_at: Option<String>,
    pub program: Option<String>,
    /// As in `run.parquet`, but `interrupted` where it says `running` and nobody writes it, `incomplete` where steps of a
    /// complete one are gone, and `unreadable`.
    pub status: String,
    pub reason: Option<String>,
    pub device: Option<String>,
    pub host: Option<String>,
    pub cpu: Option<String>,
    pub trace: Option<String>,
    /// Measured ones.
    pub steps: Option<usize>,
    /// The median of the measured steps.
    pub step_ms: Option<f64>,
    pub tokens_per_s: Option<f64>,
    pub peak_bytes: Option<i64>,
    pub parameters: Option<i64>,
    pub capacity_bytes: Option<i64>,
    pub stepledger: Option<String>,
    pub torch: Option<String>,
    pub config: Map<String, Value>,
}

/// The facts that can be asked for by name beside the configuration's fields.
pub const FACTS: &[&str] = &[
    "id",
    "run_id",
    "dir",
    "started",
    "started_at",
    "finished_at",
    "program",
    "status",
    "reason",
    "device",
    "host",
    "cpu",
    "trace",
    "steps",
    "step_ms",
    "tokens_per_s",
    "peak_mib",
    "peak_bytes",
    "parameters",
    "capacity_bytes",
    "stepledger",
    "torch",
];

/// Facts that are times, as text in ISO's format and UTC.
pub const TIMES: [&str; 3] = ["started", "started_at", "finished_at"];

/// Facts that are versions of programs.
pub const VERSIONS: [&str; 2] = ["stepledger", "torch"];

impl ListedRun {
    /// A run whose row could be read, as it stands; so many of its steps are `there`, warm-up included.
    pub fn of(dir: String, run: &RunRow, there: usize, rates: &StepRates) -> Self {
        let (status, reason) = run.told_status(there);
        ListedRun {
            run_id: run.run_id.clone(),
            dir,
            began: Some(run.started_at),
            started_at: Some(instant(run.started_at)),
            finished_at: run.finished_at.map(instant),
            program: Some(run.program.clone()),
            status: status.to_owned(),
            reason,
            device: Some(run.device.clone()),
            host: run.machine.host.clone(),
            cpu: run.machine.cpu.clone(),
            trace: Some(run.trace.to_string()),
            steps: Some(rates.n),
            step_ms: rates.median_ms,
            tokens_per_s: rates.tokens_per_s,
            peak_bytes: rates.peak_bytes,
            parameters: run.parameters,
            capacity_bytes: run.capacity_bytes,
            stepledger: Some(run.stepledger_version.clone()),
            torch: run.torch_version.clone(),
            config: run.config.clone(),
        }
    }

    /// A folder of a run of which nothing is known but this status, and why.
    pub fn without_row(run_id: String, dir: String, status: &str, reason: Option<String>) -> Self {
        ListedRun {
            run_id,
            dir,
            began: None,
            started_at: None,
            finished_at: None,
            program: None,
            status: status.to_owned(),
            reason,
            device: None,
            host: None,
            cpu: None,
            trace: None,
            steps: None,
            step_ms: None,
            tokens_per_s: None,
            peak_bytes: None,
            parameters: None,
            capacity_bytes: None,
            stepledger: None,
            torch: None,
            config: Map::new(),
        }
    }

    /// By which the newest run is known.
    pub fn recency(&self) -> Recency {
        Recency::of(self.began, Path::new(&self.dir))
    }

    /// A fact, or else a field of the configuration, dotted where it is nested; `config.` before a name means the
    /// configuration's. Null where this run has none.
    pub fn field(&self, name: &str) -> Value {
        match name {
            "id" | "run_id" => self.run_id.clone().into(),
            "dir" => self.dir.clone().into(),
            "started" | "started_at" => self.started_at.clone().into(),
            "finished_at" => self.finished_at.clone().into(),
            "program" => self.program.clone().into(),
            "status" => self.status.clone().into(),
            "reason" => self.reason.clone().into(),
            "device" => self.device.clone().into(),
            "host" => self.host.clone().into(),
            "cpu" => self.cpu.clone().into(),
            "trace" => self.trace.clone().into(),
            "steps" => self.steps.into(),
            "step_ms" => self.step_ms.into(),
            "tokens_per_s" => self.tokens_per_s.into(),
            "peak_mib" => self.peak_bytes.map(|bytes| bytes as f64 / 1_048_576.0).into(),
            "peak_bytes" => self.peak_bytes.into(),
            "parameters" => self.parameters.into(),
            "capacity_bytes" => self.capacity_bytes.into(),
            "stepledger" => self.stepledger.clone().into(),
            "torch" => self.torch.clone().into(),
            _ => self.configured(name).cloned().unwrap_or(Value::Null),
        }
    }

    /// Whether the configuration has a field of this name.
    pub fn configures(&self, name: &str) -> bool {
        self.configured(name).is_some()
    }

    fn configured(&self, name: &str) -> Option<&Value> {
        let name = name.strip_prefix("config.").unwrap_or(name);
        self.config.get(name).or_else(|| {
            let mut parts = name.split('.');
            let first = self.config.get(parts.next()?)?;
            parts.try_fold(first, |value, part| value.get(part))
        })
    }

    /// The names of the configuration's fields, dotted where they are nested.
    pub fn configured_names(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.config.iter().for_each(|(name, value)| name_all(name, value, &mut names));
        names
    }
}

fn name_all(path: &str, value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| name_all(&format!("{path}.{name}"), value, names));
        }
        _ => names.push(path.to_owned()),
    }
}

/// All of one length, so that their letters have the order of the instants.
pub(super) fn instant(instant: DateTime<Utc>) -> String {
    instant.to_rfc3339_opts(SecondsFormat::Micros, true)
}
