//! What is compared, each number with its change and how far that can be trusted.

use serde::Serialize;

use super::memory::{Span, peaks};
use super::repeat::Repeat;
use crate::record::Phase;
use crate::stats::{CONFIDENCE, MeanInterval, TRIM, WithinRuns, mean_interval, within_runs};

/// Where the bootstrap begins to draw: one number, so that the same runs give the same interval.
const SEED: u64 = 1;

/// One number on both sides. Of times: means over the pairs (geometric, of the runs' trimmed means), the change as
/// the mean of the pairs' ratios, with Student's 95 % interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Metric {
    pub name: &'static str,
    /// Null where that side has no such number.
    pub base: Option<f64>,
    pub candidate: Option<f64>,
    /// The candidate's change against the base; of bytes exact, and null from nothing to something.
    pub change_pct: Option<f64>,
    /// The interval; null where there are too few runs for one. Of bytes: what the runs differ by among
    /// themselves, usually nothing.
    pub low_pct: Option<f64>,
    pub high_pct: Option<f64>,
    pub unit: &'static str,
    #[serde(skip)]
    pub(super) exact: Option<(Span, Span)>,
}

/// Pairs of runs, base first.
pub type Pairs<'a> = [(&'a Repeat, &'a Repeat)];

/// The metric called `name`, or `None`.
pub fn find<'a>(metrics: &'a [Metric], name: &str) -> Option<&'a Metric> {
    metrics.iter().find(|metric| metric.name == name)
}

/// All of them: step time, time a token and throughput where tokens were counted, the phases that ran, and the
/// peak where memory was traced.
pub fn metrics(pairs: &Pairs) -> Vec<Metric> {
    let step = with_one_pair(pairs, times("step", "ms", 1e-6, pairs, |run| Some(run.time.log_time)));
    let token = with_one_pair(pairs, times("token", "µs", 1e-3, pairs, log_token_time));
    let rate = rate(&token);
    let phase = |&phase: &Phase| times(phase.as_str(), "ms", 1e-6, pairs, |run| run.phases[phase as usize]);
    let all = [step, token, rate].into_iter().chain(Phase::ALL.iter().map(phase)).chain(peak(pairs));
    all.filter(|metric| metric.base.is_some() || metric.candidate.is_some()).collect()
}

/// The logarithm of a run's time for one token, in nanoseconds.
pub fn log_token_time(run: &Repeat) -> Option<f64> {
    Some(run.time.log_time - run.tokens_per_step?.ln())
}

fn times(
    name: &'static str,
    unit: &'static str,
    scale: f64,
    pairs: &Pairs,
    log_time: impl Fn(&Repeat) -> Option<f64>,
) -> Metric {
    let base: Option<Vec<f64>> = pairs.iter().map(|(base, _)| log_time(base)).collect();
    let candidate: Option<Vec<f64>> = pairs.iter().map(|(_, candidate)| log_time(candidate)).collect();
    let changes = base.as_ref().zip(candidate.as_ref()).map(|(base, candidate)| {
        base.iter().zip(candidate).map(|(base, candidate)| candidate - base).collect::<Vec<_>>()
    });
    let level = |logs: Option<Vec<f64>>| logs.and_then(|logs| mean(&logs)).map(|log| log.exp() * scale);
    let interval = changes.as_deref().and_then(|changes| mean_interval(changes, CONFIDENCE));
    Metric {
        name,
        base: level(base),
        candidate: level(candidate),
        change_pct: changes.as_deref().and_then(mean).map(percent),
        low_pct: interval.map(|MeanInterval { low, .. }| percent(low)),
        high_pct: interval.map(|MeanInterval { high, .. }| percent(high)),
        unit,
        exact: None,
    }
}

/// Of one pair there is only what varies within the two runs.
fn with_one_pair(pairs: &Pairs, metric: Metric) -> Metric {
    let ([pair], Some(change)) = (pairs, metric.change_pct) else { return metric };
    let Some(WithinRuns { difference, low, high }) = within(pair) else { return metric };
    // The interval of the step's time, about this metric's own change.
    let shift = (change / 100.0).ln_1p() - difference;
    Metric { low_pct: Some(percent(low + shift)), high_pct: Some(percent(high + shift)), ..metric }
}

fn within((base, candidate): &(&Repeat, &Repeat)) -> Option<WithinRuns> {
    within_runs(base.log_times.as_deref()?, candidate.log_times.as_deref()?, TRIM, CONFIDENCE, SEED)
}

