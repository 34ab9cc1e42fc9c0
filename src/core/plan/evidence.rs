//! What runs and theory know of one policy, and what they predict.

use super::fit::{BAD_PEAK_RESIDUAL, EXACT_PEAK_RESIDUAL, PeakAt, PeakFit, fit_peak, quality};
use super::measured::Measured;
use super::notes::notes;
use super::policy::{AtBatch, Extrapolates, PolicyPlan, Source};
use super::step_time::{TimeFit, fit_time};
use crate::stats::{FEWEST_STEPS, LEAST_MARGIN};
use crate::theory::{MAX_BATCH, ProductsAtMost, Shape};

/// What there is to know of one policy.
pub struct Evidence<'r> {
    pub checkpoint: Option<String>,
    pub runs: Vec<&'r Measured>,
    pub shape: Option<Shape>,
    pub peak: Option<PeakFit>,
    pub time: Option<TimeFit>,
    /// What the device can do, for what theory says of time.
    products: Option<&'r ProductsAtMost>,
}

impl<'r> Evidence<'r> {
    pub fn new(
        checkpoint: Option<String>,
        runs: Vec<&'r Measured>,
        shape: Option<Shape>,
        products: Option<&'r ProductsAtMost>,
    ) -> Self {
        let (peak, time) = (fit_peak(&runs), fit_time(&runs));
        Evidence { checkpoint, runs, shape, peak, time, products }
    }

    /// The peak at a batch: by the fit if it can tell a largest batch, else by theory, else by the runs of this batch.
    pub fn peak_bytes(&self, batch: i64) -> Option<i64> {
        let predicted = self.fitted_at(batch).map(|peak| peak.bytes);
        predicted.or_else(|| self.theory_peak_bytes(batch)).or_else(|| self.measured_peak_bytes(batch))
    }

    fn measured_peak_bytes(&self, batch: i64) -> Option<i64> {
        self.runs.iter().filter(|run| run.batch() == Some(batch)).filter_map(|run| run.peak_bytes).max()
    }

    fn theory_peak_bytes(&self, batch: i64) -> Option<i64> {
        self.shape.map(|shape| Shape { batch, ..shape }.peak_bytes())
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
        // Of the toy models, which are those that theory knows, `run` takes so many and no more.
        let most = self.shape.map_or(i64::MAX - 1, |_| MAX_BATCH);
        let max_batch = fitted.or(theory).map(|batch| batch.min(most));
        let mut plan = self.policy_at(max_batch.map(|batch| batch.max(1)));
        plan.max_batch = max_batch;
        plan.next_batch_peak_bytes =
            max_batch.filter(|&batch| batch < most).and_then(|batch| self.peak_bytes(batch + 1));
        plan.theory_max_batch = theory;
        plan.faster = self.faster_than(max_batch, capacity_bytes);
        plan.notes = notes(self, &plan);
        plan
    }

    /// The predictions at one batch.
    fn policy_at(&self, batch: Option<i64>) -> PolicyPlan {
        let at = batch.map(|batch| self.at(batch)).unwrap_or_default();
        let fitted = batch.and_then(|batch| self.fitted_at(batch));
        let theory_peak_bytes = batch.and_then(|batch| self.theory_peak_bytes(batch));
        PolicyPlan {
            checkpoint: self.checkpoint.clone(),
            max_batch: None,
            predicted_peak_bytes: at.predicted_peak_bytes,
            peak_interval_bytes: fitted.and_then(|peak| peak.interval),
            kink_excluded: fitted.zip(batch).map(|(peak, batch)| self.kink_excluded(batch, peak)),
            next_batch_peak_bytes: None,
            predicted_step_ms: at.predicted_step_ms,
            step_interval_ms: at.step_interval_ms,
            predicted_tokens_per_s: at.predicted_tokens_per_s,
            tokens_per_s_interval: at.tokens_per_s_interval,
            source: fitted.map(|_| Source::Fit).or(theory_peak_bytes.map(|_| Source::Theory)),
            time_source: at.time_source,
            repeats: at.repeats,
            faster: None,
            extrapolates: batch.and_then(|batch| self.extrapolates(batch)),
            theory_peak_bytes,
            theory_max_batch: None,
            theory_step_ms: batch.and_then(|batch| self.theory_step_ms(batch)),
            theory_tokens_per_s: at.theory_tokens_per_s,
            recompute_share: self.shape.map(|shape| shape.recompute_share()),
            fit: (!self.runs.is_empty()).then(|| {
                let line = self.time.as_ref().and_then(|time| time.line.as_ref());
                quality(&self.runs, self.peak.as_ref(), line)
            }),
            notes: Vec::new(),
            needs: None,
        }
    }

