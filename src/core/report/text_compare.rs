//! A comparison as text for a terminal.

use serde_json::Value;

use super::tables::{put, table};
use super::text_losses::losses;
use super::units::{bytes, count, ms};
use super::wrap::{prose, wrap_at};
use crate::compare::{
    Comparison, Difference, FieldKind, Judged, MarginSource, Metric, Quantity, Repeats, SideTails, Verdict,
    range_pct, signed_pct,
};

/// The most runs of a side that are told of one by one.
const NAMED: usize = 10;

/// The whole comparison: what was compared, what differs, the verdict, and the numbers; sentences as suits a terminal of
/// so many columns.
pub fn render_comparison(comparison: &Comparison, width: usize) -> String {
    let width = prose(width);
    let sections = [
        sides(comparison, width),
        differs(comparison, width),
        verdict(comparison, width),
        metrics(comparison),
        memory(comparison),
        tails(comparison),
        losses(&comparison.losses, width),
        list("Notes", &comparison.notes, width),
        gate(&comparison.gate, width),
    ];
    sections.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n\n") + "\n"
}

fn sides(comparison: &Comparison, width: usize) -> String {
    let lines = [("base", &comparison.base), ("candidate", &comparison.candidate)];
    lines.iter().flat_map(|(role, side)| side_lines(role, side, width)).collect::<Vec<_>>().join("\n")
}

fn side_lines(role: &str, side: &Repeats, width: usize) -> Vec<String> {
    let runs = match side.runs.as_slice() {
        [one] if *one == side.name => String::new(),
        [one] => format!(" (run {one})"),
        several => format!(" ({} runs)", several.len()),
    };
    let mut lines = vec![format!("{role:<9}  {}{runs}", side.name)];
    lines.extend(cut_off(side).map(|text| wrapped(&text, 11, width)));
    let left_out = side.left_out.iter().map(|run| format!("left out: {}: {}", run.run, run.why));
    let others = more(side.left_out.len()).map(|more| format!("left out:{more}"));
    lines.extend(left_out.take(NAMED).chain(others).map(|text| wrapped(&text, 11, width)));
    if !side.unpaired.is_empty() {
        let named = side.unpaired.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        let others = more(side.unpaired.len()).unwrap_or_default();
        lines.push(wrapped(&format!("without a partner on the other side: {named}{others}"), 11, width));
    }
    lines
}

/// How many of so many runs are not told of one by one.
fn more(runs: usize) -> Option<String> {
    let more = runs.saturating_sub(NAMED);
    (more > 0).then(|| format!(" and {} more (--json has them)", count(more as i64)))
}

/// How much of the runs was cut off as warm-up: of a few runs each by itself.
fn cut_off(side: &Repeats) -> Option<String> {
    let span = |counts: &[usize]| {
        let (least, most) = (counts.iter().min()?, counts.iter().max()?);
        Some(if least == most { least.to_string() } else { format!("{least} to {most}") })
    };
    let cut = match side.cut_steps.as_slice() {
        many if many.len() > NAMED => span(many)?,
        few => few.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
    };
    Some(format!("cut off as warm-up: {cut} of {} measured steps", span(&side.measured_steps)?))
}

fn differs(comparison: &Comparison, width: usize) -> String {
    if comparison.differences.is_empty() {
        return "Differs: nothing that was recorded".to_owned();
    }
    let lines = comparison.differences.iter().map(|found| difference(found, width)).collect::<Vec<_>>();
    let changed = comparison.differences.iter().filter(|d| d.kind.has_effects()).count();
    let variables = match changed {
        0 => "nothing that results depend on",
        1 => "one variable",
        _ => "several variables: no change below can be put down to one of them",
    };
    format!("Differs ({variables})\n{}", lines.join("\n"))
}

fn difference(difference: &Difference, width: usize) -> String {
    let plain = |value: &Option<Value>| match value {
        None | Some(Value::Null) => "(absent)".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    let kind = if difference.kind == FieldKind::Choice { "" } else { difference.kind.as_str() };
    let line =
        format!("{}: {} → {}", difference.field, plain(&difference.base), plain(&difference.candidate));
    wrapped(&if kind.is_empty() { line } else { format!("{line} ({kind})") }, 2, width)
}

fn verdict(comparison: &Comparison, width: usize) -> String {
    let of = match comparison.quantity {
        Quantity::Step => "time of a step",
        Quantity::Token => "time a token: steps have different numbers of them",
    };
    let word = match comparison.verdict {
        Verdict::CannotTell => "cannot tell",
        other => other.as_str(),
    };
    let provisional = if comparison.provisional { ", provisionally" } else { "" };
    let pairs =
        if comparison.pairs == 1 { "1 pair".to_owned() } else { format!("{} pairs", comparison.pairs) };
    // How many it takes where nothing can be told the reason says.
    let told = comparison.verdict != Verdict::CannotTell;
    let few = if comparison.provisional && told { "; 5 pairs would be enough" } else { "" };
    let verdict = wrapped(&format!("Verdict: {word}{provisional} ({of})"), 0, width);
    let evidence = format!("evidence: {}, {pairs}{few}; {}", comparison.evidence, margin(comparison));
    format!("{verdict}\n{}\n{}", wrapped(&comparison.reason, 2, width), wrapped(&evidence, 2, width))
}

/// The margin, and where it comes from.
fn margin(comparison: &Comparison) -> String {
    let margin = comparison.margin;
    let source = match (margin.source, &comparison.noise) {
        (MarginSource::Noise, Some(noise)) => {
            let flags: String = noise.flags.iter().map(|flag| format!(" {flag}")).collect();
            format!(
                "this machine's noise, measured on {} with `run{flags}`, steps of {}",
                noise.measured_at.format("%Y-%m-%d"),
                ms(noise.step_ms)
            )
        }
        (source, _) => source.to_string(),
    };
    format!("margin {} ({source})", margin.told())
}

fn metrics(comparison: &Comparison) -> String {
    let within = if comparison.pairs == 1 { "within runs" } else { "95 % interval" };
    let mut table = table(&["what", "base", "candidate", "change", within]);
    for metric in &comparison.metrics {
        let value = |value| cell(value, |value| figure(value, metric.unit));
        table.add_row(vec![
            metric.name.to_owned(),
            value(metric.base),
            value(metric.candidate),
            change(metric),
            interval(metric),
        ]);
    }
    put(&table)
}

fn figure(value: f64, unit: &str) -> String {
    match unit {
        "ms" => ms(value),
        "µs" => ms(value / 1e3),
        "bytes" => bytes(value as i64),
        _ => count(value.round() as i64),
    }
}

fn change(metric: &Metric) -> String {
    cell(metric.change_pct, signed_pct)
}

fn interval(metric: &Metric) -> String {
    match (metric.low_pct, metric.high_pct) {
        // Bytes are counted; times are not, however alike they are.
        (Some(low), Some(high)) if low == high && metric.unit == "bytes" => "exact".to_owned(),
        (Some(low), Some(high)) => range_pct(low, high),
        _ => "—".to_owned(),
    }
}

fn cell(value: Option<f64>, text: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "—".to_owned(), text)
}

