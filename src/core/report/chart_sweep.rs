//! A sweep as a picture: peak memory against tokens/s, a line for each checkpointing policy.

use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::chart_legend::{REACH, Sample, Style, draw_legend, fill_and_edge};
use crate::record::RunStatus;
use crate::sweep::{CellResult, Sweep};

const SIZE: (u32, u32) = (980, 520);
/// Of the legend.
const BESIDE: u32 = 250;
/// Of the frame around the points, as a share of their range.
const ROOM: f64 = 0.12;
/// Intervals have at most so much room: where they are wide the points would lie in a line.
const ROOM_FOR_INTERVALS: f64 = 0.4;
/// Between an interval's end and the frame.
const EDGE: f64 = 0.03;
/// How many of the cells that are not drawn are named.
const NAMED: usize = 6;
/// Told apart by people who see few colours too (Okabe and Ito 2008), but for the yellow, which white swallows.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(0, 0, 0),
];
const MIB: f64 = (1 << 20) as f64;

/// Why there is no picture.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChartError {
    #[error("there is nothing to draw: no cell has both a peak and tokens/s")]
    Empty,
    #[error("the picture could not be drawn: {0}; this is a fault of stepledger, please report it")]
    Drawing(String),
}

/// A measured cell as a point.
struct Point<'a> {
    cell: &'a CellResult,
    peak: f64,
    rate: f64,
}

/// The cells that differ in batch alone, smallest peak first.
struct Curve<'a> {
    name: String,
    style: Style,
    points: Vec<Point<'a>>,
}

/// The picture as the text of an SVG file. The capacity, where there is one, is a dashed line; points on the frontier
/// are filled; what could not be measured is named beside it.
pub fn sweep_chart(sweep: &Sweep) -> Result<String, ChartError> {
    let curves = curves(sweep);
    let capacity = sweep.capacity_bytes.map(|bytes| bytes as f64 / MIB);
    let (peaks, rates) = ranges(&curves, capacity).ok_or(ChartError::Empty)?;
    let mut svg = String::new();
    draw(&mut svg, sweep, &curves, capacity, (peaks, rates))
        .map_err(|error| ChartError::Drawing(error.to_string()))?;
    Ok(svg)
}

fn curves(sweep: &Sweep) -> Vec<Curve<'_>> {
    let others: Vec<String> = sweep.grid.iter().filter(|flag| *flag != "batch").cloned().collect();
    let mut curves: Vec<Curve> = Vec::new();
    for cell in &sweep.cells {
        let (Some(peak), Some(rate)) = (cell.peak_bytes, cell.tokens_per_s) else { continue };
        let (name, point) = (cell.named(&others), Point { cell, peak: peak as f64 / MIB, rate });
        let known = curves.len();
        match curves.iter_mut().find(|curve| curve.name == name) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve { name, style: style(known), points: vec![point] }),
        }
    }
    curves.iter_mut().for_each(|curve| curve.points.sort_by(|a, b| a.peak.total_cmp(&b.peak)));
    curves
}

fn style(place: usize) -> Style {
    Style { colour: COLOURS[place % COLOURS.len()], square: (place / COLOURS.len()) % 2 == 1 }
}

type Range = std::ops::Range<f64>;

/// What the axes show: all points and the capacity, with some room; intervals as far as they reach little further.
fn ranges(curves: &[Curve], capacity: Option<f64>) -> Option<(Range, Range)> {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let peaks = with_room(points().map(|point| point.peak).chain(capacity))?;
    let rates = with_room(points().map(|point| point.rate))?;
    let ends = points().filter_map(|point| interval(point.cell));
    let (most, edge) = (ROOM_FOR_INTERVALS * (rates.end - rates.start), EDGE * (rates.end - rates.start));
    let wide = ends
        .fold(rates.clone(), |range, (low, high)| range.start.min(low - edge)..range.end.max(high + edge));
    let start = wide.start.max(rates.start - most).max(0.0);
    Some((peaks, start..wide.end.min(rates.end + most)))
}

fn interval(cell: &CellResult) -> Option<(f64, f64)> {
    cell.tokens_per_s_low.zip(cell.tokens_per_s_high)
}

fn with_room(values: impl Iterator<Item = f64>) -> Option<Range> {
    let (low, high) = values.fold(None, |range, value: f64| match range {
        None => Some((value, value)),
        Some((low, high)) => Some((value.min(low), value.max(high))),
    })?;
    // A single point has a frame too.
    let room = if high > low { ROOM * (high - low) } else { ROOM * high.abs().max(1.0) };
    Some((low - room).max(0.0)..high + room)
}

