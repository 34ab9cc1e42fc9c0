//! The runs of one side.

use std::collections::{BTreeSet, HashSet};

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Map, Value};

use super::losses::Losses;
use super::repeat::{Repeat, RunTables};
use super::setting::{calibration, differing, setting};
use super::{CompareError, Unusable};
use crate::record::Machine;

/// Repeats of one configuration, in the order in which they started.
#[derive(Debug, Clone, PartialEq)]
pub struct Side {
    /// What was asked for: a run, a folder, a baseline.
    pub name: String,
    /// What all of them have in common: configuration, machine, versions.
    pub setting: Map<String, Value>,
    pub machine: Machine,
    /// Such as `cpu`.
    pub device: String,
    /// The calibrations that its runs were made under, each once.
    pub calibrations: Vec<Value>,
    /// Those at one place of both sides are a pair.
    pub repeats: Vec<Repeat>,
    pub left_out: Vec<LeftOut>,
    pub(super) losses: Losses,
}

/// A run that lies with the others and is no repeat.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeftOut {
    pub run: String,
    pub why: String,
}

/// Takes in a side's runs one at a time, and keeps little of each.
#[derive(Debug)]
pub struct Gathering {
    side: Side,
    /// Fields that are not the same in all runs.
    varying: BTreeSet<String>,
    /// Each run's id and start, by which copies of it are known.
    seen: HashSet<(String, DateTime<Utc>)>,
    /// The place of the run that started first.
    first: usize,
}

impl Gathering {
    pub fn new(name: &str) -> Self {
        let side = Side {
            name: name.to_owned(),
            setting: Map::new(),
            machine: Machine::default(),
            device: String::new(),
            calibrations: Vec::new(),
            repeats: Vec::new(),
            left_out: Vec::new(),
            losses: Losses::default(),
        };
        Gathering { side, varying: BTreeSet::new(), seen: HashSet::new(), first: 0 }
    }

    /// Adds a run, if it can be compared and was not seen before.
    pub fn add(&mut self, tables: &RunTables) -> Result<(), Unusable> {
        let repeat = Repeat::of(tables)?;
        if !self.seen.insert((repeat.run_id.clone(), repeat.started_at)) {
            return Err(Unusable::Copy { of: repeat.run_id });
        }
        let (setting, side) = (setting(&tables.run, &tables.steps), &mut self.side);
        if side.repeats.is_empty() {
            side.setting = setting;
            (side.machine, side.device) = (tables.run.machine.clone(), tables.run.device.clone());
        } else {
            let fields = differing(&side.setting, &setting).into_iter().map(|difference| difference.field);
            self.varying.extend(fields);
        }
        let calibration = calibration(&tables.run);
        if !side.calibrations.contains(&calibration) {
            side.calibrations.push(calibration);
        }
        side.losses.add(&repeat, &tables.steps);
        self.push(repeat);
        Ok(())
    }

    /// Only the run that started first may have to speak for itself step by step, if it is the only one of its side in a
    /// pair; the steps of a thousand must not be held in memory.
    fn push(&mut self, repeat: Repeat) {
        let repeats = &mut self.side.repeats;
        repeats.push(repeat);
        let new = repeats.len() - 1;
        let (first, later) = if repeats[new].when() < repeats[self.first].when() {
            (new, self.first)
        } else {
            (self.first, new)
        };
        if later != first {
            repeats[later].log_times = None;
        }
        self.first = first;
    }

    pub fn leave_out(&mut self, run: String, why: &Unusable) {
        self.side.left_out.push(LeftOut { run, why: why.to_string() });
    }

    /// The side, once all its runs were seen.
    pub fn finish(self) -> Result<Side, CompareError> {
        let Gathering { mut side, varying, .. } = self;
        if !varying.is_empty() {
            let fields = varying.into_iter().collect();
            return Err(CompareError::SeveralConfigurations { name: side.name, fields });
        }
        if side.repeats.is_empty() {
            let reason = |run: &LeftOut| format!("{}: {}", run.run, run.why);
            let reasons = side.left_out.iter().map(reason).collect();
            return Err(CompareError::NothingUsable { name: side.name, reasons });
        }
        side.repeats.sort_by(|a, b| a.when().cmp(&b.when()));
        // In whatever order the folder gave them.
        side.calibrations.sort_by_key(Value::to_string);
        Ok(side)
    }
}
