//! A plan as text for a terminal.

use super::tables::{put, table};
use super::text::settings;
use super::units::{bytes, count, ms, pct};
use super::wrap::wrap;
use crate::plan::{
    CapacityFrom, Extrapolates, Placement, Plan, PolicyPlan, RankedBy, Segmented, Source, TimeSource,
};

/// How many policies are listed before the sizes of segments that matter least are left out.
const LISTED: usize = 8;

/// What fits, what is best and why, and what to know before trusting it.
pub fn render_plan(plan: &Plan) -> String {
    let sections = [
        heading(plan),
        fitting(plan),
        verdict(plan),
        plan.placement.as_ref().and_then(segments).unwrap_or_default(),
        listed("Notes", plan.policies.iter().flat_map(notes)),
        needs(plan),
        listed("Not used", plan.not_used.iter().map(|run| format!("{}: {}", run.run, run.why))),
        listed("Missing", plan.missing.iter().cloned()),
    ];
    sections.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n\n") + "\n"
}

fn heading(plan: &Plan) -> String {
    let program = plan.base.program.as_deref().or_else(|| plan.base.config.get("model")?.as_str());
    let mut config = plan.base.config.clone();
    for planned in ["batch", "checkpoint", "steps", "warmup", "seed"] {
        config.shift_remove(planned);
    }
    let all = match plan.capacity_from {
        CapacityFrom::Asked => "",
        CapacityFrom::Machine => ", all of the machine's memory",
    };
    format!(
        "Plan for {} ({} bytes{all}): {} on {}\n{}",
        bytes(plan.capacity_bytes),
        count(plan.capacity_bytes),
        program.unwrap_or("a program"),
        plan.base.device,
        wrap(&format!("  {}", settings(&config)), 2)
    )
}

fn fitting(plan: &Plan) -> String {
    let shown: Vec<&PolicyPlan> = plan.policies.iter().filter(|policy| is_shown(plan, policy)).collect();
    let columns: Vec<&Column> =
        COLUMNS.iter().filter(|column| shown.iter().any(|policy| (column.cell)(policy).is_some())).collect();
    let mut table = table(&columns.iter().map(|column| column.header).collect::<Vec<_>>());
    for policy in &shown {
        let cell = |column: &&Column| (column.cell)(policy).unwrap_or_else(|| "—".to_owned());
        table.add_row(columns.iter().map(cell).collect::<Vec<_>>());
    }
    let more = plan.policies.len() - shown.len();
    let more = (more > 0).then(|| format!("\n and {more} other sizes of segments (--json has them)"));
    let none = shown.iter().any(|policy| policy.max_batch == Some(0));
    let none = none.then_some("\n none: not even one sequence fits, and the numbers are of one");
    format!(
        "The largest batch that fits, and what it is predicted to take\n{}{}{}{}",
        put(&table),
        more.unwrap_or_default(),
        none.unwrap_or_default(),
        intervals(plan)
    )
}

/// A column, shown where any policy has something in it. What comes from a fit and what comes from theory have
/// columns of their own.
struct Column {
    header: &'static str,
    cell: fn(&PolicyPlan) -> Option<String>,
}

const COLUMNS: [Column; 9] = [
    Column { header: "checkpoint", cell: |policy| Some(name(policy)) },
    Column {
        header: "batch",
        cell: |policy| {
            policy.max_batch.map(|batch| if batch == 0 { "none".to_owned() } else { count(batch) })
        },
    },
    Column {
        header: "peak by fit",
        cell: |policy| policy.predicted_peak_bytes.filter(|_| policy.source == Some(Source::Fit)).map(bytes),
    },
    Column { header: "in theory", cell: |policy| policy.theory_peak_bytes.map(bytes) },
    Column { header: "step", cell: |policy| policy.predicted_step_ms.map(ms) },
    Column {
        header: "tokens/s",
        cell: |policy| policy.predicted_tokens_per_s.map(|rate| count(rate.round() as i64)),
    },
    Column { header: "again", cell: |policy| policy.recompute_share.map(|share| pct(100.0 * share)) },
    Column { header: "time from", cell: time_from },
    Column { header: "batch is", cell: distance },
];

