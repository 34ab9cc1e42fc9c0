//! What a reader must know of a prediction before trusting it.

use super::evidence::Evidence;
use super::fit::{BAD_PEAK_RESIDUAL, BAD_TIME_RESIDUAL, PeakFit};
use super::policy::{PolicyPlan, TimeSource};

/// One sentence for each doubt.
pub fn notes(evidence: &Evidence, plan: &PolicyPlan) -> Vec<String> {
    let memory = evidence.peak.as_ref().map(|fit| peak_notes(fit, plan)).unwrap_or_default();
    let batch = plan.max_batch.map(|batch| batch.max(1));
    let kink = batch.filter(|&batch| evidence.kink_ahead(batch)).map(|_| {
        "theory has every measured peak right, and a kink beyond them: the peak at this batch is theory's"
            .to_owned()
    });
    memory.into_iter().chain(kink).chain(time_notes(evidence, plan)).collect()
}

fn peak_notes(fit: &PeakFit, plan: &PolicyPlan) -> Vec<String> {
    let mut notes = Vec::new();
    if !fit.grows() {
        notes.push("the peak does not grow with the batch in these runs: measure larger batches".to_owned());
    }
    if fit.unresolved_kink {
        notes.push(
            "the peak moves to another phase between the measured batches, and a line through both is too \
             high between them and too low beyond: measure a larger batch"
                .to_owned(),
        );
    }
    if let Some(batch) = fit.kink_above_batch {
        notes.push(format!(
            "kink: below batch {batch} the peak lies elsewhere in the step; the line rests on the runs from there"
        ));
    }
    if fit.line.worst_relative_residual > BAD_PEAK_RESIDUAL {
        let off = 100.0 * fit.line.worst_relative_residual;
        notes.push(format!("bad fit: a measured peak is {off:.1} % off its line, which is thus a guess"));
    }
    if let Some((theory, fitted)) = plan.theory_peak_bytes.zip(plan.predicted_peak_bytes) {
        let apart = (theory - fitted).abs() as f64 / fitted.max(1) as f64;
        if apart > BAD_PEAK_RESIDUAL {
            let pct = 100.0 * apart;
            notes.push(format!(
                "theory and fit are {pct:.1} % apart at this batch: the peak may move to another place of the step"
            ));
        }
    }
    notes
}

fn time_notes(evidence: &Evidence, plan: &PolicyPlan) -> Vec<String> {
    let mut notes = Vec::new();
    if plan.time_source == Some(TimeSource::Scaled) {
        let batch = evidence.batches().first().copied().unwrap_or_default();
        notes.push(format!(
            "time scaled from batch {batch} alone, its fixed part too: a larger batch is faster than that"
        ));
    }
    let Some(line) = &evidence.time else { return notes };
    if line.slope <= 0.0 {
        notes.push("steps do not take longer with the batch in these runs: their times are noise".to_owned());
    }
    if line.worst_relative_residual > BAD_TIME_RESIDUAL {
        let off = 100.0 * line.worst_relative_residual;
        notes.push(format!("bad fit: a measured time is {off:.0} % off its line"));
    }
    notes
}
