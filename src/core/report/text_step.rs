//! A run's step in a line: how long, how fast, and what came of the loss.

use super::summary::{OneStep, Summary};
use super::units::{count, ms};
use super::wrap::wrap_at;

/// How wide the middle half of the steps may be, beside their median, `(q3 − q1) / median`, before a run is called
/// unsteady. Undisturbed runs of the toy models stay below 0.3 on a shared machine of two cores, and those beside another
/// program that computes reach 0.9 to 1.5.
const STEADY: f64 = 0.5;

/// Fewer steps have no middle half to speak of.
const FEWEST: usize = 5;

/// Of all measured steps, or of the one that was asked for.
pub fn step_line(summary: &Summary, width: usize) -> String {
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
    let line = format!("Step {} ({which}){}{}", ms(median), rate.unwrap_or_default(), losses(summary));
    let warning =
        unsteady(step.n, [q1, median, q3]).map(|warning| format!("\n{}", wrap_at(&warning, 2, width)));
    line + &warning.unwrap_or_default()
}

/// What to think of times that scatter so much.
fn unsteady(steps: usize, [q1, median, q3]: [f64; 3]) -> Option<String> {
    let width = (q3 - q1) / median;
    (steps >= FEWEST && width > STEADY).then(|| {
        format!(
            "Unsteady: the middle half of the steps is {:.0} % of the median wide. Something else had a part of the machine, \
             or the steps are not alike; times, rates and findings below may be due to that. Measure again with nothing \
             else running.",
            100.0 * width
        )
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_whose_steps_scatter_widely_is_called_unsteady() {
        let told = |steps, quartiles| unsteady(steps, quartiles);
        assert!(told(40, [25.5, 60.2, 118.0]).unwrap().contains("is 154 % of the median wide"));
        assert_eq!(told(100, [45.3, 48.5, 51.2]), None, "as on any shared machine");
        assert_eq!(told(40, [2.6, 2.84, 3.3]), None);
        assert_eq!(told(4, [25.5, 60.2, 118.0]), None, "too few to say");
        assert_eq!(told(40, [0.0, 0.0, 0.0]), None);
    }
}
