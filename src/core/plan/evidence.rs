//! What runs and theory know of one policy, and what they predict.

use super::fit::{
    BAD_PEAK_RESIDUAL, CONFIDENCE, EXACT_PEAK_RESIDUAL, PeakAt, PeakFit, fit_peak, fit_time, quality,
};
use super::measured::Measured;
use super::notes::notes;
use super::policy::{Extrapolates, PolicyPlan, Source, TimeSource};
use crate::stats::{Line, median};
use crate::theory::Shape;

/// What there is to know of one policy.
pub struct Evidence<'r> {
    pub checkpoint: Option<String>,
    pub runs: Vec<&'r Measured>,
    pub shape: Option<Shape>,
    pub peak: Option<PeakFit>,
    pub time: Option<Line>,
}

/// A predicted step time, and where it comes from.
#[derive(Debug, Clone, Copy)]
struct StepTime {
    ms: f64,
    interval_ms: Option<[f64; 2]>,
    source: TimeSource,
}

impl<'r> Evidence<'r> {
    pub fn new(checkpoint: Option<String>, runs: Vec<&'r Measured>, shape: Option<Shape>) -> Self {
        let (peak, time) = (fit_peak(&runs), fit_time(&runs));
        Evidence { checkpoint, runs, shape, peak, time }
    }

    /// The peak at a batch: by the fit if it can tell a largest batch, else by theory.
    pub fn peak_bytes(&self, batch: i64) -> Option<i64> {
        let fit = self.fitted_at(batch).map(|peak| peak.bytes);
        fit.or_else(|| self.shape.map(|shape| Shape { batch, ..shape }.peak_bytes()))
    }

    fn usable_fit(&self) -> Option<&PeakFit> {
        self.peak.as_ref().filter(|fit| fit.grows())
    }

    /// The fitted peak, unless theory knows better.
    fn fitted_at(&self, batch: i64) -> Option<PeakAt> {
        self.usable_fit().filter(|_| !self.kink_ahead(batch)).map(|fit| fit.at(batch))
    }

    /// Whether the peak leaves its line before this batch, for all that the runs can tell: theory has every measured
    /// peak right, and is off the line here.
    pub fn kink_ahead(&self, batch: i64) -> bool {
        let Some((fit, shape)) = self.usable_fit().zip(self.shape) else { return false };
        let theory = |batch: i64| Shape { batch, ..shape }.peak_bytes();
        let off = |bytes: i64, theory: i64| (bytes - theory).abs() as f64 / theory as f64;
        let right = |run: &&Measured| match run.batch().zip(run.peak_bytes) {
            Some((batch, bytes)) => off(bytes, theory(batch)) <= EXACT_PEAK_RESIDUAL,
            None => true,
        };
        self.runs.iter().all(right) && off(fit.at(batch).bytes, theory(batch)) > BAD_PEAK_RESIDUAL
    }

    /// The largest batch that fits, with its predictions.
    pub fn planned(&self, capacity_bytes: i64) -> PolicyPlan {
        let theory = self.shape.map(|shape| shape.largest_batch_within(capacity_bytes).unwrap_or(0));
        let fitted = self.usable_fit().map(|fit| fit.largest_batch(capacity_bytes));
        let fitted = fitted.filter(|&batch| !self.kink_ahead(batch.max(1)));
        let max_batch = fitted.or(theory);
        let mut plan = self.at(max_batch.map(|batch| batch.max(1)));
        plan.max_batch = max_batch;
        plan.next_batch_peak_bytes = max_batch.and_then(|batch| self.peak_bytes(batch + 1));
        plan.theory_max_batch = theory;
        plan.notes = notes(self, &plan);
        plan
    }

    /// The predictions at one batch.
    fn at(&self, batch: Option<i64>) -> PolicyPlan {
        let fitted = batch.and_then(|batch| self.fitted_at(batch));
        let theory = batch.and_then(|batch| Some(Shape { batch, ..self.shape? }.peak_bytes()));
        let step = batch.and_then(|batch| self.step(batch));
        let interval = step.and_then(|step| step.interval_ms);
        let tokens = self.tokens_each().zip(batch).map(|(each, batch)| each * batch as f64);
        let rate = |step_ms: f64| Some(tokens? / (step_ms / 1e3));
        PolicyPlan {
            checkpoint: self.checkpoint.clone(),
            max_batch: None,
            predicted_peak_bytes: fitted.map(|peak| peak.bytes).or(theory),
            peak_interval_bytes: fitted.and_then(|peak| peak.interval),
            next_batch_peak_bytes: None,
            predicted_step_ms: step.map(|step| step.ms),
            step_interval_ms: interval,
            predicted_tokens_per_s: step.and_then(|step| rate(step.ms)),
            tokens_per_s_interval: interval.and_then(|[low, high]| Some([rate(high)?, rate(low)?])),
            source: fitted.map(|_| Source::Fit).or(theory.map(|_| Source::Theory)),
            time_source: step.map(|step| step.source),
            extrapolates: batch.and_then(|batch| self.extrapolates(batch)),
            theory_peak_bytes: theory,
            theory_max_batch: None,
            recompute_share: self.shape.map(|shape| shape.recompute_share()),
            fit: (!self.runs.is_empty()).then(|| quality(&self.runs, self.peak.as_ref(), self.time.as_ref())),
            notes: Vec::new(),
            needs: None,
        }
    }

    fn step(&self, batch: i64) -> Option<StepTime> {
        if let Some(line) = &self.time {
            let at = line.predict(batch as f64, CONFIDENCE);
            // A step takes some time, whatever noise says; a line that denies it predicts nothing.
            let interval_ms = at.interval.filter(|(low, _)| *low > 0.0).map(|(low, high)| [low, high]);
            let step = StepTime { ms: at.value, interval_ms, source: TimeSource::Fit };
            return (at.value > 0.0).then_some(step);
        }
        let each: Vec<f64> =
            self.runs.iter().filter_map(|run| Some(run.step_ms? / run.batch()? as f64)).collect();
        let ms = median(&each)? * batch as f64;
        Some(StepTime { ms, interval_ms: None, source: TimeSource::Scaled })
    }

    /// Tokens of a step for each of the batch; `None` where the runs do not say, or say different things.
    fn tokens_each(&self) -> Option<f64> {
        let each: Option<Vec<f64>> =
            self.runs.iter().map(|run| Some(run.tokens? / run.batch()? as f64)).collect();
        let each = each?;
        let first = *each.first()?;
        each.iter().all(|other| (other - first).abs() <= 1e-9 * first).then_some(first)
    }

    /// The batches measured, each once.
    pub fn batches(&self) -> Vec<i64> {
        let mut batches: Vec<i64> = self.runs.iter().filter_map(|run| run.batch()).collect();
        batches.sort_unstable();
        batches.dedup();
        batches
    }

    fn extrapolates(&self, batch: i64) -> Option<Extrapolates> {
        let batches = self.batches();
        let (least, most) = (*batches.first()?, *batches.last()?);
        Some(match batch {
            _ if (least..=most).contains(&batch) => Extrapolates::No,
            _ if batch > most.saturating_mul(2) || batch.saturating_mul(2) < least => Extrapolates::Strongly,
            _ => Extrapolates::Beyond,
        })
    }

    /// A batch to measure next: what is planned, or twice what was measured.
    pub fn further_batch(&self, usual: i64) -> i64 {
        self.batches().last().map_or(usual, |most| most.saturating_mul(2))
    }
}
