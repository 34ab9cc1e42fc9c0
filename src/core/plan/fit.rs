//! The peak of one policy as a line over the batch, from its runs.

use serde::Serialize;

use super::measured::Measured;
use crate::record::Phase;
use crate::stats::{Line, RelativeLine, fit_line};

/// Of all intervals of a plan.
pub const CONFIDENCE: f64 = 0.95;

/// Peaks on one line are off it by rounding alone.
pub const EXACT_PEAK_RESIDUAL: f64 = 1e-4;

/// A peak that is off its line by more is not affine in the batch: allocation is deterministic.
pub const BAD_PEAK_RESIDUAL: f64 = 0.01;

/// A time that is off its line by more was disturbed, or is not affine; a few percent are usual on a shared machine.
pub const BAD_TIME_RESIDUAL: f64 = 0.1;

/// How good a policy's lines are.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FitQuality {
    pub runs: usize,
    /// The batches measured, each once.
    pub batches: Vec<i64>,
    /// `max |measured − line| / measured`, in percent; null where there is no line.
    pub peak_residual_pct: Option<f64>,
    /// The same of the medians of each batch's runs.
    pub time_residual_pct: Option<f64>,
    /// The smallest batch that the line of the peak rests on, where the peak lies elsewhere in the step below it.
    pub kink_above_batch: Option<i64>,
}

/// The peaks of one policy.
#[derive(Debug, Clone)]
pub struct PeakFit {
    pub line: Line,
    /// What was measured, in order: the highest peak of each batch.
    points: Vec<Point>,
    /// How many of them lie before those that the line rests on: there the peak lies elsewhere in the step.
    below: usize,
    pub kink_above_batch: Option<i64>,
    /// The peak lies in different phases, and too few runs share the last of them to tell its line.
    pub unresolved_kink: bool,
}

/// A measured peak.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    batch: i64,
    bytes: i64,
    phase: Option<Phase>,
}

/// A peak at some batch, in whole bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeakAt {
    pub bytes: i64,
    /// Of one more measurement; `None` where two batches leave nothing to tell it from.
    pub interval: Option<[i64; 2]>,
}

/// The peaks as a line. They are the highest of several lines, one for each place in the step that can be the highest:
/// where the phase of the peak changes, only the runs of the last phase count.
pub fn fit_peak(runs: &[&Measured]) -> Option<PeakFit> {
    let points = points(runs);
    let last_phase = points.last()?.phase;
    let start = points.iter().rposition(|point| point.phase != last_phase).map_or(0, |place| place + 1);
    let line_from = |start: usize| {
        fit_line(&points[start..].iter().map(|p| (p.batch as f64, p.bytes as f64)).collect::<Vec<_>>())
    };
    let (start, line) = match line_from(start) {
        Some(line) => (start, line),
        None => (0, line_from(0)?),
    };
    // Two points say nothing against a line; more may, and then the smallest batches are the first to doubt.
    let good = |tolerance: f64| {
        let lines = (start..points.len()).filter_map(|start| Some((start, line_from(start)?)));
        lines.clone().find(|(_, line)| line.n > 2 && line.worst_relative_residual <= tolerance)
    };
    let (start, line) =
        good(EXACT_PEAK_RESIDUAL).or_else(|| good(BAD_PEAK_RESIDUAL)).unwrap_or((start, line));
    Some(PeakFit {
        line,
        below: start,
        kink_above_batch: (start > 0).then(|| points[start].batch),
        unresolved_kink: points[start..].iter().any(|point| point.phase != last_phase),
        points,
    })
}

/// Each batch once, with its highest peak: allocation is deterministic, and repeats say nothing more of its line.
fn points(runs: &[&Measured]) -> Vec<Point> {
    let point =
        |run: &&Measured| Some(Point { batch: run.batch()?, bytes: run.peak_bytes?, phase: run.peak_phase });
    let mut points: Vec<Point> = runs.iter().filter_map(point).collect();
    points.sort_by_key(|point| (point.batch, -point.bytes));
    points.dedup_by_key(|point| point.batch);
    points
}

