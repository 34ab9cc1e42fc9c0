//! What a run should have and does not.

use super::{RunRow, RunStatus, StepRow};

/// The programs whose configuration says with `steps` how many measured ones they make: our own.
pub(crate) const COUNTED: [&str; 2] = ["gpt", "mlp"];

/// What is told of a run that completed, and has lost steps since.
pub const INCOMPLETE: &str = "incomplete";

/// Why a run is known to have lost steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LackingSteps {
    /// Of the measured steps that it was asked for only so many are there.
    #[error("{there} of its {asked} measured steps are there")]
    Asked { there: u64, asked: u64 },
    /// Steps are numbered from 0 on, and one before the last that is there is missing.
    #[error("{there} of its first {all} steps are there, and step {first} is missing")]
    Gap { there: u64, all: u64, first: u64 },
}

/// Which of a run's steps are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StepsThere {
    measured: u64,
    gap: Option<LackingSteps>,
}

impl StepsThere {
    /// From the number of each, and whether it is of warm-up, in any order.
    pub fn of(steps: impl Iterator<Item = (i64, bool)>) -> Self {
        let mut measured = 0;
        let mut numbers: Vec<i64> = Vec::new();
        for (number, warmup) in steps {
            measured += u64::from(!warmup);
            numbers.push(number);
        }
        numbers.sort_unstable();
        numbers.dedup();
        StepsThere { measured, gap: gap(&numbers) }
    }
}

impl From<&[StepRow]> for StepsThere {
    fn from(steps: &[StepRow]) -> Self {
        StepsThere::of(steps.iter().map(|step| (step.step, step.warmup)))
    }
}

/// The first number from 0 on that is not there, of numbers that rise.
fn gap(numbers: &[i64]) -> Option<LackingSteps> {
    let first = (0..).zip(numbers).find(|(expected, number)| expected != *number)?.0;
    let all = u64::try_from(*numbers.last()?).ok()? + 1;
    Some(LackingSteps::Gap { there: numbers.len() as u64, all, first: first as u64 })
}

impl RunRow {
    /// The steps missing from this run, of which these are there: though it may say that it is complete, a part of them may
    /// have been moved away since. `None` where none is missing, or nobody can tell.
    ///
    /// Steps are numbered from 0 without a gap, whatever the program: a part that is gone from among others shows. That
    /// the last ones are gone shows for the toy models' runs alone, whose configuration says how many were asked for. What
    /// another program means by `steps` (measured ones, or those of warm-up too) is not known, and may be called anything:
    /// its runs are never held to it.
    pub fn lacks(&self, steps: StepsThere) -> Option<LackingSteps> {
        let there = steps.measured;
        let short = self.asked().filter(|&asked| there < asked);
        short.map(|asked| LackingSteps::Asked { there, asked }).or(steps.gap)
    }

    /// The measured steps that a toy model was asked for. Its runs are known by what `stepledger run` alone records
    /// together: the model under the program's own name, and the flags of its loop.
    fn asked(&self) -> Option<u64> {
        let field = |name: &str| self.config.get(name);
        let is_model = COUNTED.contains(&self.program.as_str())
            && field("model").and_then(serde_json::Value::as_str) == Some(&self.program);
        let is_ours = is_model && field("warmup").is_some() && field("loader_delay_ms").is_some();
        field("steps").filter(|_| is_ours)?.as_u64()
    }

    /// The status to tell of this run, of which these steps are there, and the reason: as its row has them, but
    /// [`INCOMPLETE`] where it says that it is complete and steps are missing.
    pub fn told_status(&self, steps: StepsThere) -> (&'static str, Option<String>) {
        match self.lacks(steps).filter(|_| self.status == RunStatus::Complete) {
            Some(lacks) => (INCOMPLETE, Some(lacks.to_string())),
            None => (self.status.as_str(), self.reason.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::compare::made_up::Made;

    fn there(numbers: impl IntoIterator<Item = i64>) -> StepsThere {
        StepsThere::of(numbers.into_iter().map(|number| (number, number < 10)))
    }

    fn run(program: &str, config: serde_json::Value) -> RunRow {
        let run = Made::default().tables("a", 0).run;
        RunRow { program: program.to_owned(), config: config.as_object().unwrap().clone(), ..run }
    }

    #[test]
    fn a_part_that_is_gone_from_among_others_shows_of_any_program() {
        let mine = run("mine", json!({ "steps": 500 }));
        for (numbers, told) in [
            ((0..100).collect::<Vec<_>>(), None),
            ((0..100).rev().collect(), None),
            (Vec::new(), None),
            ((50..100).collect(), Some("50 of its first 100 steps are there, and step 0 is missing")),
            (
                (0..50).chain(60..100).collect(),
                Some("90 of its first 100 steps are there, and step 50 is missing"),
            ),
        ] {
            let lacks = mine.lacks(there(numbers)).map(|lacks| lacks.to_string());
            assert_eq!(lacks.as_deref(), told);
        }
    }

    /// 10 of warm-up and 90 measured ones.
    #[test]
    fn how_many_there_should_be_is_known_of_our_own_loop_alone() {
        let ours = json!({ "model": "mlp", "steps": 100, "warmup": 10, "loader_delay_ms": 0 });
        let short = run("mlp", ours.clone()).lacks(there(0..100));
        assert_eq!(short, Some(LackingSteps::Asked { there: 90, asked: 100 }));
        assert_eq!(run("mlp", ours.clone()).lacks(there(0..110)), None);
        for (program, config) in [
            ("mlp", json!({ "steps": 100 })),
            ("mlp", json!({ "model": "mlp", "steps": 100, "warmup": 10 })),
            ("gpt", ours.clone()),
            ("mine", ours),
        ] {
            assert_eq!(run(program, config.clone()).lacks(there(0..100)), None, "{program} {config}");
        }
    }
}
