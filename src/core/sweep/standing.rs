//! How the cells of a sweep stand to the question which of them to take.

use super::cell::CellResult;

/// Whether a cell is in the running, and if not, why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Measured, and known to fit where there is something to fit into.
    Taken,
    /// It does not fit, or ran out of memory.
    TooLarge,
    /// Measured, but whether it fits is not known: there is no peak.
    NoPeak,
    Failed,
    NotRun,
}

impl Standing {
    pub fn of(cell: &CellResult, capacity: Option<i64>) -> Self {
        match cell.fits {
            Some(false) => Standing::TooLarge,
            _ if !cell.tried => Standing::NotRun,
            _ if !cell.is_measured() => Standing::Failed,
            None if capacity.is_some() => Standing::NoPeak,
            _ => Standing::Taken,
        }
    }
}

/// How many cells stand how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tally {
    pub taken: usize,
    pub too_large: usize,
    pub no_peak: usize,
    pub failed: usize,
    pub not_run: usize,
}

impl Tally {
    pub fn of(cells: &[CellResult], capacity: Option<i64>) -> Self {
        let count = |standing| cells.iter().filter(|cell| Standing::of(cell, capacity) == standing).count();
        Tally {
            taken: count(Standing::Taken),
            too_large: count(Standing::TooLarge),
            no_peak: count(Standing::NoPeak),
            failed: count(Standing::Failed),
            not_run: count(Standing::NotRun),
        }
    }

    /// Those of which it is not known whether they fit.
    pub fn unsettled(&self) -> usize {
        self.no_peak + self.failed + self.not_run
    }

    /// Those out of the running: `1 does not fit, 2 failed and 4 have not been run yet`.
    pub fn others(&self) -> String {
        let of_one = |count: usize, one: &str, more: &str| {
            (count > 0).then(|| format!("{count} {}", if count == 1 { one } else { more }))
        };
        let parts = [
            of_one(self.too_large, "does not fit", "do not fit"),
            of_one(self.no_peak, "has no known peak", "have no known peak"),
            of_one(self.failed, "failed", "failed"),
            of_one(self.not_run, "has not been run yet", "have not been run yet"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        match parts.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, before)) => format!("{} and {last}", before.join(", ")),
            None => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_counted_in_words() {
        let told = |too_large, no_peak, failed, not_run| {
            Tally { taken: 1, too_large, no_peak, failed, not_run }.others()
        };
        assert_eq!(told(0, 0, 0, 0), "");
        assert_eq!(told(1, 0, 0, 0), "1 does not fit");
        assert_eq!(told(2, 0, 1, 0), "2 do not fit and 1 failed");
        assert_eq!(
            told(1, 3, 2, 1),
            "1 does not fit, 3 have no known peak, 2 failed and 1 has not been run yet"
        );
    }
}
