//! A plan as text for a terminal.

use super::text::settings;
use super::text_plan_answer::{segments, verdict};
use super::text_policies::{FASTER, MEASURED, bound, name, policies, rows, whole};
use super::text_rates::flops;
use super::units::{bytes, count, ms};
use super::wrap::{prose, wrap_at, wrap_told};
use crate::plan::{CapacityFrom, Plan, PolicyPlan, RUNS_TOLD, more_than_told};
use crate::theory::ProductsAtMost;

/// How many policies are listed before the sizes of segments that matter least are left out.
const LISTED: usize = 8;

/// What fits, what is best and why, and what to know before trusting it; tables at most as wide as `width` columns
/// where they can be, and sentences as suits so wide a terminal.
pub fn render_plan(plan: &Plan, width: usize) -> String {
    let lines = prose(width);
    let sections = [
        heading(plan, lines),
        fitting(plan, width),
        verdict(plan, lines),
        plan.placement.as_ref().map(|placement| segments(placement, lines)).unwrap_or_default(),
        listed("Notes", plan.policies.iter().flat_map(notes), lines),
        needs(plan, lines),
        not_used(plan, lines),
        listed("Missing", plan.missing.iter().cloned(), lines),
    ];
    sections.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n\n") + "\n"
}

fn heading(plan: &Plan, width: usize) -> String {
    let program = plan.base.program.as_deref().or_else(|| plan.base.config.get("model")?.as_str());
    let mut config = plan.base.config.clone();
    for planned in ["batch", "checkpoint", "steps", "warmup", "seed"] {
        config.shift_remove(planned);
    }
    let all = match plan.capacity_from {
        CapacityFrom::Asked => "",
        CapacityFrom::Available => ", what this machine has available now",
        CapacityFrom::Machine => ", all of the machine's memory",
        CapacityFrom::Cgroup => ", what a cgroup leaves of this machine's memory now",
    };
    let what = format!(
        "Plan for {} ({} bytes{all}): {} on {}",
        bytes(plan.capacity_bytes),
        count(plan.capacity_bytes),
        program.unwrap_or("a program"),
        plan.base.device,
    );
    let config = format!("  {}", settings(&config));
    format!("{}\n{}", wrap_at(&what, 2, width), wrap_at(&config, 2, width))
}

fn fitting(plan: &Plan, width: usize) -> String {
    let shown: Vec<&PolicyPlan> = plan.policies.iter().filter(|policy| is_shown(plan, policy)).collect();
    let more = plan.policies.len() - shown.len();
    let more = (more > 0).then(|| format!("\n and {more} other sizes of segments (--json has them)"));
    format!(
        "The largest batch that fits, and what it is predicted to take\n{}{}{}{}{}",
        policies(&shown, width),
        more.unwrap_or_default(),
        words(&shown),
        at_most(plan, &shown, prose(width)),
        intervals(plan, prose(width))
    )
}

/// What the words in the table mean that do not say it themselves.
fn words(shown: &[&PolicyPlan]) -> String {
    let any = |is: fn(&PolicyPlan) -> bool| shown.iter().any(|policy| is(policy));
    let none = any(|policy| policy.max_batch == Some(0));
    let none = none.then(|| "\n batch 0: not even one sequence fits, and the numbers are of one".to_owned());
    let faster = any(|policy| policy.faster.is_some() && policy.predicted_step_ms.is_some());
    let faster =
        faster.then(|| format!("\n {FASTER}: a smaller batch, measured, that is faster for its size"));
    let measured = any(|policy| policy.faster.is_some() && policy.predicted_step_ms.is_none());
    let measured = measured.then(|| format!("\n {MEASURED}: the fastest batch that was measured and fits"));
    [none, faster, measured].into_iter().flatten().collect()
}

/// What theory's bounds of time rest on, where there are any to see.
fn at_most(plan: &Plan, shown: &[&PolicyPlan], width: usize) -> String {
    let Some(products) = &plan.products_at_most else { return String::new() };
    if shown.iter().all(|policy| bound(policy).is_none()) {
        return String::new();
    }
    let ProductsAtMost { tflop_s, dtype, source, what, .. } = products;
    let text = format!(
        " tokens/s, theory: at most, if the step were its matrix products alone, at {} ({dtype}, {source}: {what})",
        flops(*tflop_s)
    );
    format!("\n{}", wrap_at(&text, 1, width))
}

/// Of many sizes of segments only those that were measured or that something is said of.
fn is_shown(plan: &Plan, policy: &PolicyPlan) -> bool {
    let named = |checkpoint: &Option<String>| *checkpoint == policy.checkpoint;
    let placed = plan.placement.iter().flat_map(|placement| {
        [Some(&placement.for_memory), placement.for_capacity.as_ref(), Some(&placement.square_root)]
    });
    let every = policy.checkpoint.as_deref().is_some_and(|word| word.starts_with("every:"));
    plan.policies.len() <= LISTED
        || !every
        || policy.fit.is_some()
        || plan.best.as_ref().is_some_and(|best| named(&best.checkpoint))
        || plan.runner_up.as_ref().is_some_and(|second| named(&second.checkpoint))
        || placed.flatten().any(|size| policy.checkpoint.as_deref() == Some(size.checkpoint.as_str()))
}

/// The intervals of prediction, for those that have one.
fn intervals(plan: &Plan, width: usize) -> String {
    let lines: Vec<String> = plan.policies.iter().flat_map(rows).filter_map(|row| interval(&row)).collect();
    let heading = format!("{:.0} % intervals of one more run", 100.0 * plan.confidence);
    if lines.is_empty() {
        String::new()
    } else {
        format!("\n\n{}", listed(&heading, lines.into_iter(), width))
    }
}

