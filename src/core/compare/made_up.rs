//! Made-up runs of known speed, for tests.

use chrono::{DateTime, TimeDelta};
use serde_json::Map;

use super::repeat::RunTables;
use crate::record::{DeviceFacts, Machine, RunRow, RunStatus, SCHEMA_VERSION, StepRow, Trace};
use crate::stats::SplitMix64;

/// One run, and what can be different about it.
#[derive(Debug, Clone, Copy)]
pub struct Made {
    pub step_ms: f64,
    pub steps: usize,
    /// How much longer the last step takes than the first, as a share.
    pub slope: f64,
    /// How much longer the steps of the second half take.
    pub jump: f64,
    /// What the observer takes of a step, as a share.
    pub overhead: f64,
    pub seed: i64,
    pub device: &'static str,
}

impl Default for Made {
    fn default() -> Self {
        Made { step_ms: 10.0, steps: 100, slope: 0.0, jump: 0.0, overhead: 0.0, seed: 1, device: "cpu" }
    }
}

impl Made {
    /// The run's tables, as they would be read; it started in this minute.
    pub fn tables(&self, run_id: &str, minute: i64) -> RunTables {
        let mut random = SplitMix64::new(minute as u64);
        let steps = (0..self.steps).map(|step| self.step(step, random.below(1000))).collect();
        RunTables { run: self.run(run_id, minute), steps, phases: Vec::new(), ledger: Vec::new() }
    }

    /// Steps scatter by a percent.
    fn step(&self, step: usize, permille: usize) -> StepRow {
        let scatter = 0.02 * (permille as f64 / 1000.0 - 0.5);
        let slope = self.slope * step as f64 / self.steps as f64;
        let jump = if 2 * step >= self.steps { self.jump } else { 0.0 };
        let wall_ns = (1e6 * self.step_ms * (1.0 + scatter + slope + jump)) as i64;
        let observer_ns = (self.overhead * wall_ns as f64) as i64;
        StepRow { step: step as i64, wall_ns, observer_ns, ..StepRow::default() }
    }

    fn run(&self, run_id: &str, minute: i64) -> RunRow {
        let started_at = DateTime::UNIX_EPOCH + TimeDelta::minutes(minute);
        let mut config = Map::new();
        config.insert("seed".to_owned(), self.seed.into());
        RunRow {
            schema_version: SCHEMA_VERSION,
            run_id: run_id.to_owned(),
            rank: 0,
            program: "made-up".to_owned(),
            status: RunStatus::Complete,
            reason: None,
            started_at,
            finished_at: Some(started_at + TimeDelta::seconds(1)),
            config,
            device: self.device.to_owned(),
            parameters: None,
            trace: Trace::Phases,
            capacity_bytes: None,
            out_of_memory: None,
            machine: Machine { host: Some("here".to_owned()), ..Machine::default() },
            device_facts: DeviceFacts::default(),
            reference_rates: None,
            stepledger_version: "0.1.0".to_owned(),
            torch_version: None,
            steps: Some(self.steps as i64),
            events: 0,
            dropped_events: 0,
            hook_ns_per_event: None,
            missing: Vec::new(),
        }
    }
}
