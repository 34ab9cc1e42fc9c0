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
        let (there, recorded) = (there as u64, u64::try_from(self.steps?).ok()?);
        (there < recorded).then_some(LackingSteps { there, recorded })
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
}