type Drawn = Result<(), Box<dyn std::error::Error>>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

fn draw(
    svg: &mut String,
    sweep: &Sweep,
    curves: &[Curve],
    capacity: Option<f64>,
    (peaks, rates): (Range, Range),
) -> Drawn {
    // Ten labels or so: they must differ.
    let decimals = usize::from(peaks.end - peaks.start < 20.0);
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let (plot, beside) = area.split_horizontally(SIZE.0 - BESIDE);
    let beside_points =
        if sweep.grid.iter().any(|flag| flag == "batch") { " (beside the points: batch)" } else { "" };
    let mut chart = ChartBuilder::on(&plot)
        .margin(14)
        .caption(title(sweep), ("sans-serif", 16))
        .x_label_area_size(44)
        .y_label_area_size(72)
        .build_cartesian_2d(peaks, rates.clone())?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.1))
        .x_desc(format!("peak memory of a step, MiB{beside_points}"))
        .y_desc("tokens/s")
        .axis_desc_style(("sans-serif", 15))
        .label_style(("sans-serif", 13))
        .y_label_formatter(&|rate| format!("{rate:.0}"))
        .x_label_formatter(&|mib| format!("{mib:.decimals$}"))
        .draw()?;
    if let Some(capacity) = capacity {
        let line = [(capacity, rates.start), (capacity, rates.end)];
        chart.draw_series(DashedLineSeries::new(line, 6, 4, BLACK.stroke_width(1)))?;
    }
    // Marks last, so that no line crosses one.
    curves.iter().try_for_each(|curve| draw_lines(&mut chart, curve, &rates))?;
    curves.iter().try_for_each(|curve| draw_points(&mut chart, curve))?;
    draw_legend(&beside.margin(44, 14, 0, 8), &legend(sweep, curves))?;
    area.present()?;
    Ok(())
}

fn title(sweep: &Sweep) -> String {
    let unfinished = if sweep.complete { "" } else { ", not finished" };
    format!("{}: speed against memory of {} settings{unfinished}", sweep.sweep_id, sweep.cells.len())
}

/// A curve's line, and the intervals of its points as far as they are within the picture.
fn draw_lines(chart: &mut Chart, curve: &Curve, rates: &Range) -> Drawn {
    let colour = curve.style.colour;
    let line = curve.points.iter().map(|point| (point.peak, point.rate));
    chart.draw_series(LineSeries::new(line, colour.stroke_width(2)))?;
    for point in &curve.points {
        let Some((low, high)) = interval(point.cell) else { continue };
        let style = colour.stroke_width(1);
        let within = [(point.peak, low.max(rates.start)), (point.peak, high.min(rates.end))];
        chart.draw_series([PathElement::new(within, style)])?;
        // An end that is out of the picture has no cap.
        let ends = [low, high].into_iter().filter(|end| rates.contains(end));
        chart.draw_series(
            ends.map(|end| EmptyElement::at((point.peak, end)) + PathElement::new([(-4, 0), (4, 0)], style)),
        )?;
    }
    Ok(())
}

fn draw_points(chart: &mut Chart, curve: &Curve) -> Drawn {
    let points = || curve.points.iter();
    for point in points() {
        let place = || EmptyElement::at((point.peak, point.rate));
        for drawn in fill_and_edge(curve.style, point.cell.pareto) {
            let corners = [(-REACH, -REACH), (REACH, REACH)];
            if curve.style.square {
                chart.draw_series([place() + Rectangle::new(corners, drawn)])?;
            } else {
                chart.draw_series([place() + Circle::new((0, 0), REACH, drawn)])?;
            }
        }
    }
    let style = ("sans-serif", 12).into_font().color(&curve.style.colour);
    let style = style.pos(Pos::new(HPos::Left, VPos::Top));
    chart.draw_series(points().filter_map(|point| {
        let batch = point.cell.settings.get("batch")?;
        Some(EmptyElement::at((point.peak, point.rate)) + Text::new(batch.to_string(), (7, 3), style.clone()))
    }))?;
    Ok(())
}

fn legend(sweep: &Sweep, curves: &[Curve]) -> Vec<(Sample, String)> {
    let mut entries: Vec<(Sample, String)> =
        curves.iter().map(|curve| (Sample::Line(curve.style), curve.name.clone())).collect();
    let has = |property: fn(&Point) -> bool| curves.iter().flat_map(|curve| &curve.points).any(property);
    if has(|point| point.cell.pareto) {
        let what = "filled: on the frontier, no other setting has more tokens/s at no higher a peak";
        entries.push((Sample::Filled, what.to_owned()));
    }
    if has(|point| !point.cell.pareto) {
        entries.push((Sample::Hollow, "hollow: another setting beats it".to_owned()));
    }
    if has(|point| interval(point.cell).is_some()) {
        entries.push((Sample::Interval, "95 % interval; it goes on where it has no end".to_owned()));
    }
    if let Some(bytes) = sweep.capacity_bytes {
        entries.push((Sample::Dashed, format!("capacity, {:.1} MiB", bytes as f64 / MIB)));
    }
    entries.extend(not_drawn(sweep));
    entries
}

