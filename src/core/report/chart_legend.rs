//! What the marks in a sweep's picture mean, beside it: where nothing is drawn, nothing can be hidden.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::chart_capacity::draw_limit;
use super::chart_style::{Style, draw_line, draw_mark};
use super::wrap::wrap_at;

/// Pixels from one line of text to the next, from one entry to the next, and of a sample's width.
const LINE: i32 = 16;
const GAP: i32 = 7;
const SAMPLE: i32 = 36;
/// From a line's top to the middle of its small letters.
const MIDDLE: i32 = 6;
/// Characters in a line.
const CHARS: usize = 32;
const FONT: (&str, i32) = ("sans-serif", 13);

/// What stands before an entry's words.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sample {
    Curve(Style),
    Filled,
    Hollow,
    Interval,
    /// Points that are set apart.
    Apart,
    Capacity,
    Nothing,
}

pub type Entry = (Sample, String);

/// Pixels that the entries take below each other.
pub fn legend_height(entries: &[Entry]) -> i32 {
    entries.iter().map(|(_, text)| LINE * lines(text).lines().count() as i32 + GAP).sum()
}

fn lines(text: &str) -> String {
    wrap_at(text, 0, CHARS)
}

/// Draws the entries below each other.
pub fn draw_legend<DB: DrawingBackend>(
    area: &DrawingArea<DB, Shift>,
    entries: &[Entry],
) -> Result<(), DrawingAreaErrorKind<DB::ErrorType>> {
    let mut y = 0;
    for (sample, text) in entries {
        draw_sample(area, *sample, y + MIDDLE)?;
        let left = if *sample == Sample::Nothing { 0 } else { SAMPLE + 8 };
        for line in lines(text).lines() {
            area.draw(&Text::new(line.to_owned(), (left, y), FONT.into_font()))?;
            y += LINE;
        }
        y += GAP;
    }
    Ok(())
}

fn draw_sample<DB: DrawingBackend>(
    area: &DrawingArea<DB, Shift>,
    sample: Sample,
    y: i32,
) -> Result<(), DrawingAreaErrorKind<DB::ErrorType>> {
    let middle = (SAMPLE / 2, y);
    match sample {
        Sample::Nothing => Ok(()),
        Sample::Curve(style) => {
            draw_line(area, vec![(0, y), (SAMPLE, y)], style)?;
            draw_mark(area, middle, style, true)
        }
        Sample::Filled => draw_mark(area, middle, Style::PLAIN, true),
        Sample::Hollow => draw_mark(area, middle, Style::PLAIN, false),
        Sample::Interval => {
            let (x, style) = (SAMPLE / 2, BLACK.stroke_width(1));
            area.draw(&PathElement::new([(x, y - 7), (x, y + 7)], style))?;
            area.draw(&PathElement::new([(x - 4, y - 7), (x + 4, y - 7)], style))?;
            area.draw(&PathElement::new([(x - 4, y + 7), (x + 4, y + 7)], style))
        }
        Sample::Apart => {
            let beside = |shift: i32| draw_mark(area, (SAMPLE / 2 + shift, y), Style::PLAIN, false);
            beside(-5).and_then(|()| beside(5))
        }
        Sample::Capacity => draw_limit(area, (0, y), (SAMPLE, y)),
    }
}
