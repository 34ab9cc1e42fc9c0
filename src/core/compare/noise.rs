//! How much runs of the same program differ: the comparison of a program with itself.

use chrono::{DateTime, Utc};

use super::metrics::percent;
use super::setting::differing;
use super::side::Side;
use super::verdict::{Margin, why_unsound};
use crate::stats::{CONFIDENCE, ENOUGH_PAIRS, mean_interval};
use crate::store::Noise;

/// Why runs say nothing about noise.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoNoise {
    #[error("{pairs} pairs of runs are too few to measure noise; {ENOUGH_PAIRS} is the least")]
    FewPairs { pairs: usize },
    #[error("the two sides are not the same: {} differ; give both the same flags", fields.join(", "))]
    NotTheSame { fields: Vec<String> },
    #[error("run {run} is no sound unit: {why}")]
    Unsound { run: String, why: String },
}

/// The noise between two sides of the same program: the half-width of Student's 95 % interval of the pairs' log
/// ratios. `flags` are those that the runs were made with.
pub fn noise(
    base: &Side,
    candidate: &Side,
    flags: &[String],
    measured_at: DateTime<Utc>,
) -> Result<Noise, NoNoise> {
    let fields = differing(&base.setting, &candidate.setting).into_iter().map(|found| found.field);
    let fields: Vec<String> = fields.collect();
    if !fields.is_empty() {
        return Err(NoNoise::NotTheSame { fields });
    }
    let margin = Margin::of(None);
    for run in base.repeats.iter().chain(&candidate.repeats) {
        // A drift is noise, too: it is what is measured here, and no reason to look away.
        let why =
            why_unsound(run, margin).filter(|_| !run.time.drift.is_some_and(|d| d.exceeds(margin.log())));
        if let Some(why) = why {
            return Err(NoNoise::Unsound { run: run.run_id.clone(), why });
        }
    }
    let pairs = base.repeats.iter().zip(&candidate.repeats);
    let logs: Vec<f64> =
        pairs.map(|(base, candidate)| candidate.time.log_time - base.time.log_time).collect();
    let few = NoNoise::FewPairs { pairs: logs.len() };
    let interval = mean_interval(&logs, CONFIDENCE).filter(|found| found.n >= ENOUGH_PAIRS).ok_or(few)?;
    let squares: f64 = logs.iter().map(|log| (log - interval.mean).powi(2)).sum();
    let levels: f64 = base.repeats.iter().map(|run| run.time.log_time).sum();
    Ok(Noise {
        measured_at,
        pairs: logs.len(),
        half_width_pct: percent((interval.high - interval.low) / 2.0),
        pair_sd_pct: percent((squares / (logs.len() - 1) as f64).sqrt()),
        mean_pct: percent(interval.mean),
        step_ms: (levels / base.repeats.len() as f64).exp() / 1e6,
        flags: flags.to_vec(),
    })
}
