//! A plan put to the test: what it predicts, and what running it gave.

use serde::Serialize;

use super::making::Plan;
use super::measured::Measured;
use super::policy::PolicyPlan;
use crate::record::RunStatus;

/// A setting to run, and what is predicted of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trial {
    pub checkpoint: Option<String>,
    pub batch: i64,
    pub predicted_fits: bool,
    pub predicted_peak_bytes: Option<i64>,
    pub predicted_step_ms: Option<f64>,
    pub predicted_tokens_per_s: Option<f64>,
}

/// A trial with what came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verified {
    #[serde(flatten)]
    pub trial: Trial,
    pub run: String,
    pub status: String,
    /// Whether the run completed within the capacity.
    pub fits: bool,
    pub measured_peak_bytes: Option<i64>,
    pub measured_step_ms: Option<f64>,
    pub measured_tokens_per_s: Option<f64>,
    /// Prediction less measurement, of the measurement. Null for a run that did not complete.
    pub peak_error_pct: Option<f64>,
    pub step_error_pct: Option<f64>,
    /// Whether it fitted as predicted, or did not as predicted.
    pub agrees: bool,
}

/// The chosen setting, and the first batch of its policy that is predicted not to fit. Where nothing is predicted to
/// fit, one sequence with the policy that comes nearest.
pub fn trials(plan: &Plan) -> Vec<Trial> {
    let Some(best) = &plan.best else { return nearest_to_fit(plan).into_iter().collect() };
    let chosen = Trial {
        checkpoint: best.checkpoint.clone(),
        batch: best.at.batch,
        predicted_fits: true,
        predicted_peak_bytes: best.at.predicted_peak_bytes,
        predicted_step_ms: best.at.predicted_step_ms,
        predicted_tokens_per_s: best.at.predicted_tokens_per_s,
    };
    let policy = plan.policies.iter().find(|policy| policy.checkpoint == best.checkpoint);
    let first_beyond = policy
        .and_then(|policy| Some(too_large(policy, policy.max_batch? + 1, policy.next_batch_peak_bytes?)));
    [chosen].into_iter().chain(first_beyond).collect()
}

fn nearest_to_fit(plan: &Plan) -> Option<Trial> {
    let known = plan.policies.iter().filter(|policy| policy.max_batch == Some(0));
    let nearest = known.min_by_key(|policy| policy.predicted_peak_bytes.unwrap_or(i64::MAX))?;
    Some(too_large(nearest, 1, nearest.predicted_peak_bytes?))
}

fn too_large(policy: &PolicyPlan, batch: i64, predicted_peak_bytes: i64) -> Trial {
    Trial {
        checkpoint: policy.checkpoint.clone(),
        batch,
        predicted_fits: false,
        predicted_peak_bytes: Some(predicted_peak_bytes),
        predicted_step_ms: None,
        predicted_tokens_per_s: None,
    }
}

impl Verified {
    /// Holds a trial's run against its prediction.
    pub fn of(trial: Trial, run: &Measured, capacity_bytes: i64) -> Self {
        let complete = run.status == RunStatus::Complete;
        let fits = complete && run.peak_bytes.is_some_and(|peak| peak <= capacity_bytes);
        let ended = complete || run.status == RunStatus::OutOfMemory;
        let peak = run.peak_bytes.filter(|_| complete);
        let step = run.step_ms.filter(|_| complete);
        let error = |predicted: Option<f64>, measured: Option<f64>| {
            predicted.zip(measured).map(|(predicted, measured)| 100.0 * (predicted - measured) / measured)
        };
        let bytes = |bytes: Option<i64>| bytes.map(|bytes| bytes as f64);
        Verified {
            run: run.run_id.clone(),
            status: run.status.to_string(),
            fits,
            measured_peak_bytes: peak,
            measured_step_ms: step,
            measured_tokens_per_s: run.tokens.zip(step).map(|(tokens, ms)| tokens / (ms / 1e3)),
            peak_error_pct: error(bytes(trial.predicted_peak_bytes), bytes(peak)),
            step_error_pct: error(trial.predicted_step_ms, step),
            agrees: ended && fits == trial.predicted_fits,
            trial,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::measured;
    use super::*;

    fn trial(predicted_fits: bool) -> Trial {
        Trial {
            checkpoint: Some("none".to_owned()),
            batch: 10,
            predicted_fits,
            predicted_peak_bytes: Some(1_980),
            predicted_step_ms: Some(7.7),
            predicted_tokens_per_s: None,
        }
    }

    #[test]
    fn predictions_are_held_against_what_was_measured() {
        let run = measured("none", 10); // 2,000 bytes, 7 ms, 160 tokens
        let verified = Verified::of(trial(true), &run, 2_000);
        assert!(verified.fits && verified.agrees);
        assert!((verified.peak_error_pct.unwrap() + 1.0).abs() < 1e-9);
        assert!((verified.step_error_pct.unwrap() - 10.0).abs() < 1e-9);
        assert!((verified.measured_tokens_per_s.unwrap() - 160.0 / 0.007).abs() < 1e-6);
        assert!(!Verified::of(trial(true), &run, 1_999).agrees);
        assert!(Verified::of(trial(false), &run, 1_999).agrees);
    }

    #[test]
    fn out_of_memory_is_what_not_fitting_means_and_a_failed_run_says_nothing() {
        let ended = |status| Measured { status, peak_bytes: None, ..measured("none", 11) };
        let oom = Verified::of(trial(false), &ended(RunStatus::OutOfMemory), 2_000);
        assert!(oom.agrees && !oom.fits && oom.peak_error_pct.is_none() && oom.measured_step_ms.is_none());
        assert!(!Verified::of(trial(true), &ended(RunStatus::OutOfMemory), 2_000).agrees);
        assert!(!Verified::of(trial(false), &ended(RunStatus::Failed), 2_000).agrees);
    }
}