fn memory(comparison: &Comparison) -> String {
    let known = comparison.bytes.0.iter().filter(|(_, bytes)| bytes.base.or(bytes.candidate).is_some());
    let mut table = table(&["bytes of", "base", "candidate", "difference", "at"]);
    for (category, found) in known.clone() {
        let bytes_of = |value: Option<i64>| value.map_or_else(|| "—".to_owned(), bytes);
        let difference = found.base.zip(found.candidate).map(|(base, candidate)| candidate - base);
        table.add_row(vec![
            category.to_string(),
            bytes_of(found.base),
            bytes_of(found.candidate),
            difference.map_or_else(|| "—".to_owned(), signed),
            format!("{}{}", found.moment, if found.varies { ", varies" } else { "" }),
        ]);
    }
    let traced = comparison.metrics.iter().any(|metric| metric.name == "peak");
    match known.count() {
        0 if traced => "Bytes by category: no run's ledger is there.".to_owned(),
        0 => "Memory was not traced.".to_owned(),
        _ => put(&table),
    }
}

fn signed(difference: i64) -> String {
    match difference {
        0 => "0 B".to_owned(),
        more if more > 0 => format!("+{}", bytes(more)),
        less => format!("−{}", bytes(-less)),
    }
}

fn tails(comparison: &Comparison) -> String {
    let mut table = table(&["slow steps", "median", "95 %", "99 %", "longest", "over 1.5 medians"]);
    for (role, side) in [("base", comparison.tails.base), ("candidate", comparison.tails.candidate)] {
        let SideTails { p50_ms, p95_ms, p99_ms, max_ms, slow_steps, steps, .. } = side;
        let times = [p50_ms, p95_ms, p99_ms, max_ms].map(|time| cell(time, ms));
        let slow = format!("{} of {}", count(slow_steps as i64), count(steps as i64));
        table.add_row([role.to_owned()].into_iter().chain(times).chain([slow]).collect::<Vec<_>>());
    }
    put(&table) + &in_cycles(comparison)
}

/// What the table does not see, where steps have a time only together.
fn in_cycles(comparison: &Comparison) -> String {
    let cycle = comparison.tails.base.cycle.max(comparison.tails.candidate.cycle);
    if cycle == 1 {
        String::new()
    } else {
        format!("\n in whole cycles of {cycle} steps, each by its mean step")
    }
}

fn list(title: &str, lines: &[String], width: usize) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = lines.iter().map(|line| wrapped(line, 2, width)).collect();
    format!("{title}\n{}", lines.join("\n"))
}

fn gate(judged: &[Judged], width: usize) -> String {
    let line = |judged: &Judged| format!("{}: {} ({})", judged.condition, judged.outcome, judged.why);
    list("Gate", &judged.iter().map(line).collect::<Vec<_>>(), width)
}

/// A sentence in lines of a terminal, every line indented; what follows the first a little more.
pub(super) fn wrapped(text: &str, indent: usize, width: usize) -> String {
    wrap_at(&format!("{:indent$}{text}", ""), indent + 2, width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::LeftOut;

    #[test]
    fn of_many_runs_a_few_are_told() {
        let names = |n: usize| (0..n).map(|at| format!("r-{at}"));
        let left_out =
            |n: usize| names(n).map(|run| LeftOut { run, why: "it is a copy".to_owned() }).collect();
        let side = |n: usize| Repeats {
            name: "base".to_owned(),
            runs: vec!["r".to_owned()],
            cut_steps: vec![3],
            measured_steps: vec![60],
            unpaired: names(n).collect(),
            left_out: left_out(n),
        };
        let text = |n: usize| side_lines("base", &side(n), 80).join("\n");
        let (few, many) = (text(NAMED), text(1000));
        assert!(few.contains("r-9: it is a copy") && !few.contains("more"), "{few}");
        assert!(
            many.contains("left out: and 990 more") && many.contains("r-9 and 990 more (--json"),
            "{many}"
        );
        assert!(many.lines().count() < 20, "{many}");
    }
}
