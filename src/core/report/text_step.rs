//! A run's step in a line: how long, how fast, and what came of the loss.

use super::summary::{OneStep, Summary};
use super::units::{count, ms};

/// Of all measured steps, or of the one that was asked for.
pub fn step_line(summary: &Summary) -> String {
    let step = &summary.step;
    let (Some(median), Some(q1), Some(q3)) = (step.median_ms, step.q1_ms, step.q3_ms) else {
        return "No measured step.".to_owned();
    };
    let rate = step.tokens_per_s.map(|rate| format!(", {} tokens/s", count(rate.round() as i64)));
    let which = match (&summary.one_step, step.n) {
        (Some(OneStep { step, warmup: false, .. }), _) => format!("step {step} alone"),
        (Some(OneStep { step, warmup: true, .. }), _) => format!("step {step} alone, of the warm-up"),
        (None, 1) => "1 step".to_owned(),
        (None, n) => format!("median of {n} steps; middle half {} to {}", ms(q1), ms(q3)),
    };
    format!("Step {} ({which}){}{}", ms(median), rate.unwrap_or_default(), losses(summary))
}

/// The loss of the step looked at, or the run's first and last.
fn losses(summary: &Summary) -> String {
    let known: Vec<f64> = match &summary.one_step {
        Some(one) => one.loss.into_iter().collect(),
        None => summary.losses.iter().flatten().copied().collect(),
    };
    match known.as_slice() {
        [] => String::new(),
        [only] => format!(", loss {only:.4}"),
        [first, .., last] => format!(", loss {first:.4} → {last:.4}"),
    }
}
