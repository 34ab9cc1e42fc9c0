//! Made-up runs: rows by hand, through the store.

use std::path::{Path, PathBuf};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use stepledger::record::*;
use stepledger::store::DatasetWriter;

/// A run of three steps after one of warm-up; `minute` says when it started.
#[derive(Debug, Clone)]
pub struct MadeUp {
    pub id: &'static str,
    pub minute: i64,
    /// After that minute has begun.
    pub micros: i64,
    pub batch: i64,
    pub status: RunStatus,
    pub steps: i64,
    /// Of its loader: something that runs may differ in.
    pub workers: i64,
    pub program: &'static str,
    /// The machine it was made on; `None`: not said.
    pub host: Option<&'static str>,
    pub device: &'static str,
    /// All the memory of that device.
    pub memory_gib: Option<i64>,
    /// What else its configuration says, as JSON.
    pub further: &'static str,
}

impl MadeUp {
    pub const fn new(id: &'static str, minute: i64, batch: i64) -> Self {
        let (status, device) = (RunStatus::Complete, "cpu");
        MadeUp {
            id,
            minute,
            micros: 0,
            batch,
            status,
            steps: 3,
            workers: minute,
            program: "made_up",
            host: None,
            device,
            memory_gib: None,
            further: "{}",
        }
    }

    /// Writes it and closes it; returns its folder.
    pub fn write(&self, out: &Path) -> PathBuf {
        self.begin(out).finish(&self.run(), &[]).unwrap()
    }

    /// Writes its steps, and leaves it open.
    pub fn begin(&self, out: &Path) -> DatasetWriter {
        let mut writer = DatasetWriter::create(out, &self.run()).unwrap();
        (0..=self.steps).for_each(|step| writer.push(self.step(step), Vec::new(), Vec::new(), Vec::new()));
        writer.flush(&[]).unwrap();
        writer
    }

    /// Steps of `batch` ms (the warm-up one of a second), 10 tokens an entry, a MiB a step's number and entry.
    fn step(&self, step: i64) -> StepRow {
        StepRow {
            step,
            warmup: step == 0,
            started_at: self.started_at(),
            wall_ns: if step == 0 { 1_000_000_000 } else { self.batch * 1_000_000 },
            loss: Some(1.0),
            tokens: Some(10 * self.batch),
            device_busy_pct: None,
            cpu_wait_ns: None,
            events: 1,
            dropped_events: 0,
            peak_bytes: Some((step * self.batch) << 20),
            peak_phase: Some(Phase::Backward),
            difference_bytes: Some(0),
            observer_ns: 1,
            rounding_bytes: None,
            cached_bytes: None,
            non_torch_bytes: None,
            transfer_ns: None,
            sync_ns: None,
            launch_ns: None,
            lead_ns: None,
            optimizer_calls: Some(1),
        }
    }

    fn started_at(&self) -> DateTime<Utc> {
        DateTime::from_timestamp(1_769_860_800, 0).unwrap()
            + TimeDelta::minutes(self.minute)
            + TimeDelta::microseconds(self.micros)
    }

    fn run(&self) -> RunRow {
        let mut config = json!({
            "batch": self.batch, "checkpoint": "none", "steps": 3, "dtype": "f32", "loader": { "workers": self.workers },
        });
        if self.program == "gpt" {
            // As a toy model's own loop has it.
            let sizes = json!({ "model": "gpt", "layers": 4, "width": 128, "heads": 4, "seq": 64, "attention": "sdpa" });
            config.as_object_mut().unwrap().extend(sizes.as_object().unwrap().clone());
            config["warmup"] = 1.into();
            config["loader_delay_ms"] = 0.into();
        }
        let further: serde_json::Value = serde_json::from_str(self.further).unwrap();
        config.as_object_mut().unwrap().extend(further.as_object().unwrap().clone());
        let memory_bytes = self.memory_gib.map(|gib| gib << 30);
        RunRow {
            schema_version: SCHEMA_VERSION,
            run_id: self.id.to_owned(),
            rank: 0,
            program: self.program.to_owned(),
            status: self.status,
            reason: None,
            started_at: self.started_at(),
            finished_at: None,
            config: config.as_object().unwrap().clone(),
            device: self.device.to_owned(),
            parameters: Some(3),
            trace: Trace::Allocations,
            capacity_bytes: None,
            out_of_memory: None,
            machine: Machine { host: self.host.map(str::to_owned), memory_bytes, ..Machine::default() },
            device_facts: DeviceFacts { device_memory_bytes: memory_bytes, ..DeviceFacts::default() },
            reference_rates: None,
            stepledger_version: "0.1.0".to_owned(),
            torch_version: None,
            steps: Some(4),
            events: 4,
            dropped_events: 0,
            hook_ns_per_event: None,
            missing: Vec::new(),
        }
    }
}
