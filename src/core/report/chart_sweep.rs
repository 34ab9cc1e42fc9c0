//! A sweep as a picture: peak memory against tokens/s, a line for each checkpointing policy.

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::chart_apart::{furthest, set_apart};
use super::chart_capacity::draw_capacity;
use super::chart_curves::{Curve, MIB, curves};
use super::chart_entries::legend;
use super::chart_frame::{Frame, Place, decimals};
use super::chart_labels::{Label, Pixel, labels};
use super::chart_legend::{draw_legend, legend_height};
use super::chart_style::{draw_line, draw_mark};
use super::chart_title::Title;
use super::units::count;
use crate::sweep::Sweep;

/// Of the picture, and below its title; a legend that needs more makes it higher.
const WIDTH: u32 = 980;
const LEAST_HEIGHT: u32 = 490;
/// Of the legend's width, and below it.
const BESIDE: u32 = 260;
const BELOW: u32 = 14;
/// So many MiB are told in as many letters as any.
const LONG_WORDS: f64 = 1.0;
/// Around the plot.
const MARGIN: u32 = 16;

/// Why there is no picture.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChartError {
    #[error("there is nothing to draw: no cell has both a peak and tokens/s")]
    Empty,
    #[error(
        "there is nothing to draw: every setting that has both a peak and tokens/s was out of memory in one of its runs, and \
         is none to take"
    )]
    OutOfMemory,
    #[error("the picture could not be drawn: {0}; this is a fault of stepledger, please report it")]
    Drawing(String),
}

/// The picture as the text of an SVG file. The capacity, where there is one, is a dashed line; points on the frontier
/// are filled; what could not be measured is named beside it.
pub fn sweep_chart(sweep: &Sweep) -> Result<String, ChartError> {
    let mut curves = curves(sweep);
    let places: Vec<Place> = curves.iter().flat_map(|curve| &curve.points).map(|point| point.place).collect();
    let capacity = sweep.capacity_bytes.map(|bytes| bytes as f64 / MIB);
    let frame = Frame::of(&places, capacity).ok_or_else(|| nothing_to_draw(sweep))?;
    let mut svg = String::new();
    draw(&mut svg, sweep, &mut curves, &frame).map_err(|error| ChartError::Drawing(error.to_string()))?;
    Ok(svg)
}

/// Cells that were out of memory once have no point, whatever their other runs gave.
fn nothing_to_draw(sweep: &Sweep) -> ChartError {
    match sweep.cells.iter().any(|cell| cell.tokens_per_s.is_some() && cell.peak_bytes.is_some()) {
        true => ChartError::OutOfMemory,
        false => ChartError::Empty,
    }
}

type Drawn = Result<(), Box<dyn std::error::Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

fn draw(svg: &mut String, sweep: &Sweep, curves: &mut [Curve], frame: &Frame) -> Drawn {
    // What is set apart is known once there is a place to draw it in.
    let (title, at_most) = (Title::of(sweep), legend(sweep, curves, frame, Some(LONG_WORDS)));
    let height = (legend_height(&at_most).unsigned_abs() + MARGIN + BELOW).max(LEAST_HEIGHT);
    let area = SVGBackend::with_string(svg, (WIDTH, title.height() + height)).into_drawing_area();
    area.fill(&WHITE)?;
    title.draw(&area)?;
    let (plot, beside) = area.split_vertically(title.height()).1.split_horizontally(WIDTH - BESIDE);
    let mut chart = ChartBuilder::on(&plot)
        .margin(MARGIN)
        .x_label_area_size(44)
        .y_label_area_size(72)
        .build_cartesian_2d(frame.peaks.clone(), frame.rates.clone())?;
    let space = chart.plotting_area().clone();
    let pixel = |peak: f64, rate: f64| space.map_coordinate(&(peak, rate));
    set_apart(curves, frame, &pixel);
    let varies_batch = sweep.grid.iter().any(|flag| flag == "batch");
    let labels = if varies_batch { labels(curves, &pixel, space.get_pixel_range()) } else { Vec::new() };
    draw_axes(&mut chart, frame, &labels)?;
    draw_capacity(&area, frame, sweep.capacity_bytes.unwrap_or_default(), &pixel)?;
    draw_curves(&area, curves, frame, &pixel)?;
    labels.iter().try_for_each(|label| draw_label(&area, label))?;
    let entries = legend(sweep, curves, frame, furthest(curves, frame, &pixel));
    draw_legend(&beside.margin(MARGIN, BELOW, 0, 8), &entries)?;
    area.present()?;
    Ok(())
}

