//! The runs of one side.

use std::collections::BTreeSet;

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
    /// The calibrations that its runs were made under, each once.
    pub calibrations: Vec<Value>,
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
}

impl Gathering {
    pub fn new(name: &str) -> Self {
        let side = Side {
            name: name.to_owned(),
            setting: Map::new(),
            machine: Machine::default(),
            calibrations: Vec::new(),
            repeats: Vec::new(),
            left_out: Vec::new(),
            losses: Losses::default(),
        };
        Gathering { side, varying: BTreeSet::new() }
    }

    /// Adds a run, if it can be compared.
    pub fn add(&mut self, tables: &RunTables) -> Result<(), Unusable> {
        let repeat = Repeat::of(tables)?;
        let (setting, side) = (setting(&tables.run), &mut self.side);
        if side.repeats.is_empty() {
            (side.setting, side.machine) = (setting, tables.run.machine.clone());
        } else {
            let fields = differing(&side.setting, &setting).into_iter().map(|difference| difference.field);
            self.varying.extend(fields);
        }
        let calibration = calibration(&tables.run);
        if !side.calibrations.contains(&calibration) {
            side.calibrations.push(calibration);
        }
        side.losses.add(&tables.steps);
        side.repeats.push(repeat);
        // Only a run that is alone speaks for itself step by step; a thousand must not be held in memory.
        if side.repeats.len() > 1 {
            side.repeats.iter_mut().for_each(|repeat| repeat.log_times = None);
        }
        Ok(())
    }

    pub fn leave_out(&mut self, run: String, why: &Unusable) {
        self.side.left_out.push(LeftOut { run, why: why.to_string() });
    }

    /// The side, once all its runs were seen.
    pub fn finish(self) -> Result<Side, CompareError> {
        let Gathering { mut side, varying } = self;
        if !varying.is_empty() {
            let fields = varying.into_iter().collect();
            return Err(CompareError::SeveralConfigurations { name: side.name, fields });
        }
        if side.repeats.is_empty() {
            let reason = |run: &LeftOut| format!("{}: {}", run.run, run.why);
            let reasons = side.left_out.iter().map(reason).collect();
            return Err(CompareError::NothingUsable { name: side.name, reasons });
        }
        side.repeats.sort_by(|a, b| (a.started_at, &a.run_id).cmp(&(b.started_at, &b.run_id)));
        Ok(side)
    }
}
