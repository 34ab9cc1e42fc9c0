//! The step time of one policy at any batch, from its runs.

use super::fit::{BAD_TIME_RESIDUAL, CONFIDENCE};
use super::measured::Measured;
use super::policy::TimeSource;
use crate::stats::{LEAST_MARGIN, Prediction, RelativeLine, fit_relative_line, median};

/// What its runs say of a policy's step time.
#[derive(Debug, Clone)]
pub struct TimeFit {
    /// A line over the batch, where two were measured and it rises.
    pub line: Option<RelativeLine>,
    /// Larger batches took no longer, as on a device that waits for the host's launches: there is no line, since nothing
    /// tells where that ends, and only what was measured has a time.
    pub flat: bool,
    /// The batches whose time was measured, in order, each with the median of its runs.
    measured: Vec<(i64, f64)>,
}

/// A predicted step time, and where it comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepTime {
    pub ms: f64,
    /// A step takes some time, whatever noise says: the lower end is 0 at least.
    pub interval_ms: Option<[f64; 2]>,
    pub source: TimeSource,
}

/// The times of these runs; `None` where none was measured.
pub fn fit_time(runs: &[&Measured]) -> Option<TimeFit> {
    let point = |run: &&Measured| Some((run.batch()?, run.step_ms.filter(|ms| *ms > 0.0)?));
    let mut points: Vec<(i64, f64)> = runs.iter().filter_map(point).collect();
    points.sort_by_key(|(batch, _)| *batch);
    let of_batch = |repeats: &[(i64, f64)]| {
        let times: Vec<f64> = repeats.iter().map(|(_, ms)| *ms).collect();
        Some((repeats.first()?.0, median(&times)?))
    };
    let measured: Vec<_> = points.chunk_by(|one, other| one.0 == other.0).filter_map(of_batch).collect();
    let points: Vec<(f64, f64)> = points.iter().map(|(batch, ms)| (*batch as f64, *ms)).collect();
    let line = fit_relative_line(&points);
    let flat = line.as_ref().zip(measured.last()).is_some_and(|(line, largest)| !rises(line, *largest));
    (!measured.is_empty()).then(|| TimeFit { line: line.filter(|_| !flat), flat, measured })
}

/// Whether a step takes longer with the batch: more than [`LEAST_MARGIN`] of the largest one's time goes by its size.
/// By less the sign of the noise would decide.
fn rises(line: &RelativeLine, (batch, ms): (i64, f64)) -> bool {
    line.slope * batch as f64 > LEAST_MARGIN * ms
}

impl TimeFit {
    /// By the line; by the runs of this very batch where they are far off it; and where there is no line, or it denies
    /// that steps take time, by the nearest measured batch. `None` of a batch that was not measured, where times do not grow.
    pub fn at(&self, batch: i64) -> Option<StepTime> {
        let here = self.measured.iter().find(|(measured, _)| *measured == batch).map(|(_, ms)| *ms);
        match (self.on_the_line(batch), here) {
            (Some(line), Some(ms)) if (ms - line.value).abs() / ms > BAD_TIME_RESIDUAL => {
                Some(step_time(moved(line, ms), TimeSource::Measured))
            }
            (Some(line), _) => Some(step_time(line, TimeSource::Fit)),
            (None, Some(ms)) => {
                Some(step_time(Prediction { value: ms, interval: None }, TimeSource::Measured))
            }
            (None, None) if self.flat => None,
            (None, None) => {
                let (nearest, ms) = self.nearest(batch)?;
                let value = ms * (batch as f64 / nearest as f64);
                Some(step_time(Prediction { value, interval: None }, TimeSource::Scaled))
            }
        }
    }

    /// What the line predicts, if it is a time at all.
    fn on_the_line(&self, batch: i64) -> Option<Prediction> {
        let line = self.line.as_ref()?.predict(batch as f64, CONFIDENCE);
        (line.value > 0.0).then_some(line)
    }

