//! The two best cells of a sweep against each other, judged as `stepledger compare` judges two sides of runs.

use std::path::Path;

use super::cell::CellResult;
use crate::compare::{CompareError, Comparison, Side, Verdict, compare, read_sides};
use crate::record::{EvidenceLevel, RunRow};
use crate::store::{Calibrations, Dataset, Noise};

/// What the rival's time is against the best's, by the repeats that both have.
#[derive(Debug, Clone, PartialEq)]
pub struct Duel {
    /// Of the rival: `slower` is what is expected of it.
    pub verdict: Verdict,
    pub reason: String,
    /// What the rival's time differs by, with its interval, in percent of the best's.
    pub change_pct: Option<(f64, f64)>,
    pub pairs: usize,
    pub pairs_needed: Option<usize>,
    /// Nothing was concluded, for a reason that more repeats alone would not mend.
    pub abstained: bool,
    /// Less of a difference does not matter, in percent.
    pub margin_pct: f64,
    pub evidence: EvidenceLevel,
}

impl Duel {
    /// Reads the runs of both, below `dir`, and judges them. `None` where no repeat is there of both.
    pub fn between(
        dir: &Path,
        best: &CellResult,
        rival: &CellResult,
        known: &Calibrations,
    ) -> Option<Result<Duel, CompareError>> {
        let of_best = |repeat: usize| best.measured.iter().find(|(known, _)| *known == repeat);
        let pairs = rival
            .measured
            .iter()
            .filter_map(|(repeat, run)| Some((of_best(*repeat)?.1.as_str(), run.as_str())));
        let pairs: Vec<(&str, &str)> = pairs.collect();
        let (first, others) = pairs.split_first()?;
        Some(read(dir, *first, others).and_then(|(best, rival)| {
            let run = Dataset::open(&dir.join(first.0))?;
            Ok(Duel::of(&compare(&best, &rival, noise(known, run.run()))?))
        }))
    }

    fn of(compared: &Comparison) -> Self {
        let quantity = compared.quantity.as_str();
        let change = compared.metrics.iter().find(|metric| metric.name == quantity);
        Duel {
            verdict: compared.verdict,
            reason: compared.reason.clone(),
            change_pct: change.and_then(|change| change.low_pct.zip(change.high_pct)),
            pairs: compared.pairs,
            pairs_needed: compared.pairs_needed,
            abstained: compared.abstained,
            margin_pct: compared.margin.pct,
            evidence: compared.evidence,
        }
    }
}

/// Both sides, pair by pair: the runs of other cells lie between theirs. They stay in the order of the pairs, which is that
/// of the repeats: one that was made again later is still held against the run of its own repeat.
fn read(dir: &Path, first: (&str, &str), others: &[(&str, &str)]) -> Result<(Side, Side), CompareError> {
    let (mut bests, mut rivals) = read_sides(dir, first.0, first.1)?;
    for (best, rival) in others {
        let (best, rival) = read_sides(dir, best, rival)?;
        add(&mut bests, best)?;
        add(&mut rivals, rival)?;
    }
    Ok((bests, rivals))
}

/// One more repeat, which must be one: a sweep may have been gone on with on another machine.
fn add(side: &mut Side, more: Side) -> Result<(), CompareError> {
    let fields = || side.setting.iter().filter(|(name, value)| more.setting.get(*name) != Some(value));
    if fields().next().is_some() {
        let fields = fields().map(|(name, _)| name.clone()).collect();
        return Err(CompareError::SeveralConfigurations { name: side.name.clone(), fields });
    }
    side.repeats.extend(more.repeats);
    Ok(())
}

/// How much runs of one program differ on the machine of this run, where that was measured.
pub(super) fn noise<'a>(known: &'a Calibrations, run: &RunRow) -> Option<&'a Noise> {
    known.of(&run.machine)?.noise_of(&run.device)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::made_up::Made;
    use crate::record::RunStatus;
    use crate::store::DatasetWriter;
    use crate::sweep::made_up::cell;

    /// Writes a run of so many ms a step, which started in this minute.
    fn write(dir: &Path, run_id: &str, minute: i64, step_ms: f64) {
        let tables = Made { step_ms, ..Made::default() }.tables(run_id, minute);
        let mut writer = DatasetWriter::create(dir, &tables.run).unwrap();
        tables.steps.into_iter().for_each(|step| writer.push(step, Vec::new(), Vec::new(), Vec::new()));
        assert_eq!(tables.run.status, RunStatus::Complete);
        writer.finish(&tables.run, &[]).unwrap();
    }

    /// A cell with these runs, by repeat.
    fn with_runs(ids: &[String]) -> CellResult {
        CellResult { measured: ids.iter().cloned().enumerate().collect(), ..cell(8, "none", 1.0, 1) }
    }

    #[test]
    fn a_run_that_was_made_again_is_held_against_its_own_repeat() {
        let dir = tempfile::tempdir().unwrap();
        let (mut bests, mut rivals) = (Vec::new(), Vec::new());
        // The machine is another fifth slower at each repeat, for both alike. The first run of the best was made again last.
        for repeat in 0..5 {
            let level_ms = 10.0 * 1.2_f64.powi(repeat);
            let minute = if repeat == 0 { 100 } else { i64::from(2 * repeat) };
            let (best, rival) = (format!("best-{repeat}"), format!("rival-{repeat}"));
            write(dir.path(), &best, minute, level_ms);
            write(dir.path(), &rival, i64::from(2 * repeat + 1), 1.1 * level_ms);
            bests.push(best);
            rivals.push(rival);
        }
        let known = Calibrations::default();
        let duel =
            Duel::between(dir.path(), &with_runs(&bests), &with_runs(&rivals), &known).unwrap().unwrap();
        let (low, high) = duel.change_pct.unwrap();
        assert!(duel.pairs == 5 && low > 9.0 && high < 11.0, "{duel:?}");
        assert_eq!(duel.verdict, Verdict::Slower, "{duel:?}");
        // A repeat that one of them lacks is in no pair, and moves no other.
        let lacking = CellResult {
            measured: with_runs(&bests).measured.into_iter().filter(|(repeat, _)| *repeat != 1).collect(),
            ..with_runs(&bests)
        };
        let duel = Duel::between(dir.path(), &lacking, &with_runs(&rivals), &known).unwrap().unwrap();
        let (low, high) = duel.change_pct.unwrap();
        assert!(duel.pairs == 4 && low > 9.0 && high < 11.0, "{duel:?}");
    }
}
