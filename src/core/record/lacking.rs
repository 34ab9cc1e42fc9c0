//! What a run should have and does not.

use super::{RunRow, RunStatus};

/// What is told of a run that completed, and has lost steps since.
pub const INCOMPLETE: &str = "incomplete";

/// Of the steps that a run has recorded, warm-up included, only so many are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{there} of its {recorded} steps are there")]
pub struct LackingSteps {
    pub there: u64,
    pub recorded: u64,
}

impl RunRow {
    /// The steps missing from this run, of which so many are there: though it may say that it is complete, a part of them
    /// may have been moved away since. `None` where none is missing, or nobody can tell: its row says how many there were.
    pub fn lacks(&self, there: usize) -> Option<LackingSteps> {
        let recorded = self.steps.or_else(|| self.asked_for())?;
        let (there, recorded) = (there as u64, u64::try_from(recorded).ok()?);
        (there < recorded).then_some(LackingSteps { there, recorded })
    }

    /// How many steps a toy model's run was asked for, of a version whose rows did not say how many it recorded. It is
    /// known by its configuration, of fields that no other program has together.
    fn asked_for(&self) -> Option<i64> {
        let field = |name: &str| self.config.get(name);
        let earlier = self.schema_version < 4 && self.status == RunStatus::Complete;
        let is_toy = field("model")?.as_str()? == self.program && field("loader_delay_ms").is_some();
        let (steps, warmup) = (field("steps")?.as_i64()?, field("warmup")?.as_i64()?);
        (earlier && is_toy).then(|| steps.checked_add(warmup)).flatten()
    }

    /// The status to tell of this run, of which so many steps are there, and the reason: as its row has them, but
    /// [`INCOMPLETE`] where it says that it is complete and steps are missing.
    pub fn told_status(&self, there: usize) -> (&'static str, Option<String>) {
        match self.lacks(there).filter(|_| self.status == RunStatus::Complete) {
            Some(lacks) => (INCOMPLETE, Some(lacks.to_string())),
            None => (self.status.as_str(), self.reason.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::made_up::Made;

    #[test]
    fn steps_are_missing_where_there_were_more() {
        let run = |steps| RunRow { steps, ..Made::default().tables("a", 0).run };
        let lacks = |steps, there| run(steps).lacks(there).map(|lacks| lacks.to_string());
        assert_eq!(lacks(Some(110), 90).as_deref(), Some("90 of its 110 steps are there"));
        assert_eq!((lacks(Some(110), 110), lacks(Some(0), 0), lacks(None, 90)), (None, None, None));
        assert_eq!(run(Some(110)).told_status(90).0, INCOMPLETE);
        let failed =
            RunRow { status: RunStatus::Failed, reason: Some("a fault".to_owned()), ..run(Some(110)) };
        assert_eq!(failed.told_status(90), ("failed", Some("a fault".to_owned())));
    }

    #[test]
    fn of_earlier_versions_the_toy_models_tell_what_they_were_asked_for() {
        let config = serde_json::json!({ "model": "mlp", "steps": 100, "warmup": 10, "loader_delay_ms": 0 });
        let config = config.as_object().unwrap().clone();
        let run = Made::default().tables("a", 0).run;
        let earlier = RunRow {
            schema_version: 3,
            steps: None,
            program: "mlp".to_owned(),
            config: config.clone(),
            ..run
        };
        let lacks = |run: RunRow| run.lacks(90).map(|lacks| lacks.recorded);
        assert_eq!(lacks(earlier.clone()), Some(110));
        for other in [
            RunRow { schema_version: 4, ..earlier.clone() },
            RunRow { program: "mine".to_owned(), ..earlier.clone() },
            RunRow { config: [("steps".to_owned(), 100.into())].into_iter().collect(), ..earlier },
        ] {
            assert_eq!(lacks(other), None);
        }
    }
}
