//! A run's step in a line: how long, how fast, and what came of the loss.

use super::no_time::why_no_time;
use super::step_times::StepSummary;
use super::summary::{OneStep, Summary};
use super::units::{count, ms};
use super::wrap::wrap_at;

/// Of all measured steps, or of the one that was asked for.
pub fn step_line(summary: &Summary, width: usize) -> String {
    let step = &summary.step;
    let Some(median) = step.median_ms else {
        return match why_no_time(step) {
            Some(why) => format!("No step time: {why}."),
            None => "No measured step.".to_owned(),
        };
    };
    let rate = step.tokens_per_s.map(|rate| format!(", {} tokens/s", count(rate.round() as i64)));
    let (which, losses) = (which(summary), losses(summary));
    let line = format!("Step {} ({which}){}{losses}", ms(median), rate.unwrap_or_default());
    match step.scatter() {
        Some(scatter) if step.unsteady == Some(true) => {
            format!("{line}\n{}", wrap_at(&unsteady(scatter), 2, width))
        }
        _ => line,
    }
}

/// What to think of times that scatter so much.
fn unsteady(scatter: f64) -> String {
    format!(
        "Unsteady: the middle half of the steps is {:.0} % of the median wide. Something else had a part of the machine, \
         or the steps are not alike; times, rates and findings below may be due to that. Measure again with nothing \
         else running.",
        100.0 * scatter
    )
}

/// Over which steps the time is, and what of them.
fn which(summary: &Summary) -> String {
    let step = &summary.step;
    let of_host =
        if step.cycle_steps.is_none() { "; the host's time: no wait for the device is known" } else { "" };
    let middle = match (step.q1_ms, step.q3_ms) {
        (Some(q1), Some(q3)) => format!("; middle half {} to {}", ms(q1), ms(q3)),
        _ => String::new(),
    };
    match (&summary.one_step, step.cycle_steps.unwrap_or(1), step.cycles) {
        (Some(OneStep { step, warmup: false, .. }), ..) => format!("step {step} alone{of_host}"),
        (Some(OneStep { step, warmup: true, .. }), ..) => {
            format!("step {step} alone, of the warm-up{of_host}")
        }
        (None, 1, 1) => format!("1 step{of_host}"),
        (None, 1, n) => format!("median of {n} steps{middle}{of_host}"),
        (None, steps, 1) => format!("1 cycle of {steps} steps, {}{}", from_to(step), left_out(step)),
        (None, steps, n) => {
            format!("median of {n} cycles of {steps} steps, {}{middle}{}", from_to(step), left_out(step))
        }
    }
}

fn left_out(step: &StepSummary) -> String {
    match step.uneven_steps {
        0 => String::new(),
        uneven => format!("; {uneven} of {} steps in other cycles left out", step.n),
    }
}

fn from_to(step: &StepSummary) -> &'static str {
    match step.accumulates {
        false => "from one wait for the device to the next",
        true => "whole ones of accumulation",
    }
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
