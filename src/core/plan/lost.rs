//! Why the setting that came second did.

use std::cmp::Ordering;

use super::rank::{Candidate, RankedBy, rate, share, told_apart};
use crate::record::count;

/// One sentence, and a second one if it was a close thing.
pub(super) fn why_it_lost(by: RankedBy, best: &Candidate, second: &Candidate) -> String {
    let room = room(best, second);
    let more_products = 100.0 * ((1.0 + share(second)) / (1.0 + share(best)) - 1.0);
    if by == RankedBy::ComputePerToken {
        return match more_products > 0.0 {
            _ if best.policy.recompute_share.is_none() => format!("it {room} nothing is known of its rate"),
            true => format!("it {room} computes {more_products:.1} % more products a token"),
            false => format!("it {room} computes as much a token"),
        };
    }
    let (first, next) = (rate(by, best), rate(by, second));
    let unit = if by == RankedBy::TokensPerS { "tokens/s" } else { "sequences/s" };
    let slower = 100.0 * (1.0 - next / first);
    let cause = if more_products > 0.0 { ", as it computes more a token again" } else { "" };
    let [told_next, told_first] = [next, first].map(|rate| count(rate.round() as i64));
    let told =
        format!("it {room} is predicted {told_next} {unit}, {slower:.1} % less than {told_first}{cause}");
    match told_apart(by, best, second) {
        Some(true) => told,
        Some(false) => {
            format!("{told}; their intervals overlap, so that these runs cannot tell the two apart")
        }
        None => format!(
            "{told}; without an interval for each (two batches and three runs of a policy give one) these runs cannot \
             tell the two apart"
        ),
    }
}

/// How much of the capacity's batches each can have, as far as that is known.
fn room(best: &Candidate, second: &Candidate) -> String {
    let policy = second.policy;
    // Where a time is known of a measured batch alone, nothing tells how it does at a larger one; or whether it fits one.
    let of_this_alone = policy.predicted_step_ms.is_none() && second.at.predicted_step_ms.is_some();
    let (Some(least), false) = (policy.max_batch, of_this_alone) else {
        return format!("was measured at batch {} and", count(second.at.batch));
    };
    let Some(most) = best.policy.max_batch else { return format!("fits batch {} and", count(least)) };
    let smaller = if second.at.batch < least {
        format!(", is fastest at {} and", count(second.at.batch))
    } else {
        String::new()
    };
    let order = least.cmp(&most);
    let [most, least] = [most, least].map(count);
    match order {
        _ if !smaller.is_empty() => format!("fits batch {least}{smaller}"),
        Ordering::Greater => format!("fits batch {least} instead of {most}, but"),
        Ordering::Equal => format!("fits the same batch of {least}, and"),
        Ordering::Less => format!("fits batch {least} only, not {most}, and"),
    }
}