fn time_from(policy: &PolicyPlan) -> Option<String> {
    let word = match policy.time_source? {
        TimeSource::Fit => "fit",
        TimeSource::Scaled => "1 run",
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

fn name(policy: &PolicyPlan) -> String {
    policy.checkpoint.clone().unwrap_or_else(|| "(not said)".to_owned())
}

/// The intervals of prediction, for those that have one.
fn intervals(plan: &Plan) -> String {
    let line = |policy: &PolicyPlan| {
        let peak = policy.peak_interval_bytes.map(|[low, high]| match low == high {
            true => "peak exact".to_owned(),
            false => format!("peak {} to {}", bytes(low), bytes(high)),
        });
        let rate = policy.tokens_per_s_interval.map(|[low, high]| {
            format!("{} to {} tokens/s", count(low.round() as i64), count(high.round() as i64))
        });
        let step = policy.step_interval_ms.filter(|_| rate.is_none());
        let step = step.map(|[low, high]| format!("{} to {} a step", ms(low), ms(high)));
        let parts: Vec<String> = [peak, rate, step].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| format!("{}: {}", name(policy), parts.join(", ")))
    };
    let lines: Vec<String> = plan.policies.iter().filter_map(line).collect();
    let heading = format!("{:.0} % intervals of one more run", 100.0 * plan.confidence);
    if lines.is_empty() { String::new() } else { format!("\n\n{}", listed(&heading, lines.into_iter())) }
}

fn verdict(plan: &Plan) -> String {
    let Some(best) = &plan.best else { return nothing_fits(plan) };
    let named =
        |checkpoint: &Option<String>| checkpoint.clone().unwrap_or_else(|| "the program as it is".to_owned());
    let predicted = [
        best.predicted_peak_bytes.map(bytes),
        best.predicted_step_ms.map(|step| format!("{} a step", ms(step))),
        best.predicted_tokens_per_s.map(|rate| format!("{} tokens/s", count(rate.round() as i64))),
    ];
    let predicted = predicted.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let rests = match plan.ranked_by {
        RankedBy::TokensPerS => "predicted tokens/s",
        RankedBy::SequencesPerS => "predicted batch entries a second, as the runs count no tokens",
        RankedBy::ComputePerToken => {
            "matrix products a token, then the larger batch, as no rate was measured (--from)"
        }
    };
    let mut lines = vec![
        format!("Best: batch {} with checkpoint {}: {predicted}", best.batch, named(&best.checkpoint)),
        wrap(&format!("  {}", best.command), 4),
    ];
    if let Some(second) = &plan.runner_up {
        lines.push(wrap(&format!("Runner-up: {}; {}.", named(&second.checkpoint), second.why_it_lost), 2));
    }
    lines.push(wrap(&format!("The ranking rests on {rests}."), 2));
    lines.join("\n")
}

fn nothing_fits(plan: &Plan) -> String {
    let least = plan
        .policies
        .iter()
        .filter_map(|policy| Some((policy.predicted_peak_bytes?, policy)))
        .min_by_key(|p| p.0);
    let Some((floor, policy)) = least else { return "Nothing is known to fit.".to_owned() };
    let mib = floor / (1 << 20) + i64::from(floor % (1 << 20) > 0);
    wrap(
        &format!(
            "Nothing fits: one sequence takes {} at the least, with checkpoint {}. Give --capacity-mb {mib} or more, \
             or plan for a smaller model or shorter sequences.",
            bytes(floor),
            name(policy)
        ),
        2,
    )
}

/// Nothing is said where nothing fits.
fn segments(placement: &Placement) -> Option<String> {
    let best = placement.for_capacity.as_ref()?;
    let size = |size: &Segmented| match size.theory_max_batch {
        0 => format!("{} ({}, nothing fits)", size.blocks, size.checkpoint),
        batch => format!("{} ({}, batch {})", size.blocks, size.checkpoint, count(batch)),
    };
    let text = format!(
        "Blocks in a segment, in theory, of all from 1 to {}: for this capacity {}, for memory alone {}; √L would be {}.",
        placement.layers,
        size(best),
        size(&placement.for_memory),
        size(&placement.square_root)
    );
    Some(wrap(&text, 2))
}

fn notes(policy: &PolicyPlan) -> Vec<String> {
    policy.notes.iter().map(|note| format!("{}: {note}", name(policy))).collect()
}

/// How many commands are told; the others are like them.
const COMMANDS: usize = 3;

fn needs(plan: &Plan) -> String {
    let mut needing: Vec<&PolicyPlan> =
        plan.policies.iter().filter(|policy| policy.needs.is_some()).collect();
    // What was measured once is nearest to being known.
    needing.sort_by_key(|policy| policy.fit.is_none());
    let told = needing.iter().take(COMMANDS).filter_map(|policy| {
        let what = if policy.fit.is_some() { "needs a second run" } else { "was not measured" };
        Some(format!("{} {what}: {}", name(policy), policy.needs.as_ref()?))
    });
    let more = needing.len().saturating_sub(COMMANDS);
    let more = (more > 0).then(|| format!("and {more} more"));
    listed("What would tell more", told.chain(more))
}

fn listed(heading: &str, lines: impl Iterator<Item = String>) -> String {
    let lines: Vec<String> = lines.map(|line| wrap(&format!("  {line}"), 4)).collect();
    if lines.is_empty() { String::new() } else { format!("{heading}\n{}", lines.join("\n")) }
}
