//! Everything that is to be said of two sides, as values: what `compare` prints, and what `compare --json` is.

use serde::Serialize;

use super::losses::{LossesCompared, compare_losses};
use super::memory::{CategoryBytes, Keyed, by_category, by_moment};
use super::metrics::{Metric, SideTails, metrics};
use super::notes::notes;
use super::repeat::Repeat;
use super::setting::{Difference, differing, differing_calibration};
use super::side::{LeftOut, Side};
use super::verdict::{Margin, Quantity, Verdict, decide};
use super::{CompareError, Judged};
use crate::record::{Category, EvidenceLevel, Moment};
use crate::stats::ENOUGH_PAIRS;

/// Two sides, compared. Its fields, in order, are the documented object of `compare --json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    pub verdict: Verdict,
    pub reason: String,
    /// The fields in which the sides differ.
    pub differs: Vec<String>,
    pub metrics: Vec<Metric>,
    /// Each category at its own moment ([`MEASURED_AT`](super::MEASURED_AT)).
    pub bytes: Keyed<Category, CategoryBytes>,
    pub evidence: EvidenceLevel,
    pub pairs: usize,
    /// Fewer pairs than are enough: the verdict may not last.
    pub provisional: bool,
    /// Nothing was concluded from the times, for a reason that more of them alone would not mend.
    pub abstained: bool,
    /// What the verdict is about.
    pub quantity: Quantity,
    pub margin: Margin,
    pub pairs_needed: Option<usize>,
    /// The one field to which a change can be put down; null where there is none, or several.
    pub cause: Option<String>,
    pub differences: Vec<Difference>,
    pub moments: Keyed<Moment, Keyed<Category, CategoryBytes>>,
    pub losses: LossesCompared,
    pub tails: Tails,
    pub base: Repeats,
    pub candidate: Repeats,
    /// What else should be known before this is believed.
    pub notes: Vec<String>,
    /// What became of the conditions of a gate; empty without one.
    pub gate: Vec<Judged>,
}

/// The slow steps of both sides.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Tails {
    pub base: SideTails,
    pub candidate: SideTails,
}

/// Which runs a side is made of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Repeats {
    /// What was asked for.
    pub name: String,
    /// The runs that were paired, in the order in which they started.
    pub runs: Vec<String>,
    /// Runs without a partner on the other side.
    pub unpaired: Vec<String>,
    pub left_out: Vec<LeftOut>,
}

/// Compares two sides: pairs their runs in the order in which they started, and judges the pairs. `noise_pct` is what
/// pairs of the same program differed by on this machine, where that was measured.
///
/// # Errors
/// When a run is on both sides.
pub fn compare(base: &Side, candidate: &Side, noise_pct: Option<f64>) -> Result<Comparison, CompareError> {
    refuse_the_same(base, candidate)?;
    let pairs: Vec<(&Repeat, &Repeat)> = base.repeats.iter().zip(&candidate.repeats).collect();
    let (bases, candidates): (Vec<&Repeat>, Vec<&Repeat>) = pairs.iter().copied().unzip();
    let mut differences = differing(&base.setting, &candidate.setting);
    differences.extend(differing_calibration(&base.calibrations, &candidate.calibrations));
    let margin = Margin::of(noise_pct);
    let decision = decide(&pairs, &differences, margin);
    let enough = pairs.len() >= ENOUGH_PAIRS;
    Ok(Comparison {
        verdict: decision.verdict,
        reason: decision.reason,
        differs: differences.iter().map(|difference| difference.field.clone()).collect(),
        metrics: metrics(&pairs),
        bytes: by_category(&bases, &candidates),
        evidence: if enough { EvidenceLevel::RepeatedBenchmark } else { EvidenceLevel::SmokeTest },
        pairs: pairs.len(),
        provisional: decision.provisional,
        abstained: decision.abstained,
        quantity: decision.quantity,
        margin,
        pairs_needed: decision.pairs_needed,
        cause: cause(&differences),
        moments: by_moment(&bases, &candidates),
        losses: compare_losses(&base.losses, &candidate.losses),
        tails: Tails { base: SideTails::of(&bases), candidate: SideTails::of(&candidates) },
        base: repeats(base, pairs.len()),
        candidate: repeats(candidate, pairs.len()),
        notes: notes(&pairs, margin, noise_pct),
        differences,
        gate: Vec::new(),
    })
}

fn refuse_the_same(base: &Side, candidate: &Side) -> Result<(), CompareError> {
    let mut starts = base.repeats.iter().map(|run| (&run.run_id, run.started_at)).collect::<Vec<_>>();
    starts.sort_unstable();
    let on_both =
        candidate.repeats.iter().find(|run| starts.binary_search(&(&run.run_id, run.started_at)).is_ok());
    on_both.map_or(Ok(()), |run| Err(CompareError::SameRun { run: run.run_id.clone() }))
}

/// The one field that was changed.
fn cause(differences: &[Difference]) -> Option<String> {
    let mut changed = differences.iter().filter(|difference| difference.kind.has_effects());
    let only = changed.next()?;
    changed.next().is_none().then(|| only.field.clone())
}

fn repeats(side: &Side, pairs: usize) -> Repeats {
    let ids = |runs: &[Repeat]| runs.iter().map(|run| run.run_id.clone()).collect();
    let (paired, unpaired) = side.repeats.split_at(pairs);
    Repeats {
        name: side.name.clone(),
        runs: ids(paired),
        unpaired: ids(unpaired),
        left_out: side.left_out.clone(),
    }
}