/// The cells without a point, by what became of them.
fn not_drawn(sweep: &Sweep) -> Vec<(Sample, String)> {
    let without = |cell: &&CellResult| cell.peak_bytes.is_none() || cell.tokens_per_s.is_none();
    let cells: Vec<&CellResult> = sweep.cells.iter().filter(without).collect();
    let mut entries: Vec<(Sample, String)> = Vec::new();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::made_up::{cell, made_up};

    const MIB: i64 = 1 << 20;

    fn picture() -> String {
        let out = CellResult {
            peak_bytes: None,
            tokens_per_s: None,
            status: RunStatus::OutOfMemory,
            ..cell(32, "none", 1.0, 1)
        };
        let wide = CellResult {
            pareto: true,
            tokens_per_s_low: Some(2.0),
            tokens_per_s_high: Some(90_000.0),
            ..cell(8, "none", 11_771.0, 27 * MIB)
        };
        let cells = vec![
            cell(4, "none", 9_756.0, 18 * MIB),
            wide,
            cell(4, "full", 7_756.0, 14 * MIB),
            cell(8, "full", 9_018.0, 17 * MIB),
            out,
        ];
        sweep_chart(&made_up(cells, Some(64 * MIB))).unwrap()
    }

    /// What stands in a picture, tag by tag, with its text behind it.
    fn tags<'a>(svg: &'a str, tag: &str) -> Vec<&'a str> {
        svg.split('<').filter(|part| part.starts_with(tag)).collect()
    }

    fn number(tag: &str, name: &str) -> f64 {
        let value = tag.split(&format!("{name}=\"")).nth(1).unwrap();
        value.split('"').next().unwrap().parse().unwrap()
    }

    #[test]
    fn a_picture_says_what_is_in_it() {
        let svg = picture();
        let lines: Vec<&str> =
            tags(&svg, "text").iter().filter_map(|tag| Some(tag.split_once('>')?.1)).collect();
        let words = lines.join(" ");
        for part in [
            "sweep-made-up: speed against memory of 5 settings",
            "checkpoint none",
            "checkpoint full",
            "filled: on the frontier",
            "hollow: another setting",
            "capacity, 64.0 MiB",
            "not drawn, out of memory:",
            "batch 32, checkpoint none",
            "95 % interval",
        ] {
            let found = words.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(found.contains(part), "{part}: {found}");
        }
    }

    #[test]
    fn the_legend_is_outside_and_the_frontier_is_filled() {
        let svg = picture();
        let left = f64::from(SIZE.0 - BESIDE);
        let circles = tags(&svg, "circle");
        let in_plot: Vec<_> = circles.iter().filter(|circle| number(circle, "cx") < left).collect();
        // Two circles a mark, the inner one white where it is not on the frontier.
        assert_eq!(in_plot.len(), 8, "{in_plot:?}");
        let white = in_plot.iter().filter(|circle| circle.contains("fill=\"#FFFFFF\"")).count();
        assert_eq!(white, 3);
        for words in ["filled:", "capacity,", "checkpoint"] {
            let inside = tags(&svg, "text").into_iter().filter(|text| text.contains(words));
            assert!(
                inside.clone().count() > 0 && inside.into_iter().all(|text| number(text, "x") > left),
                "{words}"
            );
        }
    }

    #[test]
    fn a_wide_interval_does_not_flatten_the_points() {
        let svg = picture();
        let left = f64::from(SIZE.0 - BESIDE);
        let heights: Vec<f64> = tags(&svg, "circle")
            .iter()
            .filter(|circle| number(circle, "cx") < left)
            .map(|circle| number(circle, "cy"))
            .collect();
        let (top, bottom) = heights.iter().fold((f64::MAX, 0.0_f64), |(a, b), y| (a.min(*y), b.max(*y)));
        assert!(bottom - top > 0.3 * f64::from(SIZE.1), "{heights:?}");
    }

    #[test]
    fn nothing_measured_is_no_picture() {
        let cell = CellResult { tokens_per_s: None, ..cell(4, "none", 1.0, 1) };
        assert_eq!(sweep_chart(&made_up(vec![cell], None)), Err(ChartError::Empty));
    }
}
