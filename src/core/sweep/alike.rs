//! Whether a run was made as the others of its sweep were: only such runs can stand beside each other.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::grid::Grid;
use super::measure::Measure;
use super::order::Turn;
use crate::compare::differing;
use crate::record::{Machine, RunStatus};

/// How the runs of a sweep that are counted were made: as those at most of its turns are. Were it the first one that says
/// so, a strange one among them would make strangers of all others.
#[derive(Debug, Clone, Default)]
pub(super) struct Alike {
    /// The flags that may differ.
    grid: Vec<String>,
    machine: Option<Machine>,
    setting: Option<Map<String, Value>>,
    /// The ids of the complete runs that were made so.
    runs: Vec<String>,
}

impl Alike {
    /// What runs at most of the turns, over this grid, have in common; at as many what began first. Strangers are made
    /// again and again at the same turns: counted one by one, they would come to be the most. Those that are not complete are
    /// asked only where no other is.
    pub fn of<'a>(grid: &Grid, runs: impl Iterator<Item = (Turn, &'a Measure)>) -> Self {
        let (mut complete, mut others): (Vec<(Turn, &Measure)>, Vec<_>) =
            runs.partition(|(_, run)| run.status == RunStatus::Complete);
        let asked = if complete.is_empty() { &mut others } else { &mut complete };
        asked.sort_by(|(_, one), (_, other)| {
            (one.started_at, &one.run_id).cmp(&(other.started_at, &other.run_id))
        });
        let grid: Vec<String> = grid.axes().iter().map(|axis| axis.flag.clone()).collect();
        let nobody = Alike { grid, ..Alike::default() };
        let groups = asked.iter().fold(Vec::<(Alike, HashSet<Turn>)>::new(), |mut groups, (turn, run)| {
            let place =
                groups.iter().position(|(group, _)| group.stranger(run).is_none()).unwrap_or_else(|| {
                    groups.push((nobody.clone(), HashSet::new()));
                    groups.len() - 1
                });
            let (group, turns) = &mut groups[place];
            group.count(run);
            turns.insert(*turn);
            groups
        });
        // The last of the largest is taken, and that is to be the first.
        let most = groups.into_iter().rev().max_by_key(|(_, turns)| turns.len());
        most.map_or(nobody, |(group, _)| group)
    }

    /// The machine that the runs were made on.
    pub fn machine(&self) -> Option<&Machine> {
        self.machine.as_ref()
    }

    /// The ids of the complete runs that are counted.
    pub fn runs(&self) -> &[String] {
        &self.runs
    }

    /// Takes note of a run that is no stranger.
    pub fn count(&mut self, run: &Measure) {
        self.machine.get_or_insert_with(|| run.machine.clone());
        if run.status == RunStatus::Complete {
            self.setting.get_or_insert_with(|| run.setting.clone());
            self.runs.push(run.run_id.clone());
        }
    }

    /// Why a run does not belong to those that are counted.
    pub fn stranger(&self, run: &Measure) -> Option<String> {
        if let Some(ours) = self.machine.as_ref().filter(|ours| !is_same(ours, &run.machine)) {
            let (theirs, ours) = (named(&run.machine), named(ours));
            return Some(format!("it was made on {theirs}, and the runs that are counted on {ours}"));
        }
        // One that failed may not have come as far as to know all of it.
        let ours = self.setting.as_ref().filter(|_| run.status == RunStatus::Complete)?;
        other_setting(ours, &run.setting, &self.grid)
    }
}

/// In what a run differs that `compare` would call another configuration, beside the flags of the grid. How many
/// parameters there are follows from the other fields.
fn other_setting(ours: &Map<String, Value>, theirs: &Map<String, Value>, grid: &[String]) -> Option<String> {
    let differs = differing(ours, theirs);
    let strange = |field: &str| field != "parameters" && !grid.iter().any(|flag| flag == field);
    let strange = differs.iter().filter(|found| found.kind.has_effects() && strange(&found.field));
    let (before, made): (Vec<String>, Vec<String>) = strange
        .map(|found| (part(&found.field, found.base.as_ref()), part(&found.field, found.candidate.as_ref())))
        .unzip();
    let (made, before) = (made.join(", "), before.join(", "));
    (!made.is_empty())
        .then(|| format!("it was made with {made}, and the runs that are counted with {before}"))
}

/// A field in words: `threads 2`.
fn part(field: &str, value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => format!("no {field}"),
        Some(Value::String(text)) => format!("{field} {text}"),
        Some(value) => format!("{field} {value}"),
    }
}

/// Whether what was measured on the one can stand beside what was measured on the other.
pub(super) fn is_same(one: &Machine, other: &Machine) -> bool {
    (&one.host, &one.cpu) == (&other.host, &other.cpu)
}

