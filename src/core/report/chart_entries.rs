//! What the legend of a sweep's picture says.

use super::chart_capacity::capacity_words;
use super::chart_curves::{Curve, MIB, Point, others};
use super::chart_frame::{Capacity, Frame};
use super::chart_legend::{Entry, Sample};
use super::units::bytes;
use crate::record::RunStatus;
use crate::sweep::{CellResult, Sweep};

/// How many of the cells that are not drawn are named.
const NAMED: usize = 6;

/// What stands beside the points, in this order. Points may be set apart, by so many MiB at the most.
pub fn legend(sweep: &Sweep, curves: &[Curve], frame: &Frame, apart: Option<f64>) -> Vec<Entry> {
    let mut entries = of_curves(&others(sweep), curves);
    let has = |property: &dyn Fn(&Point) -> bool| curves.iter().flat_map(|curve| &curve.points).any(property);
    if has(&|point| point.cell.pareto) {
        let what = "filled: on the frontier, no other setting has more tokens/s at no higher a peak";
        entries.push((Sample::Filled, what.to_owned()));
    }
    if has(&|point| !point.cell.pareto) {
        entries.push((Sample::Hollow, "hollow: another setting beats it".to_owned()));
    }
    if has(&|point| point.place.interval.is_some()) {
        let beyond = if has(&|point| !frame.holds(point.place)) {
            "; where a bar has no end it goes on beyond the picture"
        } else {
            ""
        };
        entries.push((Sample::Interval, format!("95 % interval{beyond}")));
    }
    if let Some(apart) = apart {
        let apart = bytes((MIB * apart).ceil() as i64);
        let what =
            format!("side by side: settings of nearly one peak, none further from its own than {apart}");
        entries.push((Sample::Apart, what));
    }
    let words = capacity_words(sweep.capacity_bytes.unwrap_or_default());
    match frame.capacity {
        Capacity::NotGiven => {}
        Capacity::Within(_) => entries.push((Sample::Capacity, words)),
        Capacity::Below => {
            entries.push((Sample::Nothing, format!("{words}: far to the left of the picture")))
        }
        Capacity::Beyond => {
            entries.push((Sample::Nothing, format!("{words}: far to the right of the picture")))
        }
    }
    entries.extend(not_drawn(sweep));
    entries
}

/// Curves by their values; of several flags these are told once, above them.
fn of_curves(flags: &[&String], curves: &[Curve]) -> Vec<Entry> {
    let entry = |curve: &Curve| (Sample::Curve(curve.style), curve.values.join(", "));
    match flags {
        [] => curves.iter().map(|curve| (Sample::Curve(curve.style), "all settings".to_owned())).collect(),
        [flag] => {
            curves.iter().map(entry).map(|(sample, value)| (sample, format!("{flag} {value}"))).collect()
        }
        _ => {
            let names = flags.iter().map(|flag| flag.as_str()).collect::<Vec<_>>().join(", ");
            [(Sample::Nothing, format!("{names}:"))].into_iter().chain(curves.iter().map(entry)).collect()
        }
    }
}

/// The cells without a point, by what became of them.
fn not_drawn(sweep: &Sweep) -> Vec<Entry> {
    let without = |cell: &&CellResult| cell.rate_and_peak().is_none();
    let cells: Vec<&CellResult> = sweep.cells.iter().filter(without).collect();
    let mut entries: Vec<Entry> = Vec::new();
    for &status in RunStatus::ALL {
        let named: Vec<String> =
            cells.iter().filter(|cell| cell.status == status).map(|cell| cell.named(&sweep.grid)).collect();
        if named.is_empty() {
            continue;
        }
        let what = status.as_str().replace('_', " ");
        let rest = named.len().saturating_sub(NAMED);
        let more = if rest > 0 { format!("; and {rest} more") } else { String::new() };
        let names = named[..named.len() - rest].join("; ");
        entries.push((Sample::Nothing, format!("not drawn, {what}: {names}{more}")));
    }
    entries
}
