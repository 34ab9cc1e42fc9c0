//! The capacity in a sweep's picture.

use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::chart_frame::{Capacity, Frame};
use super::chart_labels::Pixel;
use super::units::bytes;

pub fn capacity_words(capacity_bytes: i64) -> String {
    format!("capacity, {}", bytes(capacity_bytes))
}

/// A line, or where that would be far off a word above the edge it lies behind: nothing else is drawn there.
pub fn draw_capacity<DB: DrawingBackend>(
    area: &DrawingArea<DB, Shift>,
    frame: &Frame,
    capacity_bytes: i64,
    pixel: Pixel,
) -> Result<(), DrawingAreaErrorKind<DB::ErrorType>> {
    let (peaks, rates) = (&frame.peaks, &frame.rates);
    let word = |text: String, (x, y): (i32, i32), anchor| {
        let style = ("sans-serif", 13).into_font().color(&BLACK).pos(Pos::new(anchor, VPos::Bottom));
        area.draw(&Text::new(text, (x, y - 4), style))
    };
    let ((left, top), (right, _)) = (pixel(peaks.start, rates.end), pixel(peaks.end, rates.end));
    let words = capacity_words(capacity_bytes);
    match frame.capacity {
        Capacity::NotGiven => Ok(()),
        Capacity::Within(peak) => draw_limit(area, pixel(peak, rates.start), pixel(peak, rates.end)),
        Capacity::Below => word(format!("\u{2190} {words}"), (left, top), HPos::Left),
        Capacity::Beyond => word(format!("{words} \u{2192}"), (right, top), HPos::Right),
    }
}

/// Its line, which is no curve's: thin, black and dashed.
pub fn draw_limit<DB: DrawingBackend>(
    area: &DrawingArea<DB, Shift>,
    from: (i32, i32),
    to: (i32, i32),
) -> Result<(), DrawingAreaErrorKind<DB::ErrorType>> {
    area.draw(&DashedPathElement::new([from, to], 6, 4, BLACK.stroke_width(1)))
}
