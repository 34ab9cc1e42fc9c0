//! What a cell of a sweep came to.

use serde::Serialize;
use serde_json::{Map, Value};

use super::grid::{AXES, Cell};
use super::measure::Measure;
use super::tried::Tried;
use crate::record::{EvidenceLevel, RunStatus, SweepRow};
use crate::stats::{CONFIDENCE, ENOUGH_PAIRS, FEWEST_PAIRS, mean_interval};

/// One setting's row in a sweep's table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellResult {
    /// From 1, in the order of the grid.
    pub cell: usize,
    /// By flag: the grid's own, and what else a grid could vary.
    pub settings: Map<String, Value>,
    /// `Complete` where it was measured, but `OutOfMemory` as soon as one of its runs was.
    pub status: RunStatus,
    /// Why it has no measurement, or not as many as asked for.
    pub reason: Option<String>,
    /// The runs that were measured.
    pub run_ids: Vec<String>,
    /// The mean over its runs of a step's time (of its logarithm, so the geometric mean), with Student's 95 %
    /// interval; one and two runs have none.
    pub step_ms: Option<f64>,
    pub step_ms_low: Option<f64>,
    pub step_ms_high: Option<f64>,
    pub tokens_per_s: Option<f64>,
    pub tokens_per_s_low: Option<f64>,
    pub tokens_per_s_high: Option<f64>,
    /// The highest of all its runs' measured steps.
    pub peak_bytes: Option<i64>,
    pub activation_bytes: Option<i64>,
    /// The share of the step spent computing activations again.
    pub recompute_pct: Option<f64>,
    /// Whether the peak is within the capacity; `None` where there is none to fit into, or no peak. False as soon as one of its
    /// runs was out of memory, whatever the others peaked at.
    pub fits: Option<bool>,
    /// No other setting has more tokens/s at no higher a peak; those that were out of memory are none.
    pub pareto: bool,
    pub evidence: Option<EvidenceLevel>,
    /// Why the evidence is worth that much and no more.
    pub why: Option<String>,
    /// Whether any run of it has come to an end.
    #[serde(skip)]
    pub(crate) tried: bool,
    /// Each measured repeat with its run, to pair with other cells'.
    #[serde(skip)]
    pub(crate) measured: Vec<(usize, String)>,
}

impl CellResult {
    /// Sums up what has been tried of a cell, asked for so many times.
    pub(super) fn of(
        number: usize,
        cell: &Cell,
        tried: &Tried,
        repeats: usize,
        capacity: Option<i64>,
    ) -> Self {
        let measures = &tried.measures;
        let all = || measures.iter().map(|(_, measure)| measure);
        let logs: Vec<f64> = all().filter_map(|m| Some(m.estimate.as_ref()?.log_time)).collect();
        // That of two runs, of one degree of freedom, is a dozen times as wide as what they differ by.
        let interval = mean_interval(&logs, CONFIDENCE).filter(|interval| interval.n >= FEWEST_PAIRS);
        let mean = (!logs.is_empty()).then(|| logs.iter().sum::<f64>() / logs.len() as f64);
        let ms = |log_ns: f64| log_ns.exp() / 1e6;
        let tokens = all().find_map(|measure| measure.tokens_per_step);
        let per_s = |log_ns: f64| tokens.map(|tokens| tokens / (log_ns.exp() / 1e9));
        let peak_bytes = all().filter_map(|measure| measure.peak_bytes).max();
        let (status, reason) = tried.outcome(repeats);
        let weakness = all().find_map(|measure| measure.weakness.clone());
        CellResult {
            cell: number + 1,
            settings: settings(cell, all().next()),
            status,
            reason,
            run_ids: all().map(|measure| measure.run_id.clone()).collect(),
            step_ms: mean.map(ms),
            step_ms_low: interval.map(|interval| ms(interval.low)),
            step_ms_high: interval.map(|interval| ms(interval.high)),
            tokens_per_s: mean.and_then(per_s),
            // The longest step is the lowest rate.
            tokens_per_s_low: interval.and_then(|interval| per_s(interval.high)),
            tokens_per_s_high: interval.and_then(|interval| per_s(interval.low)),
            peak_bytes,
            activation_bytes: all().filter_map(|measure| measure.activation_bytes).max(),
            recompute_pct: mean_of(all().filter_map(|measure| measure.recompute_share)).map(|s| 100.0 * s),
            fits: fits(status, peak_bytes, capacity),
            pareto: false,
            evidence: (!measures.is_empty()).then(|| evidence(measures.len(), weakness.as_deref())),
            why: (!measures.is_empty()).then(|| why(measures.len(), weakness)),
            tried: tried.any(),
            measured: measures.iter().map(|(repeat, m)| (*repeat, m.run_id.clone())).collect(),
        }
    }

    pub(super) fn is_measured(&self) -> bool {
        self.step_ms.is_some()
    }

    /// Its tokens/s and its peak, which are those of a setting to take unless it was out of memory.
    pub fn rate_and_peak(&self) -> Option<(f64, i64)> {
        let is_sound = self.status != RunStatus::OutOfMemory;
        self.tokens_per_s.zip(self.peak_bytes).filter(|_| is_sound)
    }

