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

/// Both sides, pair by pair: the runs of other cells lie between theirs.
fn read(dir: &Path, first: (&str, &str), others: &[(&str, &str)]) -> Result<(Side, Side), CompareError> {
    let (mut bests, mut rivals) = read_sides(dir, first.0, first.1)?;
    for (best, rival) in others {
        let (best, rival) = read_sides(dir, best, rival)?;
        add(&mut bests, best)?;
        add(&mut rivals, rival)?;
    }
    for side in [&mut bests, &mut rivals] {
        side.repeats.sort_by_key(|run| run.started_at);
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
