//! What the marks in a sweep's picture mean, beside it: where nothing is drawn, nothing can be hidden.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::wrap::wrap_at;

/// Pixels from one line of text to the next, from one entry to the next, and of a sample's width.
const LINE: i32 = 16;
const GAP: i32 = 7;
const SAMPLE: i32 = 26;
/// From a line's top to the middle of its small letters.
const MIDDLE: i32 = 6;
/// Characters in a line.
const CHARS: usize = 32;
const FONT: (&str, i32) = ("sans-serif", 13);

/// What stands before an entry's words.
pub enum Sample {
    Line(Style),
    Filled,
    Hollow,
    Interval,
    Dashed,
    Nothing,
}

/// How a curve is told from others: by its colour, and from the eighth on by its marks too.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    pub colour: RGBColor,
    pub square: bool,
}

/// A mark is drawn twice, filled and as an edge: white within where it is hollow, so that lines end at it.
pub fn fill_and_edge(style: Style, filled: bool) -> [ShapeStyle; 2] {
    let fill = if filled { style.colour } else { WHITE };
    [fill.filled(), style.colour.stroke_width(2)]
}

/// Half a mark's width.
pub const REACH: i32 = 4;

fn draw_mark<DB: DrawingBackend>(
    area: &DrawingArea<DB, Shift>,
    (x, y): (i32, i32),
    style: Style,
    filled: bool,
) -> Result<(), DrawingAreaErrorKind<DB::ErrorType>> {
    let corners = [(x - REACH, y - REACH), (x + REACH, y + REACH)];
    fill_and_edge(style, filled).into_iter().try_for_each(|drawn| match style.square {
        true => area.draw(&Rectangle::new(corners, drawn)),
        false => area.draw(&Circle::new((x, y), REACH, drawn)),
    })
}

/// Draws the entries below each other.
pub fn draw_legend<DB: DrawingBackend>(
    area: &DrawingArea<DB, Shift>,
    entries: &[(Sample, String)],
) -> Result<(), DrawingAreaErrorKind<DB::ErrorType>> {
    let mut y = 0;
    for (sample, text) in entries {
        draw_sample(area, sample, y + MIDDLE)?;
        let lines = wrap_at(text, 0, CHARS);
        for line in lines.lines() {
            area.draw(&Text::new(line.to_owned(), (SAMPLE + 8, y), FONT.into_font()))?;
            y += LINE;
        }
        y += GAP;
    }
    Ok(())
}

fn draw_sample<DB: DrawingBackend>(
    area: &DrawingArea<DB, Shift>,
    sample: &Sample,
    y: i32,
) -> Result<(), DrawingAreaErrorKind<DB::ErrorType>> {
    let middle = (SAMPLE / 2, y);
    let black = Style { colour: BLACK, square: false };
    match sample {
        Sample::Nothing => Ok(()),
        Sample::Line(style) => {
            area.draw(&PathElement::new([(0, y), (SAMPLE, y)], style.colour.stroke_width(2)))?;
            draw_mark(area, middle, *style, true)
        }
        Sample::Filled => draw_mark(area, middle, black, true),
        Sample::Hollow => draw_mark(area, middle, black, false),
        Sample::Interval => {
            let (x, style) = (SAMPLE / 2, BLACK.stroke_width(1));
            area.draw(&PathElement::new([(x, y - 7), (x, y + 7)], style))?;
            area.draw(&PathElement::new([(x - 4, y - 7), (x + 4, y - 7)], style))?;
            area.draw(&PathElement::new([(x - 4, y + 7), (x + 4, y + 7)], style))
        }
        Sample::Dashed => {
            let dashes = (0..SAMPLE).step_by(10);
            dashes.into_iter().try_for_each(|x| {
                area.draw(&PathElement::new([(x, y), ((x + 6).min(SAMPLE), y)], BLACK.stroke_width(1)))
            })
        }
    }
}
