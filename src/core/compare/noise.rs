//! How much runs of the same program differ: the comparison of a program with itself.

use chrono::{DateTime, Utc};

use super::margin::Margin;
use super::metrics::percent;
use super::repeat::Repeat;
use super::setting::differing;
use super::side::Side;
use super::sound::why_no_noise;
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
    base.repeats.iter().chain(&candidate.repeats).try_for_each(shows_noise)?;
    let pairs = base.repeats.iter().zip(&candidate.repeats);
    let logs: Vec<f64> =
        pairs.map(|(base, candidate)| candidate.time.log_time - base.time.log_time).collect();
    let few = NoNoise::FewPairs { pairs: logs.len() };
    let interval = mean_interval(&logs, CONFIDENCE).filter(|found| found.n >= ENOUGH_PAIRS).ok_or(few)?;
    let squares: f64 = logs.iter().map(|log| (log - interval.mean).powi(2)).sum();
    let levels: f64 = base.repeats.iter().map(|run| run.time.log_time).sum();
    Ok(Noise {
        measured_at,
        device: Some(base.device.clone()),
        pairs: logs.len(),
        half_width_pct: percent((interval.high - interval.low) / 2.0),
        pair_sd_pct: percent((squares / (logs.len() - 1) as f64).sqrt()),
        mean_pct: percent(interval.mean),
        step_ms: (levels / base.repeats.len() as f64).exp() / 1e6,
        flags: flags.to_vec(),
    })
}

/// Whether a run is a sound unit to measure noise with; that one is not shows when it has ended.
pub fn shows_noise(run: &Repeat) -> Result<(), NoNoise> {
    match why_no_noise(run, Margin::of(None)) {
        Some(why) => Err(NoNoise::Unsound { run: run.run_id.clone(), why }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::made_up::Made;
    use crate::compare::side::Gathering;

    fn side(name: &str, runs: &[Made], first_minute: i64) -> Side {
        let mut side = Gathering::new(name);
        for (at, made) in runs.iter().enumerate() {
            side.add(&made.tables(&format!("{name}-{at}"), first_minute + 2 * at as i64)).unwrap();
        }
        side.finish().unwrap()
    }

    fn measured(base: &[Made], candidate: &[Made]) -> Result<Noise, NoNoise> {
        let flags = ["--threads".to_owned(), "1".to_owned()];
        noise(&side("a", base, 0), &side("b", candidate, 1), &flags, DateTime::UNIX_EPOCH)
    }

    /// Five runs, each off the level by its own lot.
    fn five(made: Made, lots: [f64; 5]) -> [Made; 5] {
        lots.map(|lot| Made { step_ms: made.step_ms * (1.0 + lot), ..made })
    }

    const LOTS: [f64; 5] = [0.02, -0.01, 0.0, 0.03, -0.02];

    #[test]
    fn noise_is_half_the_width_of_students_interval() {
        let made = Made::default();
        let found = measured(&five(made, [0.0; 5]), &five(made, LOTS)).unwrap();
        // The logs of 1 + LOTS have a mean of 0.003819 and s = 0.020563; t(4) = 2.776, √5.
        let half = 2.776_445 * 0.020_563 / 5.0_f64.sqrt();
        assert!((found.half_width_pct - 100.0 * half.exp_m1()).abs() < 0.15, "{found:?}");
        assert!((found.pair_sd_pct - 2.077).abs() < 0.12 && (found.mean_pct - 0.38).abs() < 0.1, "{found:?}");
        assert!((found.step_ms - 10.0).abs() < 0.02 && found.pairs == 5, "{found:?}");
        assert_eq!(
            (found.device.as_deref(), found.flags.as_slice().join(" ")),
            (Some("cpu"), "--threads 1".to_owned())
        );
    }

    #[test]
    fn a_drift_is_noise_and_anything_beside_it_is_unsound() {
        let drifting = Made { jump: 0.2, ..Made::default() };
        assert!(measured(&[drifting; 5], &[drifting; 5]).is_ok());
        for (made, part) in [
            (Made { steps: 20, ..drifting }, "30 is the least"),
            (Made { overhead: 0.2, ..drifting }, "instruments cost 20.0 %"),
            // Of a slope all steps depend on each other, and the way out is that of a drift.
            (Made { slope: 0.2, ..Made::default() }, "let the machine settle"),
        ] {
            let error = measured(&[made; 5], &[Made::default(); 5]).unwrap_err().to_string();
            assert!(error.contains("run a-0 is no sound unit") && error.contains(part), "{error}");
        }
    }

    #[test]
    fn sides_that_are_no_pairs_of_one_program_are_refused() {
        let made = Made::default();
        let few = measured(&[made; 4], &[made; 4]).unwrap_err();
        assert_eq!(few, NoNoise::FewPairs { pairs: 4 });
        let other = measured(&[made; 5], &[Made { seed: 2, ..made }; 5]).unwrap_err();
        assert_eq!(other, NoNoise::NotTheSame { fields: vec!["seed".to_owned()] });
    }
}
