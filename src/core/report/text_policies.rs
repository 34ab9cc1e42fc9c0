//! A plan's policies as tables for a terminal.

use super::tables::{put, table};
use super::units::{bytes, count, ms, pct};
use crate::plan::{Extrapolates, PolicyPlan, Source, TimeSource};

/// A column, shown where any policy has something in it. What comes from a fit and what comes from theory have
/// columns of their own.
struct Column {
    header: &'static str,
    cell: fn(&PolicyPlan) -> Option<String>,
    /// Beside the policy and the batch, what it says something of.
    says: Says,
}

#[derive(Clone, Copy, PartialEq)]
enum Says {
    Which,
    Memory,
    Time,
}

const COLUMNS: [Column; 10] = [
    Column { header: "checkpoint", cell: |policy| Some(name(policy)), says: Says::Which },
    Column { header: "batch", cell: batch, says: Says::Which },
    Column {
        header: "peak by fit",
        cell: |policy| policy.predicted_peak_bytes.filter(|_| policy.source == Some(Source::Fit)).map(bytes),
        says: Says::Memory,
    },
    Column { header: "in theory", cell: |policy| policy.theory_peak_bytes.map(bytes), says: Says::Memory },
    Column { header: "batch is", cell: distance, says: Says::Memory },
    Column { header: "step", cell: |policy| policy.predicted_step_ms.map(ms), says: Says::Time },
    Column { header: "tokens/s", cell: |policy| policy.predicted_tokens_per_s.map(whole), says: Says::Time },
    Column { header: "time from", cell: time_from, says: Says::Time },
    Column { header: "tokens/s, theory", cell: |policy| bound(policy).map(whole), says: Says::Time },
    Column {
        header: "again",
        cell: |policy| policy.recompute_share.map(|share| pct(100.0 * share)),
        says: Says::Time,
    },
];

/// In one table, or in one of memory and one of time where that would be too wide.
pub fn policies(shown: &[&PolicyPlan], width: usize) -> String {
    let rows: Vec<PolicyPlan> = shown.iter().flat_map(|policy| rows(policy)).collect();
    let of = |says: &[Says]| {
        let columns = COLUMNS.iter().filter(|column| says.contains(&column.says));
        columns.filter(|column| rows.iter().any(|row| (column.cell)(row).is_some())).collect::<Vec<_>>()
    };
    let whole = text(&of(&[Says::Which, Says::Memory, Says::Time]), shown);
    if whole.lines().all(|line| line.chars().count() <= width) {
        return whole;
    }
    let [memory, time] = [Says::Memory, Says::Time].map(|says| text(&of(&[Says::Which, says]), shown));
    format!("{memory}\n\n{time}")
}

/// What a policy's second row is called, that of a smaller batch.
pub const FASTER: &str = "faster";

/// And where nothing tells how fast the largest batch is.
pub const MEASURED: &str = "measured";

/// What a policy's second row is called.
fn second(policy: &PolicyPlan) -> &'static str {
    if policy.predicted_step_ms.is_some() { FASTER } else { MEASURED }
}

fn text(columns: &[&Column], shown: &[&PolicyPlan]) -> String {
    let mut table = table(&columns.iter().map(|column| column.header).collect::<Vec<_>>());
    for policy in shown {
        for (place, row) in rows(policy).iter().enumerate() {
            let cell = |column: &&Column| (column.cell)(row).unwrap_or_else(|| "—".to_owned());
            let mut cells: Vec<String> = columns.iter().map(cell).collect();
            if place > 0 {
                cells[0] = format!("  {}", second(policy));
            }
            table.add_row(cells);
        }
    }
    put(&table)
}