    /// The value of a flag, without the quotes of a text.
    pub fn setting(&self, flag: &str) -> Option<String> {
        self.settings.get(flag).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    }

    /// The grid's own flags in words: `batch 8, checkpoint full`.
    pub fn named(&self, flags: &[String]) -> String {
        let part = |flag: &String| Some(format!("{flag} {}", self.setting(flag)?));
        let parts: Vec<String> = flags.iter().filter_map(part).collect();
        if parts.is_empty() { "the base setting".to_owned() } else { parts.join(", ") }
    }

    pub(super) fn row(&self, repeats: usize, capacity_bytes: Option<i64>) -> SweepRow {
        let word = |flag: &str| self.setting(flag);
        let number = |flag: &str| self.settings.get(flag).and_then(Value::as_i64);
        SweepRow {
            cell: self.cell as i64,
            batch: number("batch"),
            checkpoint: word("checkpoint"),
            accumulate: number("accumulate"),
            dtype: word("dtype"),
            attention: word("attention"),
            adamw: word("adamw"),
            seq: number("seq"),
            status: self.status,
            reason: self.reason.clone(),
            repeats: repeats as i64,
            runs: self.run_ids.clone(),
            step_ms: self.step_ms,
            step_ms_low: self.step_ms_low,
            step_ms_high: self.step_ms_high,
            tokens_per_s: self.tokens_per_s,
            tokens_per_s_low: self.tokens_per_s_low,
            tokens_per_s_high: self.tokens_per_s_high,
            peak_bytes: self.peak_bytes,
            activation_bytes: self.activation_bytes,
            recompute_pct: self.recompute_pct,
            capacity_bytes,
            fits: self.fits,
            pareto: self.pareto,
            evidence: self.evidence,
            why: self.why.clone(),
        }
    }
}

/// What a grid could vary, as a run of the cell recorded it; of a cell that never ran what the grid says.
fn settings(cell: &Cell, measure: Option<&Measure>) -> Map<String, Value> {
    let recorded = |flag: &&str| Some(((*flag).to_owned(), measure?.workload.config.get(*flag)?.clone()));
    let mut settings: Map<String, Value> = AXES.iter().filter_map(recorded).collect();
    for (flag, value) in &cell.values {
        let value = value.parse::<i64>().map_or_else(|_| Value::from(value.as_str()), Value::from);
        settings.entry(flag.clone()).or_insert(value);
    }
    settings
}

/// A setting that ran out of memory does not fit into what it was given.
fn fits(status: RunStatus, peak_bytes: Option<i64>, capacity: Option<i64>) -> Option<bool> {
    match (status, capacity) {
        (RunStatus::OutOfMemory, _) => Some(false),
        (_, Some(capacity)) => peak_bytes.map(|peak| peak <= capacity),
        (_, None) => None,
    }
}

fn evidence(runs: usize, weakness: Option<&str>) -> EvidenceLevel {
    match weakness {
        None if runs >= ENOUGH_PAIRS => EvidenceLevel::RepeatedBenchmark,
        _ => EvidenceLevel::SmokeTest,
    }
}

fn why(runs: usize, weakness: Option<String>) -> String {
    let repeats = match runs {
        1 => "one run".to_owned(),
        runs => format!("{runs} interleaved runs"),
    };
    match weakness {
        Some(weakness) => format!("{repeats}; of one of them, {weakness}"),
        None if runs < ENOUGH_PAIRS => format!("{repeats}; it takes {ENOUGH_PAIRS}"),
        None => repeats,
    }
}

fn mean_of(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::super::measure::made_up::measure;
    use super::*;

    #[test]
    fn what_was_out_of_memory_once_does_not_fit() {
        let of = |ends: &[RunStatus], capacity| {
            let mut tried = Tried::default();
            for (repeat, &status) in ends.iter().enumerate() {
                let reason = (status != RunStatus::Complete).then(|| format!("it was {status}"));
                tried
                    .take_earlier(repeat, Measure { status, reason, ..measure(&format!("r{repeat}"), 10.0) });
            }
            (tried.hopeless, CellResult::of(0, &Cell { values: Vec::new() }, &tried, 5, capacity))
        };
        use RunStatus::{Complete, Failed, OutOfMemory};
        for (ends, hopeless, status, fits) in [
            (&[Complete, Complete][..], false, Complete, Some(true)),
            (&[Complete, Failed], false, Complete, Some(true)),
            (&[Complete, OutOfMemory], true, OutOfMemory, Some(false)),
            (&[OutOfMemory, Complete, Failed], true, OutOfMemory, Some(false)),
        ] {
            let (is_hopeless, cell) = of(ends, Some(64 << 20));
            assert_eq!((is_hopeless, cell.status, cell.fits), (hopeless, status, fits), "{ends:?}");
            assert_eq!(cell.rate_and_peak().is_some(), fits == Some(true), "{ends:?}");
            assert!(cell.is_measured(), "{ends:?}");
        }
        // Without a capacity, too: it is the machine's.
        let (_, cell) = of(&[Complete, OutOfMemory], None);
        assert_eq!(cell.fits, Some(false));
        assert_eq!(
            cell.reason.as_deref(),
            Some("1 of 5 runs; another one was out_of_memory: it was out_of_memory")
        );
    }
}
