//! Everything that is to be said of two sides, as values: what `compare` prints, and what `compare --json` is.

use serde::Serialize;

use super::losses::{LossesCompared, compare_losses};
use super::margin::Margin;
use super::memory::{CategoryBytes, Keyed, by_category, by_moment};
use super::metrics::{Metric, SideTails, metrics};
use super::notes::notes;
use super::pairing::{Pairing, Sorted};
use super::repeat::Repeat;
use super::setting::{Difference, differing, differing_calibration};
use super::side::{LeftOut, Side};
use super::verdict::{Quantity, Verdict, decide};
use super::{CompareError, Judged};
use crate::record::{Category, EvidenceLevel, Moment};
use crate::store::Noise;

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
    /// What runs of the same program were found to differ by on this machine; null where that was not measured.
    pub noise: Option<Noise>,
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
    /// How many measured steps of each of them were cut off as warm-up, and how many it has: of steps that take turns in
    /// a cycle, those of whole cycles.
    pub cut_steps: Vec<usize>,
    pub measured_steps: Vec<usize>,
    /// Runs without a partner on the other side.
    pub unpaired: Vec<String>,
    pub left_out: Vec<LeftOut>,
}

/// Compares two sides: pairs their runs in the order in which they started, and judges the pairs. `noise` is what
/// pairs of the same program differed by on this machine, where that was measured.
///
/// # Errors
/// When a run is on both sides.
pub fn compare(base: &Side, candidate: &Side, noise: Option<&Noise>) -> Result<Comparison, CompareError> {
    refuse_the_same(base, candidate)?;
    let margin = Margin::of(noise.map(|noise| noise.half_width_pct));
    let pairing = Pairing::of(base, candidate, margin);
    let pairs = pairing.pairs.as_slice();
    let (of_base, of_candidate) = (pairing.base(base, margin), pairing.candidate(candidate, margin));
    let (bases, candidates) = (of_base.used.as_slice(), of_candidate.used.as_slice());
    let mut differences = differing(&base.setting, &candidate.setting);
    differences.extend(differing_calibration(&base.calibrations, &candidate.calibrations));
    let runs: Vec<&Repeat> = base.repeats.iter().chain(&candidate.repeats).collect();
    let decision = decide(pairs, &runs, &differences, margin);
    Ok(Comparison {
        verdict: decision.verdict,
        differs: differences.iter().map(|difference| difference.field.clone()).collect(),
        metrics: metrics(pairs),
        bytes: by_category(bases, candidates),
        evidence: decision.evidence,
        pairs: pairs.len(),
        provisional: decision.provisional,
        abstained: decision.abstained,
        quantity: decision.quantity,
        margin,
        noise: noise.cloned(),
        pairs_needed: decision.pairs_needed,
        cause: cause(&differences),
        moments: by_moment(bases, candidates),
        losses: compare_losses(&base.losses, &candidate.losses),
        tails: Tails { base: SideTails::of(bases), candidate: SideTails::of(candidates) },
        notes: notes(pairs, &runs, &decision, margin, noise),
        base: repeats(base, &of_base),
        candidate: repeats(candidate, &of_candidate),
        reason: decision.reason,
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

/// The one field that was changed, where that allows a comparison.
fn cause(differences: &[Difference]) -> Option<String> {
    let mut changed = differences.iter().filter(|difference| difference.kind.has_effects());
    let only = changed.next()?;
    let alone = changed.next().is_none() && !only.kind.forbids_a_verdict();
    alone.then(|| only.field.clone())
}

fn repeats(side: &Side, sorted: &Sorted) -> Repeats {
    let ids = |runs: &[&Repeat]| runs.iter().map(|run| run.run_id.clone()).collect();
    Repeats {
        name: side.name.clone(),
        runs: ids(&sorted.used),
        cut_steps: sorted.used.iter().map(|run| run.time.cut_steps()).collect(),
        measured_steps: sorted.used.iter().map(|run| run.time.measured_steps()).collect(),
        unpaired: ids(&sorted.unpaired),
        left_out: side.left_out.iter().chain(&sorted.left_out).cloned().collect(),
    }
}