/// Tokens a second: the inverse of the time a token.
fn rate(token: &Metric) -> Metric {
    let inverse = |pct: Option<f64>| pct.map(|pct| percent(-(pct / 100.0).ln_1p()));
    let per_second = |us: Option<f64>| us.map(|us| 1e6 / us);
    Metric {
        name: "tokens_per_s",
        base: per_second(token.base),
        candidate: per_second(token.candidate),
        change_pct: inverse(token.change_pct),
        low_pct: inverse(token.high_pct),
        high_pct: inverse(token.low_pct),
        unit: "tokens/s",
        exact: None,
    }
}

fn peak(pairs: &Pairs) -> Option<Metric> {
    let (base, candidate): (Vec<&Repeat>, Vec<&Repeat>) = pairs.iter().copied().unzip();
    let (base, candidate) = (peaks(&base), peaks(&candidate));
    let most = |span: Option<Span>| span.map(|span| span.most as f64);
    let both = base.zip(candidate);
    let changes = both.map(|(base, candidate)| byte_changes(base, candidate));
    base.or(candidate).map(|_| Metric {
        name: "peak",
        base: most(base),
        candidate: most(candidate),
        change_pct: both.and_then(|(base, candidate)| change_pct(base.most, candidate.most)),
        low_pct: changes.and_then(|(low, _)| low),
        high_pct: changes.and_then(|(_, high)| high),
        unit: "bytes",
        exact: both,
    })
}

/// The least and the most that any run of the candidate changed against any of the base.
pub fn byte_changes(base: Span, candidate: Span) -> (Option<f64>, Option<f64>) {
    (change_pct(base.most, candidate.least), change_pct(base.least, candidate.most))
}

/// `None` from nothing to something, which is no share of anything.
pub fn change_pct(base: i64, candidate: i64) -> Option<f64> {
    match (base, candidate) {
        (base, candidate) if base == candidate => Some(0.0),
        (0, _) => None,
        (base, candidate) => Some(100.0 * (candidate - base) as f64 / base as f64),
    }
}

/// A difference of logarithms as a change in percent.
pub fn percent(log_change: f64) -> f64 {
    100.0 * log_change.exp_m1()
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The slow steps of a side, which the means leave out. Medians over its runs, in milliseconds; `max_ms` and the counts
/// are over all of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SideTails {
    pub p50_ms: Option<f64>,
    pub p95_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub max_ms: Option<f64>,
    /// Steps that took more than 1.5 times their run's median.
    pub slow_steps: usize,
    /// Steps looked at: all measured ones, whatever else was cut off as warm-up.
    pub steps: usize,
    /// Steps to a cycle. Where it is more than one, whole cycles are looked at, each by its mean step, and all steps of a
    /// slow one count as slow.
    pub cycle: usize,
}

impl SideTails {
    pub fn of(runs: &[&Repeat]) -> Self {
        let values =
            |value: fn(&Repeat) -> f64| -> Vec<f64> { runs.iter().map(|run| value(run) / 1e6).collect() };
        let median = |value| crate::stats::median(&values(value));
        SideTails {
            p50_ms: median(|run| run.time.tails.p50),
            p95_ms: median(|run| run.time.tails.p95),
            p99_ms: median(|run| run.time.tails.p99),
            max_ms: values(|run| run.time.tails.max).into_iter().reduce(f64::max),
            slow_steps: runs.iter().map(|run| run.time.tails.slow * run.time.cycle).sum(),
            steps: runs.iter().map(|run| run.time.measured_steps()).sum(),
            cycle: runs.iter().map(|run| run.time.cycle).max().unwrap_or(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_change_exactly() {
        for (base, candidate, expected) in
            [(100, 150, Some(50.0)), (0, 0, Some(0.0)), (0, 1, None), (8, 0, Some(-100.0))]
        {
            assert_eq!(change_pct(base, candidate), expected, "{base} {candidate}");
        }
        let (base, candidate) = (Span { least: 100, most: 200 }, Span { least: 150, most: 150 });
        assert_eq!(byte_changes(base, candidate), (Some(-25.0), Some(50.0)));
    }

    #[test]
    fn a_rate_is_the_inverse_of_a_time() {
        let time = Metric {
            name: "token",
            base: Some(10.0),
            candidate: Some(12.5),
            change_pct: Some(25.0),
            low_pct: Some(0.0),
            high_pct: Some(100.0),
            unit: "µs",
            exact: None,
        };
        let rate = rate(&time);
        let near = |a: Option<f64>, b: f64| a.is_some_and(|a| (a - b).abs() < 1e-9);
        assert!(
            near(rate.base, 1e5) && near(rate.candidate, 8e4) && near(rate.change_pct, -20.0),
            "{rate:?}"
        );
        assert!(near(rate.low_pct, -50.0) && near(rate.high_pct, 0.0), "{rate:?}");
    }
}
