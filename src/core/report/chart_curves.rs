//! A sweep's cells as the curves of its picture.

use super::chart_frame::Place;
use super::chart_labels::Pixel;
use super::chart_style::{Style, styles};
use crate::sweep::{CellResult, Sweep};

pub const MIB: f64 = (1 << 20) as f64;

/// A measured cell as a point.
pub struct Point<'a> {
    pub cell: &'a CellResult,
    pub place: Place,
    /// Pixels to the right of its place, so that it is not upon another one.
    pub shift: i32,
}

impl Point<'_> {
    /// Where it is drawn.
    pub fn at(&self, pixel: Pixel) -> (i32, i32) {
        self.at_rate(self.place.rate, pixel)
    }

    /// Another rate at its peak, such as an end of its interval.
    pub fn at_rate(&self, rate: f64, pixel: Pixel) -> (i32, i32) {
        let (x, y) = pixel(self.place.peak, rate);
        (x + self.shift, y)
    }
}

/// The cells that differ in batch alone, smallest peak first.
pub struct Curve<'a> {
    /// Of the flags beside batch.
    pub values: Vec<String>,
    pub style: Style,
    pub points: Vec<Point<'a>>,
}

/// What a curve is one value of: the flags of the grid beside batch.
pub fn others(sweep: &Sweep) -> Vec<&String> {
    sweep.grid.iter().filter(|flag| *flag != "batch").collect()
}

pub fn curves(sweep: &Sweep) -> Vec<Curve<'_>> {
    let others = others(sweep);
    let values_of = |cell: &CellResult| -> Vec<String> {
        others.iter().map(|flag| cell.setting(flag).unwrap_or_default()).collect()
    };
    let mut curves: Vec<Curve> = Vec::new();
    for cell in &sweep.cells {
        let Some((rate, peak)) = cell.rate_and_peak() else { continue };
        let interval = cell.tokens_per_s_low.zip(cell.tokens_per_s_high);
        let point = Point { cell, place: Place { peak: peak as f64 / MIB, rate, interval }, shift: 0 };
        let values = values_of(cell);
        match curves.iter_mut().find(|curve| curve.values == values) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve { values, style: Style::PLAIN, points: vec![point] }),
        }
    }
    let styles = styles_of(&curves, others.len());
    for (curve, style) in curves.iter_mut().zip(styles) {
        curve.style = style;
        curve.points.sort_by(|a, b| a.place.peak.total_cmp(&b.place.peak));
    }
    curves
}

/// By the place of each of its values among those that there are of the flag.
fn styles_of(curves: &[Curve], flags: usize) -> Vec<Style> {
    let known: Vec<Vec<&String>> =
        (0..flags).map(|flag| distinct(curves.iter().map(|c| &c.values[flag]))).collect();
    let places = |curve: &Curve| {
        let of_flag =
            |(value, known): (&String, &Vec<&String>)| known.iter().position(|other| *other == value);
        curve.values.iter().zip(&known).filter_map(of_flag).collect()
    };
    let counts: Vec<usize> = known.iter().map(Vec::len).collect();
    styles(&counts, &curves.iter().map(places).collect::<Vec<_>>())
}

/// In the order in which they come.
fn distinct<'a>(values: impl Iterator<Item = &'a String>) -> Vec<&'a String> {
    values.fold(Vec::new(), |mut known, value| {
        if !known.contains(&value) {
            known.push(value);
        }
        known
    })
}
