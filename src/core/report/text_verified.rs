//! A plan put to the test, as text for a terminal.

use super::tables::{put, table};
use super::units::{bytes, count, ms};
use super::wrap::{prose, wrap_at};
use crate::plan::Verified;

/// Prediction beside measurement, and whether they agree.
pub fn render_verified(verified: &[Verified], width: usize) -> String {
    if verified.is_empty() {
        return "Nothing was run: there is no setting to try.\n".to_owned();
    }
    let mut table = table(&["batch", "checkpoint", "", "peak", "step", "tokens/s"]);
    for column in [1, 2] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(comfy_table::CellAlignment::Left);
        }
    }
    for one in verified {
        let checkpoint = one.trial.checkpoint.clone().unwrap_or_default();
        let predicted = if one.trial.predicted_fits { "predicted to fit" } else { "predicted not to fit" };
        let measured = if one.fits { "fits".to_owned() } else { one.status.clone() };
        let rate = |rate: Option<f64>| rate.map_or_else(dash, |rate| count(rate.round() as i64));
        table.add_row(vec![
            count(one.trial.batch),
            checkpoint,
            predicted.to_owned(),
            one.trial.predicted_peak_bytes.map_or_else(dash, bytes),
            one.trial.predicted_step_ms.map_or_else(dash, ms),
            rate(one.trial.predicted_tokens_per_s),
        ]);
        table.add_row(vec![
            String::new(),
            String::new(),
            format!("measured: {measured}"),
            one.measured_peak_bytes.map_or_else(dash, bytes),
            one.measured_step_ms.map_or_else(dash, ms),
            rate(one.measured_tokens_per_s),
        ]);
        let error = |error: Option<f64>| error.map_or_else(String::new, |error| format!("{error:+.2} %"));
        if one.peak_error_pct.is_some() {
            let (peak, step) = (error(one.peak_error_pct), error(one.step_error_pct));
            table.add_row(vec![
                String::new(),
                String::new(),
                "prediction is off by".to_owned(),
                peak,
                step,
                String::new(),
            ]);
        }
    }
    format!("Prediction and measurement\n{}\n{}\n", put(&table), conclusion(verified, prose(width)))
}

fn conclusion(verified: &[Verified], width: usize) -> String {
    let wrong: Vec<String> = verified
        .iter()
        .filter(|one| !one.agrees)
        .map(|one| {
            format!(
                "batch {} was to {} and ended as {} (run {})",
                count(one.trial.batch),
                if one.trial.predicted_fits { "fit" } else { "fail" },
                one.status,
                one.run
            )
        })
        .collect();
    match (wrong.is_empty(), verified.len()) {
        (true, 1) => "It went as predicted.".to_owned(),
        (true, _) => "Both went as predicted.".to_owned(),
        (false, _) => wrap_at(&format!("Not as predicted: {}.", wrong.join("; ")), 2, width),
    }
}

fn dash() -> String {
    "—".to_owned()
}