    /// Whether the line has no time for this batch.
    pub fn denies(&self, batch: i64) -> bool {
        self.line.is_some() && self.on_the_line(batch).is_none()
    }

    /// The measured batch from which the fewest times lie between.
    pub fn nearest(&self, batch: i64) -> Option<(i64, f64)> {
        let away = |measured: i64| (measured as f64 / batch.max(1) as f64).ln().abs();
        self.measured.iter().copied().min_by(|one, other| away(one.0).total_cmp(&away(other.0)))
    }

    /// The batches whose time was measured, in order.
    pub fn batches(&self) -> impl Iterator<Item = i64> {
        self.measured.iter().map(|(batch, _)| *batch)
    }
}

/// As wide an interval around another value.
fn moved(prediction: Prediction, value: f64) -> Prediction {
    let by = value - prediction.value;
    Prediction { value, interval: prediction.interval.map(|(low, high)| (low + by, high + by)) }
}

fn step_time(predicted: Prediction, source: TimeSource) -> StepTime {
    let interval_ms = predicted.interval.map(|(low, high)| [low.max(0.0), high]);
    StepTime { ms: predicted.value, interval_ms, source }
}

#[cfg(test)]
mod tests {
    use super::super::tests::measured;
    use super::*;

    /// Runs of these batches and times.
    fn times(points: &[(i64, f64)]) -> TimeFit {
        let run = |&(batch, ms): &(i64, f64)| Measured { step_ms: Some(ms), ..measured("none", batch) };
        let runs: Vec<Measured> = points.iter().map(run).collect();
        fit_time(&runs.iter().collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn a_lower_end_below_zero_is_zero_and_the_interval_stays() {
        let wild = times(&[(2, 2.0), (2, 2.4), (4, 9.0), (4, 3.0), (8, 11.0), (8, 9.0)]);
        let [low, high] = wild.at(64).unwrap().interval_ms.unwrap();
        assert!(low == 0.0 && high > 100.0, "{low} {high}");
    }

    #[test]
    fn where_runs_are_far_off_their_line_they_speak_for_their_own_batch() {
        let bent = times(&[(2, 4.0), (4, 3.0), (8, 9.0)]);
        let at = |batch: i64| bent.at(batch).unwrap();
        assert_eq!((at(4).ms, at(4).source, at(16).source), (3.0, TimeSource::Measured, TimeSource::Fit));
        let [low, high] = at(4).interval_ms.unwrap();
        assert!(low < 3.0 && high > 3.0);
        assert_eq!(times(&[(2, 3.0), (4, 4.0), (8, 6.0)]).at(4).unwrap().source, TimeSource::Fit);
    }

    #[test]
    fn times_that_do_not_grow_with_the_batch_tell_of_no_other() {
        for points in [[(2, 3.0), (4, 2.9), (8, 2.8)], [(2, 2.89), (4, 2.9), (8, 2.9)]] {
            let flat = times(&points);
            assert!(flat.flat && flat.line.is_none(), "{points:?}");
            assert_eq!(flat.at(4).map(|step| (step.ms, step.source)), Some((2.9, TimeSource::Measured)));
            assert_eq!((flat.at(6), flat.at(16)), (None, None));
        }
        assert!(!times(&[(2, 3.0)]).flat && times(&[(2, 3.0)]).at(4).is_some());
        // Batches that lie close have times that do.
        assert!(!times(&[(1_000, 3.0), (1_001, 3.003)]).flat);
    }

    #[test]
    fn a_line_that_denies_time_gives_way_to_the_nearest_batch() {
        let steep = times(&[(8, 10.0), (16, 40.0), (32, 160.0)]);
        assert!(steep.denies(2) && !steep.denies(16));
        let two = steep.at(2).unwrap();
        assert_eq!((two.ms, two.source, two.interval_ms), (2.5, TimeSource::Scaled, None));
    }
}