impl PeakFit {
    /// By the line; below the batches that it rests on by those measured there.
    pub fn at(&self, batch: i64) -> PeakAt {
        if self.below > 0 && batch < self.points[self.below].batch {
            return self.before_the_line(batch);
        }
        let line = self.line.predict(batch as f64, CONFIDENCE);
        let interval = line.interval.map(|(low, high)| [whole(low), whole(high)]);
        PeakAt { bytes: whole(line.value), interval }
    }

    /// The highest of several lines is convex: it lies below the chord between two measured batches, and above the
    /// chords of their neighbours, drawn on. Between two batches the chord is taken, so that what is said to fit fits;
    /// before the first, the first chord drawn on.
    fn before_the_line(&self, batch: i64) -> PeakAt {
        let next = self.points.iter().position(|point| point.batch >= batch).unwrap_or(self.below);
        if self.points[next].batch == batch {
            let bytes = self.points[next].bytes;
            return PeakAt { bytes, interval: Some([bytes, bytes]) };
        }
        let drawn_on = |from: usize| {
            let [one, other] = self.points.get(from..from + 2)? else { return None };
            Some(chord(*one, *other, batch))
        };
        let line = whole(self.line.intercept + self.line.slope * batch as f64);
        let least = [next.checked_sub(2), Some(next)].into_iter().flatten().filter_map(drawn_on);
        let least = least.fold(line, i64::max);
        match next.checked_sub(1).and_then(drawn_on) {
            // Rounding may put what is one line a byte apart.
            Some(between) => PeakAt { bytes: between, interval: Some([least.min(between), between]) },
            None => PeakAt { bytes: least, interval: Some([least, self.points[next].bytes.max(least)]) },
        }
    }

    /// Whether it grows with the batch, so that there is a largest one that fits.
    pub fn grows(&self) -> bool {
        self.line.slope >= 1.0
    }

    /// The largest batch whose predicted peak stays within the capacity; 0 where none does.
    pub fn largest_batch(&self, capacity_bytes: i64) -> i64 {
        let fits = |batch: i64| self.at(batch).bytes <= capacity_bytes;
        let line = ((capacity_bytes as f64 - self.line.intercept) / self.line.slope).floor().max(0.0) as i64;
        // Rounding, and what is measured below a kink, can make it a little less.
        let near =
            (line.saturating_sub(1)..=line.saturating_add(1)).rev().find(|&batch| batch > 0 && fits(batch));
        near.or_else(|| (1..line).rev().find(|&batch| fits(batch))).unwrap_or(0)
    }
}

fn whole(bytes: f64) -> i64 {
    bytes.round() as i64
}

/// The line through two points, at a batch.
fn chord(one: Point, other: Point, batch: i64) -> i64 {
    let slope = (other.bytes - one.bytes) as f64 / (other.batch - one.batch) as f64;
    whole(one.bytes as f64 + slope * (batch - one.batch) as f64)
}