/// Marks after lines, so that none crosses one.
fn draw_curves(area: &Area, curves: &[Curve], frame: &Frame, pixel: Pixel) -> Drawn {
    curves.iter().try_for_each(|curve| draw_lines(area, curve, frame, pixel))?;
    for (curve, point) in curves.iter().flat_map(|curve| curve.points.iter().map(move |point| (curve, point)))
    {
        draw_mark(area, point.at(pixel), curve.style, point.cell.pareto)?;
    }
    Ok(())
}

fn draw_label(area: &Area, label: &Label) -> Drawn {
    let Some(at) = label.at else { return Ok(()) };
    let style = ("sans-serif", 12).into_font().color(&label.colour);
    area.draw(&Text::new(label.text.clone(), at, style))?;
    Ok(())
}

fn draw_axes(chart: &mut Chart, frame: &Frame, labels: &[Label]) -> Drawn {
    let beside_points = match labels {
        [] => "",
        all if all.iter().all(|label| label.at.is_some()) => " (beside the points: batch)",
        _ => " (beside the points, where there is room: batch)",
    };
    let (of_peaks, of_rates) = (decimals(&frame.peaks), decimals(&frame.rates));
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.1))
        .x_desc(format!("peak memory of a step, MiB{beside_points}"))
        .y_desc("tokens/s")
        .axis_desc_style(("sans-serif", 15))
        .label_style(("sans-serif", 13))
        .y_label_formatter(&|rate| match of_rates {
            0 => count(rate.round() as i64),
            _ => format!("{rate:.of_rates$}"),
        })
        .x_label_formatter(&|mib| format!("{mib:.of_peaks$}"))
        .draw()?;
    Ok(())
}

