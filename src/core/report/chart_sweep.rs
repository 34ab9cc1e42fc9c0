//! A sweep as a picture: peak memory against tokens/s, a line for each checkpointing policy.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::sweep::{CellResult, Sweep};

const SIZE: (u32, u32) = (880, 520);
/// Of the frame around the points, as a share of their range.
const ROOM: f64 = 0.12;
/// Told apart by people who see few colours too (Okabe and Ito 2008).
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
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
    points: Vec<Point<'a>>,
}

/// The picture as the text of an SVG file. The capacity, where there is one, is a dashed line; points on the frontier
/// are filled.
pub fn sweep_chart(sweep: &Sweep) -> Result<String, ChartError> {
    let curves = curves(sweep);
    let capacity = sweep.capacity_bytes.map(|bytes| bytes as f64 / MIB);
    let (peaks, rates) = ranges(&curves, capacity).ok_or(ChartError::Empty)?;
    let mut svg = String::new();
    draw(&mut svg, &curves, capacity, peaks, rates)
        .map_err(|error| ChartError::Drawing(error.to_string()))?;
    Ok(svg)
}

fn curves(sweep: &Sweep) -> Vec<Curve<'_>> {
    let others: Vec<String> = sweep.grid.iter().filter(|flag| *flag != "batch").cloned().collect();
    let mut curves: Vec<Curve> = Vec::new();
    for cell in &sweep.cells {
        let (Some(peak), Some(rate)) = (cell.peak_bytes, cell.tokens_per_s) else { continue };
        let (name, point) = (cell.named(&others), Point { cell, peak: peak as f64 / MIB, rate });
        match curves.iter_mut().find(|curve| curve.name == name) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve { name, points: vec![point] }),
        }
    }
    curves.iter_mut().for_each(|curve| curve.points.sort_by(|a, b| a.peak.total_cmp(&b.peak)));
    curves
}

type Range = std::ops::Range<f64>;

/// What the axes show: all points with their intervals and the capacity, and some room.
fn ranges(curves: &[Curve], capacity: Option<f64>) -> Option<(Range, Range)> {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let ends = |point: &Point| {
        [point.cell.tokens_per_s_low, point.cell.tokens_per_s_high].map(|end| end.unwrap_or(point.rate))
    };
    let peaks = with_room(points().map(|point| point.peak).chain(capacity))?;
    Some((peaks, with_room(points().flat_map(ends))?))
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

fn draw(svg: &mut String, curves: &[Curve], capacity: Option<f64>, peaks: Range, rates: Range) -> Drawn {
    // Ten labels or so: they must differ.
    let decimals = usize::from(peaks.end - peaks.start < 20.0);
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(14)
        .x_label_area_size(44)
        .y_label_area_size(72)
        .build_cartesian_2d(peaks, rates.clone())?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc("peak memory of a step, MiB (beside the points: batch)")
        .y_desc("tokens/s")
        .axis_desc_style(("sans-serif", 15))
        .label_style(("sans-serif", 13))
        .y_label_formatter(&|rate| format!("{rate:.0}"))
        .x_label_formatter(&|mib| format!("{mib:.decimals$}"))
        .draw()?;
    for (curve, colour) in curves.iter().zip(COLOURS.iter().cycle()) {
        let line = curve.points.iter().map(|point| (point.peak, point.rate));
        chart
            .draw_series(LineSeries::new(line, colour.stroke_width(2)))?
            .label(&curve.name)
            .legend(|(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
        chart.draw_series(curve.points.iter().filter_map(|point| {
            let ends = (point.cell.tokens_per_s_low?, point.cell.tokens_per_s_high?);
            Some(ErrorBar::new_vertical(point.peak, ends.0, point.rate, ends.1, colour.stroke_width(1), 6))
        }))?;
        chart.draw_series(curve.points.iter().map(|point| {
            let style = if point.cell.pareto { colour.filled() } else { colour.stroke_width(1) };
            Circle::new((point.peak, point.rate), 4, style)
        }))?;
        let label = ("sans-serif", 12).into_font().color(colour).pos(Pos::new(HPos::Left, VPos::Bottom));
        chart.draw_series(curve.points.iter().filter_map(|point| {
            let batch = point.cell.settings.get("batch")?;
            Some(
                EmptyElement::at((point.peak, point.rate))
                    + Text::new(batch.to_string(), (6, -3), label.clone()),
            )
        }))?;
    }
    if let Some(capacity) = capacity {
        let line = [(capacity, rates.start), (capacity, rates.end)];
        let style = BLACK.mix(0.7).stroke_width(1);
        chart
            .draw_series(DashedLineSeries::new(line, 6, 4, style))?
            .label(format!("capacity, {capacity:.1} MiB"))
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .label_font(("sans-serif", 13))
        .draw()?;
    area.present()?;
    Ok(())
}