fn interval(row: &PolicyPlan) -> Option<String> {
    let peak = row.peak_interval_bytes.map(|[low, high]| match (low == high, row.kink_excluded) {
        (true, Some(true)) => "peak exact".to_owned(),
        (true, _) => "peak without scatter in these runs (a kink is not excluded)".to_owned(),
        (false, _) => format!("peak {} to {}", bytes(low), bytes(high)),
    });
    let rate = row.tokens_per_s_interval.map(rate_interval);
    let step = row.step_interval_ms.filter(|_| rate.is_none());
    let step = step.map(|[low, high]| format!("{} to {} a step", ms(low), ms(high)));
    let parts: Vec<String> = [peak, rate, step].into_iter().flatten().collect();
    let batch = row.max_batch.filter(|&batch| batch > 0).map(|batch| format!(", batch {}", count(batch)));
    let whose = format!("{}{}", name(row), batch.unwrap_or_default());
    (!parts.is_empty()).then(|| format!("{whose}: {}", parts.join(", ")))
}

fn rate_interval((low, high): (f64, Option<f64>)) -> String {
    match high {
        Some(high) => format!("{} to {} tokens/s", whole(low), whole(high)),
        None => format!("{} tokens/s or more, without an upper end", whole(low)),
    }
}

fn notes(policy: &PolicyPlan) -> Vec<String> {
    policy.notes.iter().map(|note| format!("{}: {note}", name(policy))).collect()
}

/// How many commands are told; the others are like them.
const COMMANDS: usize = 3;

fn needs(plan: &Plan, width: usize) -> String {
    let mut needing: Vec<&PolicyPlan> =
        plan.policies.iter().filter(|policy| policy.needs.is_some()).collect();
    // What was measured once is nearest to being known.
    needing.sort_by_key(|policy| policy.fit.is_none());
    let told = needing.iter().take(COMMANDS).filter_map(|policy| {
        let what = if policy.fit.is_some() { "needs another run" } else { "was not measured" };
        let command = wrap_told(&format!("    {}", policy.needs.as_ref()?), 6, width);
        Some(format!("  {} {what}:\n{command}", name(policy)))
    });
    let more = needing.len().saturating_sub(COMMANDS);
    let more = (more > 0).then(|| format!("  and {more} more"));
    let lines: Vec<String> = told.chain(more).collect();
    if lines.is_empty() { String::new() } else { format!("What would tell more\n{}", lines.join("\n")) }
}

fn not_used(plan: &Plan, width: usize) -> String {
    let told = plan.not_used.iter().take(RUNS_TOLD).map(|run| format!("{}: {}", run.run, run.why));
    let more = more_than_told(plan.not_used.len())
        .map(|more| format!("and {} more (--json has them)", count(more as i64)));
    listed("Not used", told.chain(more), width)
}

fn listed(heading: &str, lines: impl Iterator<Item = String>, width: usize) -> String {
    let lines: Vec<String> = lines.map(|line| wrap_at(&format!("  {line}"), 4, width)).collect();
    if lines.is_empty() { String::new() } else { format!("{heading}\n{}", lines.join("\n")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::{NotUsed, Request, plan};

    #[test]
    fn sentences_are_as_wide_as_the_terminal_up_to_what_reads_well() {
        let config = json!({"model": "gpt", "layers": 4, "width": 128, "heads": 4, "seq": 64, "batch": 8,
            "attention": "sdpa"});
        let plan = plan(&Request::from_theory(config.as_object().unwrap().clone(), 64 << 20)).unwrap();
        let widest =
            |width| render_plan(&plan, width).lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest(70) <= 70 && (71..=80).contains(&widest(80)) && (81..=100).contains(&widest(200)));
    }

    /// What a line is broken by a shell goes on after.
    #[test]
    fn commands_can_be_copied_as_they_stand() {
        let config = json!({"model": "gpt", "layers": 4, "width": 128, "heads": 4, "seq": 64, "batch": 8,
            "attention": "sdpa"});
        let mut plan = plan(&Request::from_theory(config.as_object().unwrap().clone(), 64 << 20)).unwrap();
        plan.policies[1].needs = Some(format!("stepledger run{}", " --layers 4".repeat(12)));
        let told = needs(&plan, 80);
        assert!(
            told.starts_with("What would tell more\n  full was not measured:\n    stepledger run "),
            "{told}"
        );
        assert_eq!(told.matches(" \\\n      --layers").count(), 2, "{told}");
    }

    #[test]
    fn of_a_thousand_runs_that_are_not_used_five_are_told() {
        let config = json!({"model": "gpt", "layers": 4, "width": 128, "heads": 4, "seq": 64, "batch": 8,
            "attention": "sdpa"});
        let request = Request::from_theory(config.as_object().unwrap().clone(), 64 << 20);
        let told = |n: usize| {
            let run = |n: usize| NotUsed { run: format!("run-{n}"), why: "it did not complete".to_owned() };
            let text = not_used(&Plan { not_used: (0..n).map(run).collect(), ..plan(&request).unwrap() }, 80);
            (text.lines().count(), text.lines().last().unwrap_or_default().to_owned())
        };
        assert_eq!(told(0).0, 0);
        assert_eq!(told(5), (6, "  run-4: it did not complete".to_owned()));
        assert_eq!(told(1000), (7, "  and 995 more (--json has them)".to_owned()));
    }
}