/// A curve's line, and the intervals of its points as far as they are within the picture.
fn draw_lines(area: &Area, curve: &Curve, frame: &Frame, pixel: Pixel) -> Drawn {
    let line = curve.points.iter().map(|point| point.at(pixel)).collect();
    draw_line(area, line, curve.style)?;
    let (rates, drawn) = (&frame.rates, curve.style.colour.stroke_width(1));
    for point in &curve.points {
        let Some((low, high)) = point.place.interval else { continue };
        let at = |rate: f64| point.at_rate(rate, pixel);
        area.draw(&PathElement::new([at(low.max(rates.start)), at(high.min(rates.end))], drawn))?;
        // An end that is out of the picture has no cap.
        for (x, y) in [low, high].into_iter().filter(|end| rates.contains(end)).map(at) {
            area.draw(&PathElement::new([(x - 4, y), (x + 4, y)], drawn))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RunStatus;
    use crate::sweep::CellResult;
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
            "gpt on cpu (a cpu): speed against memory of 5 settings",
            "checkpoint none",
            "checkpoint full",
            "filled: on the frontier",
            "hollow: another setting",
            "capacity, 64.0 MiB",
            "not drawn, out of memory:",
            "batch 32, checkpoint none",
            "95 % interval; where a bar has no end it goes on beyond the picture",
        ] {
            let found = words.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(found.contains(part), "{part}: {found}");
        }
    }

    #[test]
    fn the_legend_is_outside_and_the_frontier_is_filled() {
        let svg = picture();
        let left = f64::from(WIDTH - BESIDE);
        let circles = tags(&svg, "circle");
        let in_plot: Vec<_> = circles.iter().filter(|circle| number(circle, "cx") < left).collect();
        // Two circles a mark, the inner one white where it is not on the frontier.
        assert_eq!(in_plot.len(), 8, "{in_plot:?}");
        let white = in_plot.iter().filter(|circle| circle.contains("fill=\"#FFFFFF\"")).count();
        assert_eq!(white, 3);
        for words in ["filled:", "hollow:", "checkpoint"] {
            let inside = tags(&svg, "text").into_iter().filter(|text| text.contains(words));
            assert!(
                inside.clone().count() > 0 && inside.into_iter().all(|text| number(text, "x") >= left),
                "{words}"
            );
        }
    }

    #[test]
    fn a_wide_interval_does_not_flatten_the_points() {
        let svg = picture();
        let left = f64::from(WIDTH - BESIDE);
        let heights: Vec<f64> = tags(&svg, "circle")
            .iter()
            .filter(|circle| number(circle, "cx") < left)
            .map(|circle| number(circle, "cy"))
            .collect();
        let (top, bottom) = heights.iter().fold((f64::MAX, 0.0_f64), |(a, b), y| (a.min(*y), b.max(*y)));
        assert!(bottom - top > 0.3 * f64::from(LEAST_HEIGHT), "{heights:?}");
    }

    /// Two batches of each of so many curves, of peaks around 0.4 MiB.
    fn crowded(curves: i64) -> Sweep {
        let settings = (0..curves).flat_map(|seq| [4, 8].map(|batch| (seq, batch)));
        let cells = settings.map(|(seq, batch)| {
            let peak = MIB * (30 + batch + seq % 5) / 100;
            let mut cell = cell(batch, "every:2", 900.0 + (10 * batch + 7 * seq) as f64, peak);
            cell.settings.insert("seq".to_owned(), seq.into());
            cell
        });
        let sweep = made_up(cells.collect(), Some(64 * MIB));
        Sweep { grid: ["batch", "checkpoint", "seq"].map(str::to_owned).to_vec(), ..sweep }
    }

    #[test]
    fn a_legend_of_many_curves_has_room() {
        for curves in [4, 16, 40] {
            let svg = sweep_chart(&crowded(curves)).unwrap();
            let height = number(tags(&svg, "svg")[0], "height");
            let left = f64::from(WIDTH - BESIDE);
            let beside = tags(&svg, "text").into_iter().filter(|text| number(text, "x") >= left);
            let mut lines: Vec<f64> = beside.map(|text| number(text, "y")).collect();
            lines.sort_by(f64::total_cmp);
            assert!(lines.len() > curves as usize);
            assert!(
                lines.windows(2).all(|pair| pair[1] - pair[0] >= 15.0),
                "{curves}: upon each other: {lines:?}"
            );
            assert!(lines.iter().all(|y| *y < height), "{curves}: below {height}: {lines:?}");
            assert!(svg.contains("every:2, 3") && svg.contains("checkpoint, seq:"));
        }
    }

    #[test]
    fn a_capacity_far_off_is_told_and_does_not_squeeze_the_points() {
        let svg = sweep_chart(&crowded(4)).unwrap();
        let across: Vec<f64> = tags(&svg, "circle")
            .iter()
            .map(|circle| number(circle, "cx"))
            .filter(|x| *x < f64::from(WIDTH - BESIDE))
            .collect();
        let (left, right) = across.iter().fold((f64::MAX, 0.0_f64), |(a, b), x| (a.min(*x), b.max(*x)));
        assert!(right - left > 0.4 * f64::from(WIDTH - BESIDE), "{across:?}");
        let text: String = tags(&svg, "text").concat();
        let at_the_edge =
            tags(&svg, "text").into_iter().find(|tag| tag.contains("64.0 MiB \u{2192}")).unwrap();
        let top_of_plot = f64::from(Title::of(&crowded(4)).height() + MARGIN);
        assert!(number(at_the_edge, "y") < top_of_plot, "an interval could cross it: {at_the_edge}");
        let told = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains("capacity, 64.0 MiB: far to the"), "{told}");
        assert!(told.contains("95 % interval") && !told.contains("beyond the picture"), "{told}");
    }

    #[test]
    fn nothing_measured_is_no_picture() {
        let cell = CellResult { tokens_per_s: None, ..cell(4, "none", 1.0, 1) };
        assert_eq!(sweep_chart(&made_up(vec![cell], None)), Err(ChartError::Empty));
    }

    #[test]
    fn settings_that_were_all_out_of_memory_once_are_told_as_such() {
        let cell = CellResult { status: RunStatus::OutOfMemory, ..cell(4, "none", 1.0, 1) };
        let error = sweep_chart(&made_up(vec![cell], None)).unwrap_err();
        assert!(error.to_string().contains("was out of memory in one of its runs"), "{error}");
    }
}