/// The policy at its largest batch, then at the smaller one that is faster.
pub fn rows(policy: &PolicyPlan) -> Vec<PolicyPlan> {
    let faster = policy.faster.as_ref().map(|at| PolicyPlan {
        max_batch: Some(at.batch),
        predicted_peak_bytes: at.predicted_peak_bytes,
        theory_peak_bytes: at.predicted_peak_bytes.filter(|_| policy.source == Some(Source::Theory)),
        peak_interval_bytes: None,
        predicted_step_ms: at.predicted_step_ms,
        step_interval_ms: at.step_interval_ms,
        predicted_tokens_per_s: at.predicted_tokens_per_s,
        tokens_per_s_interval: at.tokens_per_s_interval,
        time_source: at.time_source,
        repeats: at.repeats,
        kink_excluded: None,
        extrapolates: Some(Extrapolates::No),
        ..policy.clone()
    });
    [policy.clone()].into_iter().chain(faster).collect()
}

fn batch(policy: &PolicyPlan) -> Option<String> {
    policy.max_batch.map(count)
}

fn time_from(policy: &PolicyPlan) -> Option<String> {
    let word = match policy.time_source? {
        TimeSource::Fit => "fit",
        TimeSource::Measured => "runs",
        TimeSource::Scaled => "1 batch",
    };
    Some(word.to_owned())
}

/// How far the batch lies from those that were measured.
fn distance(policy: &PolicyPlan) -> Option<String> {
    let word = match policy.extrapolates? {
        Extrapolates::No => "within",
        Extrapolates::Beyond => "beyond",
        Extrapolates::Strongly => "far off",
    };
    Some(word.to_owned())
}

/// Theory's upper bound of tokens a second, of a policy that nobody measured.
pub fn bound(policy: &PolicyPlan) -> Option<f64> {
    policy.theory_tokens_per_s.filter(|_| policy.predicted_step_ms.is_none())
}

pub fn name(policy: &PolicyPlan) -> String {
    policy.checkpoint.clone().unwrap_or_else(|| "(not said)".to_owned())
}

pub fn whole(rate: f64) -> String {
    count(rate.round() as i64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::{AtBatch, Request, plan};

    /// The default GPT in 64 MiB, `none` as if it had been measured.
    fn planned() -> Vec<PolicyPlan> {
        let config = json!({"model": "gpt", "layers": 4, "width": 128, "heads": 4, "seq": 64, "batch": 8,
            "attention": "sdpa"});
        let mut policies =
            plan(&Request::from_theory(config.as_object().unwrap().clone(), 64 << 20)).unwrap().policies;
        let none = &mut policies[0];
        (none.source, none.time_source) = (Some(Source::Fit), Some(TimeSource::Fit));
        (none.predicted_step_ms, none.predicted_tokens_per_s) = (Some(120.0), Some(12_800.0));
        none.extrapolates = Some(Extrapolates::Strongly);
        policies
    }

    #[test]
    fn what_is_too_wide_for_one_table_is_put_into_two() {
        let planned = planned();
        let shown: Vec<&PolicyPlan> = planned.iter().collect();
        let (wide, narrow) = (policies(&shown, 200), policies(&shown, 80));
        assert!(!wide.contains("\n\n") && narrow.contains("\n\n"), "{wide}\n{narrow}");
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
        for header in ["peak by fit", "in theory", "batch is", "step", "tokens/s", "again"] {
            assert!(wide.contains(header) && narrow.contains(header), "{header}:\n{narrow}");
        }
    }

    #[test]
    fn a_smaller_batch_that_is_faster_has_a_line_of_its_own() {
        let mut none = planned().swap_remove(0);
        none.faster = Some(AtBatch {
            batch: 4,
            predicted_peak_bytes: Some(20 << 20),
            predicted_step_ms: Some(10.0),
            predicted_tokens_per_s: Some(25_600.0),
            time_source: Some(TimeSource::Measured),
            ..AtBatch::default()
        });
        let text = policies(&[&none], 200);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert!(
            lines[2]
                .starts_with(&["faster", "4", "20.0", "MiB", "—", "within", "10.0", "ms", "25,600", "runs"]),
            "{text}"
        );
    }
}