/// How good the two are together.
pub fn quality(runs: &[&Measured], peak: Option<&PeakFit>, time: Option<&RelativeLine>) -> FitQuality {
    let mut batches: Vec<i64> = runs.iter().filter_map(|run| run.batch()).collect();
    batches.sort_unstable();
    batches.dedup();
    FitQuality {
        runs: runs.len(),
        batches,
        peak_residual_pct: peak.map(|peak| 100.0 * peak.line.worst_relative_residual),
        time_residual_pct: time.map(|line| 100.0 * line.worst_relative_residual),
        kink_above_batch: peak.and_then(|peak| peak.kink_above_batch),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::measured;
    use super::*;

    fn peaks(points: &[(i64, i64, Phase)]) -> Option<PeakFit> {
        let runs: Vec<Measured> = points
            .iter()
            .map(|&(batch, peak, phase)| Measured {
                peak_bytes: Some(peak),
                peak_phase: Some(phase),
                ..measured("none", batch)
            })
            .collect();
        fit_peak(&runs.iter().collect::<Vec<_>>())
    }

    #[test]
    fn peaks_on_a_line_are_exact_at_any_batch() {
        let fit =
            peaks(&[(1, 1_100, Phase::Backward), (2, 1_200, Phase::Backward), (4, 1_400, Phase::Backward)]);
        let fit = fit.unwrap();
        assert_eq!(fit.at(64), PeakAt { bytes: 7_400, interval: Some([7_400, 7_400]) });
        assert_eq!(
            (fit.largest_batch(7_400), fit.largest_batch(7_399), fit.largest_batch(1_000)),
            (64, 63, 0)
        );
        assert!(!fit.unresolved_kink && fit.kink_above_batch.is_none() && fit.grows());
    }

    #[test]
    fn where_the_peak_moves_only_the_runs_after_that_count() {
        let fit = peaks(&[
            (1, 2_000, Phase::Optimizer),
            (2, 2_000, Phase::Optimizer),
            (4, 2_400, Phase::Backward),
            (8, 4_400, Phase::Backward),
        ]);
        let fit = fit.unwrap();
        assert_eq!((fit.kink_above_batch, fit.unresolved_kink), (Some(4), false));
        assert_eq!([16, 2, 1].map(|batch| fit.at(batch).bytes), [8_400, 2_000, 2_000]);
        assert_eq!(fit.at(3), PeakAt { bytes: 2_200, interval: Some([2_000, 2_200]) });
        assert_eq!((fit.largest_batch(2_399), fit.largest_batch(1_999)), (3, 0));
    }

    #[test]
    fn a_kink_that_cannot_be_resolved_is_said() {
        let fit = peaks(&[(1, 2_000, Phase::Optimizer), (8, 4_400, Phase::Backward)]).unwrap();
        assert!(fit.unresolved_kink);
    }

    #[test]
    fn a_kink_within_one_phase_is_found_by_its_residual() {
        let bent =
            [1, 2, 4, 8, 16].map(|batch| (batch, 10_000_i64.max(5_000 + 1_500 * batch), Phase::Backward));
        let fit = peaks(&bent).unwrap();
        assert_eq!((fit.kink_above_batch, fit.at(32).bytes), (Some(4), 53_000));
    }

    #[test]
    fn between_batches_below_the_line_the_peak_lies_between_chords() {
        // Kinks at 3 and 10, of which the runs see but that there are some.
        let peak =
            |batch: i64| [9_000 + 100 * batch, 8_400 + 300 * batch, 6_400 + 500 * batch].into_iter().max();
        let measured = [2, 4, 8, 12, 16, 24].map(|batch| (batch, peak(batch).unwrap(), Phase::Backward));
        let fit = peaks(&measured).unwrap();
        assert_eq!(fit.kink_above_batch, Some(12));
        for batch in 1..40 {
            let (at, peak) = (fit.at(batch), peak(batch).unwrap());
            let [low, high] = at.interval.unwrap();
            assert!(
                low <= peak && peak <= high && (batch < 2 || at.bytes >= peak),
                "{batch}: {at:?}, {peak}"
            );
            assert!((at.bytes - peak) as f64 <= 0.02 * peak as f64, "{batch}: {at:?}, {peak}");
        }
        assert_eq!(fit.at(6), PeakAt { bytes: 10_200, interval: Some([10_000, 10_200]) });
    }

    #[test]
    fn repeats_of_two_batches_say_nothing_for_a_line() {
        let twice = [(2, 1_200), (2, 1_200), (4, 1_400), (4, 1_400)];
        let fit = peaks(&twice.map(|(batch, bytes)| (batch, bytes, Phase::Backward))).unwrap();
        assert_eq!(fit.at(8), PeakAt { bytes: 1_800, interval: None });
    }

    #[test]
    fn one_batch_makes_no_line() {
        assert!(peaks(&[(4, 10, Phase::Backward), (4, 11, Phase::Backward)]).is_none());
    }
}
