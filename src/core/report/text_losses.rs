//! The losses of two sides in a sentence.

use super::text_compare::wrapped;
use super::units::count;
use crate::compare::LossesCompared;

/// From where on they differ, by how much, and where they are no numbers.
pub fn losses(losses: &LossesCompared, width: usize) -> String {
    let mut sentences = vec![match losses {
        LossesCompared { same: None, .. } => "no step has a loss on both sides".to_owned(),
        LossesCompared { same: Some(true), steps, .. } => {
            format!("the same in all {} steps", count(*steps as i64))
        }
        LossesCompared { first_difference_step: Some(first), .. } => differing(losses, *first),
        LossesCompared { .. } => "they differ".to_owned(),
    }];
    let broken = [
        ("base", losses.base_not_finite_from, &losses.base_not_finite_run),
        ("candidate", losses.candidate_not_finite_from, &losses.candidate_not_finite_run),
    ];
    let broken = broken.into_iter().filter_map(|(side, from, run)| Some((side, from?, run.as_ref()?)));
    sentences
        .extend(broken.map(|(side, from, run)| {
            format!("the {side}'s is no finite number in step {from} of run {run}")
        }));
    if losses.repeats_differ {
        let first = "the runs of a side have different ones, and those of its first run are compared";
        sentences.push(first.to_owned());
    }
    wrapped(&format!("Losses: {}", sentences.join("; ")), 0, width)
}

fn differing(losses: &LossesCompared, first: i64) -> String {
    let largest = losses.largest_difference.zip(losses.largest_difference_step);
    let size = |gap: f64| if gap < 1e-3 { format!("{gap:.1e}") } else { format!("{gap:.4}") };
    let largest = largest.map(|(gap, step)| format!(", by {} at most (step {step})", size(gap)));
    let end = losses.base_last.zip(losses.candidate_last);
    let end = end.map(|(base, candidate)| format!("; in the end {base:.4} and {candidate:.4}"));
    format!("they differ from step {first} on{}{}", largest.unwrap_or_default(), end.unwrap_or_default())
}