pub(super) fn named(machine: &Machine) -> String {
    let host = machine.host.as_deref().unwrap_or("a machine without a name");
    machine.cpu.as_ref().map_or_else(|| host.to_owned(), |cpu| format!("{host} ({cpu})"))
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta};
    use serde_json::json;

    use super::super::grid::Axis;
    use super::super::measure::made_up::measure;
    use super::*;

    /// What is standard among runs of these versions of libtorch and on these machines, in the order in which they began.
    fn standard(runs: &[(&str, &str)]) -> (Alike, Vec<Measure>) {
        let made = |(minute, (torch, host)): (usize, &(&str, &str))| {
            let mut run = measure(&format!("r{minute}"), 10.0);
            run.started_at = DateTime::UNIX_EPOCH + TimeDelta::minutes(minute as i64);
            run.machine.host = Some((*host).to_owned());
            run.setting = json!({"torch_version": torch, "batch": minute}).as_object().unwrap().clone();
            run
        };
        let mut runs: Vec<Measure> = runs.iter().enumerate().map(made).collect();
        // As turns come, which is not as they began.
        runs.reverse();
        let grid = Grid::new(vec![Axis::parse("batch", "1,2").unwrap()]).unwrap();
        (Alike::of(&grid, each_of_its_turn(&runs)), runs)
    }

    fn each_of_its_turn(runs: &[Measure]) -> impl Iterator<Item = (Turn, &Measure)> {
        runs.iter().enumerate().map(|(repeat, run)| (Turn { cell: 0, repeat }, run))
    }

    /// A resume under another libtorch is refused, and each further one leaves one more of its runs.
    #[test]
    fn attempts_at_one_turn_have_one_vote() {
        let runs = [(0, "2.11.0"), (1, "2.11.0"), (2, "2.12.0"), (2, "2.12.0"), (2, "2.12.0"), (2, "2.12.0")];
        let made = |(minute, (_, torch)): (usize, &(usize, &str))| {
            let mut run = measure(&format!("r{minute}"), 10.0);
            run.started_at = DateTime::UNIX_EPOCH + TimeDelta::minutes(minute as i64);
            run.setting = json!({"torch_version": torch}).as_object().unwrap().clone();
            run
        };
        let measures: Vec<Measure> = runs.iter().enumerate().map(made).collect();
        let turns = runs.iter().map(|&(repeat, _)| Turn { cell: 0, repeat });
        let alike = Alike::of(&Grid::new(Vec::new()).unwrap(), turns.zip(&measures));
        assert_eq!(alike.runs(), ["r0", "r1"]);
        assert!(alike.stranger(&measures[5]).is_some());
    }

    #[test]
    fn most_runs_say_how_they_are_made_and_not_the_first() {
        let (new, old) = (("2.12.0", "here"), ("2.11.0", "here"));
        for (runs, strangers) in [
            (vec![new, old, old, old], vec!["r0"]),
            (vec![old, new, old, new, old], vec!["r1", "r3"]),
            // As many of both: those that began first.
            (vec![old, new, new, old], vec!["r1", "r2"]),
            (vec![("2.11.0", "there"), old, old], vec!["r0"]),
            (vec![old], vec![]),
        ] {
            let (alike, measures) = standard(&runs);
            let strange = measures.iter().rev().filter(|run| alike.stranger(run).is_some());
            assert_eq!(strange.map(|run| run.run_id.as_str()).collect::<Vec<_>>(), strangers, "{runs:?}");
            assert_eq!(alike.runs().len(), runs.len() - strangers.len(), "{runs:?}");
        }
        let (alike, measures) = standard(&[new, old, old]);
        assert_eq!(
            alike.stranger(&measures[2]).unwrap(),
            "it was made with torch_version 2.12.0, and the runs that are counted with torch_version 2.11.0"
        );
    }

    #[test]
    fn a_run_that_failed_knows_its_machine_alone() {
        let grid = Grid::new(Vec::new()).unwrap();
        let failed = |host: &str| {
            let mut run = Measure { status: RunStatus::Failed, ..measure("failed", 10.0) };
            run.machine.host = Some(host.to_owned());
            run.setting = Map::new();
            run
        };
        let alike = Alike::of(&grid, each_of_its_turn(&[failed("here"), failed("there")]));
        assert!(alike.stranger(&failed("here")).is_none() && alike.stranger(&failed("there")).is_some());
        let mut complete = measure("complete", 10.0);
        complete.machine.host = Some("there".to_owned());
        let alike = Alike::of(&grid, each_of_its_turn(&[failed("here"), failed("here"), complete]));
        assert!(alike.stranger(&failed("there")).is_none() && alike.stranger(&failed("here")).is_some());
        assert!(Alike::of(&grid, each_of_its_turn(&[])).stranger(&failed("here")).is_none());
    }

    #[test]
    fn what_the_grid_does_not_vary_must_be_the_same() {
        let grid = ["seq".to_owned()];
        let ours = json!({"seq": 8, "threads": 2, "torch_version": "2.11.0", "driver_version": null,
            "steps": 60, "parameters": 750});
        let told = |field: &str, value: Value| {
            let mut theirs = ours.clone();
            theirs[field] = value;
            other_setting(ours.as_object().unwrap(), theirs.as_object().unwrap(), &grid)
        };
        for (field, value) in [("seq", 16), ("parameters", 900), ("steps", 30), ("threads", 2)] {
            assert_eq!(told(field, value.into()), None, "{field}");
        }
        let threads = told("threads", 1.into()).unwrap();
        assert_eq!(threads, "it was made with threads 1, and the runs that are counted with threads 2");
        let torch = told("torch_version", "2.12.0".into()).unwrap();
        assert!(
            torch.contains(
                "with torch_version 2.12.0, and the runs that are counted with torch_version 2.11.0"
            )
        );
        let driver = told("driver_version", "595".into()).unwrap();
        assert!(driver.contains("the runs that are counted with no driver_version"), "{driver}");
        assert!(told("batch", 4.into()).is_some(), "a flag that the grid has one value of");
    }
}
