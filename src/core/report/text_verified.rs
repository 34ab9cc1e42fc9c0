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
    let fits: Vec<bool> = verified.iter().map(|one| one.trial.predicted_fits).collect();
    match fits.as_slice() {
        _ if !wrong.is_empty() => wrap_at(&format!("Not as predicted: {}.", wrong.join("; ")), 2, width),
        // How long steps take is shown, and not judged.
        [true] => "It fitted, as predicted.".to_owned(),
        [false] => "It did not fit, as predicted.".to_owned(),
        _ => "The one fitted and the other did not, as predicted.".to_owned(),
    }
}

fn dash() -> String {
    "—".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Trial;

    fn one(predicted_fits: bool, agrees: bool) -> Verified {
        let (predicted_peak_bytes, predicted_step_ms, predicted_tokens_per_s) = (Some(100), Some(12.1), None);
        Verified {
            trial: Trial {
                checkpoint: None,
                batch: 4,
                predicted_fits,
                predicted_peak_bytes,
                predicted_step_ms,
                predicted_tokens_per_s,
            },
            run: "r".to_owned(),
            status: "complete".to_owned(),
            fits: predicted_fits == agrees,
            measured_peak_bytes: Some(100),
            measured_step_ms: Some(10.0),
            measured_tokens_per_s: None,
            peak_error_pct: Some(0.0),
            step_error_pct: Some(21.0),
            agrees,
        }
    }

    #[test]
    fn what_was_judged_is_said() {
        for (verified, told) in [
            (vec![one(true, true), one(false, true)], "The one fitted and the other did not, as predicted."),
            (vec![one(true, true)], "It fitted, as predicted."),
            (vec![one(false, true)], "It did not fit, as predicted."),
            (vec![one(true, true), one(false, false)], "Not as predicted: batch 4 was to fail"),
        ] {
            let text = render_verified(&verified, 80);
            assert!(text.contains(told), "{text}");
        }
    }
}