    fn at(&self, batch: i64) -> AtBatch {
        let step = self.time.as_ref().and_then(|time| time.at(batch));
        let tokens = self.tokens_each().map(|each| each * batch as f64);
        let rate = |step_ms: f64| Some(tokens? / (step_ms / 1e3));
        let interval = step.and_then(|step| step.interval_ms);
        AtBatch {
            batch,
            predicted_peak_bytes: self.peak_bytes(batch),
            predicted_step_ms: step.map(|step| step.ms),
            step_interval_ms: interval,
            predicted_tokens_per_s: step.and_then(|step| rate(step.ms)),
            tokens_per_s_interval: interval
                .and_then(|[low, high]| Some((rate(high)?, rate(low).filter(|rate| rate.is_finite())))),
            time_source: step.map(|step| step.source),
            repeats: self.repeats(batch),
            theory_tokens_per_s: self.theory_step_ms(batch).zip(self.shape).map(|(step_ms, shape)| {
                let [accumulate, batch, seq] =
                    [shape.training.accumulate, batch, shape.seq].map(|size| size as f64);
                accumulate * batch * seq / (step_ms / 1e3)
            }),
        }
    }

    /// The matrix products of a step, those of recomputation too, at the rate that the device does such at most.
    fn theory_step_ms(&self, batch: i64) -> Option<f64> {
        let (shape, products) = self.shape.zip(self.products)?;
        let flops = Shape { batch, ..shape }.product_flops() * (1.0 + shape.recompute_share());
        Some(flops / (products.tflop_s * 1e12) * 1e3)
    }

    /// The fastest of the smaller batches that were measured, if it is faster for its size than the largest that fits,
    /// or if that, or its time, is not known.
    fn faster_than(&self, max_batch: Option<i64>, capacity_bytes: i64) -> Option<AtBatch> {
        let time = self.time.as_ref()?;
        let each = |batch: i64| time.at(batch).map(|step| step.ms / batch as f64);
        let fits = |batch: &i64| self.peak_bytes(*batch).is_some_and(|peak| peak <= capacity_bytes);
        let smaller = time.batches().filter(|&batch| max_batch.is_none_or(|most| batch < most)).filter(fits);
        let rated = smaller.filter_map(|batch| Some((each(batch)?, batch)));
        // Of equals the larger, which has a step's fixed part for more.
        let (best, batch) = rated.min_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)))?;
        let largest = max_batch.and_then(each);
        largest.is_none_or(|largest| best * (1.0 + LEAST_MARGIN) < largest).then(|| self.at(batch))
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

    /// Whether the peak can be taken to be what is predicted. It is convex in the batch (the highest of several lines):
    /// three points on one line leave no room for a kink among them. Beyond them only theory can say.
    fn kink_excluded(&self, batch: i64, at: PeakAt) -> bool {
        if self.theory_peak_bytes(batch).is_some_and(|theory| off(at.bytes, theory) <= EXACT_PEAK_RESIDUAL) {
            return true;
        }
        let known = at.interval.is_some_and(|[low, high]| low == high);
        known && self.extrapolates(batch) == Some(Extrapolates::No)
    }

    /// How many runs of enough steps (of those that are not waited for: cycles) know this batch: those of it, or of either of the batches that it lies between. A
    /// line may be drawn on, but not for long.
    fn repeats(&self, batch: i64) -> usize {
        if self.extrapolates(batch) == Some(Extrapolates::Strongly) {
            return 0;
        }
        let batches = self.batches();
        let at_most = batches.iter().rev().find(|&&measured| measured <= batch);
        let at_least = batches.iter().find(|&&measured| measured >= batch);
        [at_most, at_least].into_iter().flatten().map(|&measured| self.long_runs(measured)).min().unwrap_or(0)
    }

    fn long_runs(&self, batch: i64) -> usize {
        let is_long = |run: &&&Measured| {
            run.batch() == Some(batch) && run.step_ms.is_some() && run.cycles >= FEWEST_STEPS
        };
        self.runs.iter().filter(is_long).count()
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

/// How far apart two sizes are, beside the second.
fn off(bytes: i64, theory: i64) -> f64 {
    (bytes - theory).abs() as f64 / theory as f64
}
