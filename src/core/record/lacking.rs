//! Steps that a run should have and does not.

use super::{RunRow, RunStatus};

/// The programs whose configuration says with `steps` how many measured ones they make: our own. What a loop of the
/// user's own means by it is not known.
pub(crate) const COUNTED: [&str; 2] = ["gpt", "mlp"];

/// What is told of a run that completed, and has lost steps since.
pub const INCOMPLETE: &str = "incomplete";

/// Of so many measured steps that a run was asked for only so many are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{there} of its {asked} measured steps are there")]
pub struct LackingSteps {
    pub there: u64,
    pub asked: u64,
}

impl RunRow {
    /// The steps missing from this run, of which so many measured ones are there: though it may say that it is complete,
    /// a part of them may have been moved away since. `None` where none is missing, or nobody can tell.
    pub fn lacks(&self, measured: usize) -> Option<LackingSteps> {
        let counted = COUNTED.contains(&self.program.as_str());
        let asked = self.config.get("steps").filter(|_| counted)?.as_u64()?;
        let there = measured as u64;
        (there < asked).then_some(LackingSteps { there, asked })
    }

    /// The status to tell of this run, of which so many measured steps are there, and the reason: as its row has them, but
    /// [`INCOMPLETE`] where it says that it is complete and steps are missing.
    pub fn told_status(&self, measured: usize) -> (&'static str, Option<String>) {
        match self.lacks(measured).filter(|_| self.status == RunStatus::Complete) {
            Some(lacks) => (INCOMPLETE, Some(lacks.to_string())),
            None => (self.status.as_str(), self.reason.clone()),
        }
    }
}
