//! What a reader must know of a prediction before trusting it.

use super::evidence::Evidence;
use super::fit::{BAD_PEAK_RESIDUAL, BAD_TIME_RESIDUAL, PeakFit};
use super::policy::{AtBatch, PolicyPlan, TimeSource};
use super::step_time::TimeFit;
use crate::record::count;
use crate::stats::{LEAST_MARGIN, RelativeLine};
use crate::theory::MAX_BATCH;

/// One sentence for each doubt.
pub fn notes(evidence: &Evidence, plan: &PolicyPlan) -> Vec<String> {
    let batch = plan.max_batch.map(|batch| batch.max(1));
    let kink = batch.filter(|&batch| evidence.kink_ahead(batch)).map(|batch| kink_note(evidence, batch));
    // Doubts of a line that nothing rests on would only contradict what does.
    let fit = evidence.peak.as_ref().filter(|_| kink.is_none());
    let memory = fit.map(|fit| peak_notes(fit, plan)).unwrap_or_default();
    let time = evidence.time.as_ref().map(|time| time_notes(time, batch, plan));
    memory.into_iter().chain(kink).chain(most_taken(evidence, plan)).chain(time.unwrap_or_default()).collect()
}

/// That the batch is the largest there is, not the largest that would fit.
fn most_taken(evidence: &Evidence, plan: &PolicyPlan) -> Option<String> {
    (evidence.shape.is_some() && plan.max_batch == Some(MAX_BATCH)).then(|| {
        format!("`stepledger run` takes no batch above {}, whatever else would fit", count(MAX_BATCH))
    })
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
    let two_batches = plan.kink_excluded == Some(false) && plan.peak_interval_bytes.is_none();
    if two_batches && !fit.unresolved_kink {
        notes.push(
            "the peak's line rests on two batches, which show no kink between or beyond them: measure a third"
                .to_owned(),
        );
    }
    if let Some(batch) = fit.kink_above_batch {
        notes.push(format!(
            "kink: below batch {} the peak lies elsewhere in the step; the line rests on the runs from there",
            count(batch)
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

fn kink_note(evidence: &Evidence, batch: i64) -> String {
    let bent = |fit: &PeakFit| fit.line.worst_relative_residual > BAD_PEAK_RESIDUAL;
    if evidence.peak.as_ref().is_some_and(bent) {
        return format!(
            "theory has every measured peak right, which no one line has: the peak at batch {} is theory's",
            count(batch)
        );
    }
    let batches = evidence.batches();
    let place = match batches.first().zip(batches.last()) {
        Some((least, _)) if batch < *least => "below",
        Some((_, most)) if batch > *most => "beyond",
        _ => "between",
    };
    format!(
        "theory has every measured peak right, and a kink {place} them: the peak at batch {} is theory's",
        count(batch)
    )
}

fn time_notes(time: &TimeFit, batch: Option<i64>, plan: &PolicyPlan) -> Vec<String> {
    let mut notes: Vec<String> = time.flat.then(|| flat_note(plan)).into_iter().collect();
    // Without a largest batch there is nothing predicted to doubt.
    let Some(batch) = batch else { return notes };
    if plan.time_source == Some(TimeSource::Scaled) {
        notes.extend(scaled_note(time, batch));
    }
    if let Some(line) = &time.line {
        notes.extend(line_notes(line, batch, plan));
    }
    notes.extend(plan.faster.as_ref().and_then(|faster| faster_note(faster, batch, plan)));
    notes
}

fn flat_note(plan: &PolicyPlan) -> String {
    let ranked = plan.faster.as_ref().filter(|_| plan.predicted_step_ms.is_none());
    let ranked = ranked.map(|faster| {
        format!(", and it is ranked at batch {}, the fastest measured that fits", count(faster.batch))
    });
    format!(
        "step times do not grow with the batch in what was measured: they tell none of another batch{}; measure \
         larger batches",
        ranked.unwrap_or_default()
    )
}

/// A step's fixed part is scaled too.
fn scaled_note(time: &TimeFit, batch: i64) -> Option<String> {
    let (measured, _) = time.nearest(batch)?;
    let nearest = count(measured);
    Some(match (time.denies(batch), batch < measured) {
        (true, _) => format!(
            "the line through the measured times has no positive time for batch {}: it is scaled from batch \
             {nearest} alone",
            count(batch)
        ),
        (false, false) => format!(
            "time scaled from batch {nearest} alone, its fixed part too: a larger batch is faster than that"
        ),
        (false, true) => format!(
            "time scaled from batch {nearest} alone, its fixed part too: a smaller batch is slower than that"
        ),
    })
}

fn line_notes(line: &RelativeLine, batch: i64, plan: &PolicyPlan) -> Vec<String> {
    let mut notes = Vec::new();
    if line.worst_relative_residual > BAD_TIME_RESIDUAL {
        let off = 100.0 * line.worst_relative_residual;
        notes.push(format!("bad fit: a measured time is {off:.0} % off its line"));
    }
    let falls = -line.intercept > LEAST_MARGIN * line.slope * batch as f64;
    if falls && plan.faster.is_none() {
        notes.push(
            "times grow faster than the batch in these runs: a smaller batch may be faster for its size, \
             measure one"
                .to_owned(),
        );
    }
    notes
}

/// `None` where nothing tells how fast the largest batch is.
fn faster_note(faster: &AtBatch, batch: i64, plan: &PolicyPlan) -> Option<String> {
    let more = faster.batch as f64 / faster.predicted_step_ms? / (batch as f64 / plan.predicted_step_ms?);
    Some(format!(
        "batch {} is {:.0} % faster for its size than batch {}, the largest that fits: times grow faster than the \
         batch in these runs",
        count(faster.batch),
        100.0 * (more - 1.0),
        count(batch)
    ))
}
