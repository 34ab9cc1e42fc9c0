//! How a picture's curves are told apart: by colour, by mark, and by the line between the marks.

use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;

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
const MARKS: [Mark; 4] = [Mark::Circle, Mark::Square, Mark::Triangle, Mark::Diamond];
const LINES: [Line; 3] = [Line::Solid, Line::Dashed, Line::Dotted];

/// Half a mark's width.
pub const REACH: i32 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Circle,
    Square,
    Triangle,
    Diamond,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    Solid,
    Dashed,
    Dotted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    pub colour: RGBColor,
    pub mark: Mark,
    pub line: Line,
}

impl Style {
    /// Of what a legend says of all curves.
    pub const PLAIN: Style = Style { colour: BLACK, mark: Mark::Circle, line: Line::Solid };

    fn at([colour, mark, line]: [usize; 3]) -> Self {
        Style {
            colour: COLOURS[colour % COLOURS.len()],
            mark: MARKS[mark % MARKS.len()],
            line: LINES[line % LINES.len()],
        }
    }
}

/// The styles of curves that are each one value, by its place, of some axes with so many values. Where they suffice each
/// axis has a property of its own: one colour is one dtype, say. Else curves are told apart one by one.
pub fn styles(axes: &[usize], curves: &[Vec<usize>]) -> Vec<Style> {
    match allot(axes) {
        Some(properties) => curves.iter().map(|curve| Style::at(mixed(&properties, axes, curve))).collect(),
        None => (0..curves.len()).map(|place| Style::at(one_by_one(place))).collect(),
    }
}

fn one_by_one(place: usize) -> [usize; 3] {
    let (colours, marks) = (COLOURS.len(), MARKS.len());
    [place % colours, place / colours % marks, place / (colours * marks)]
}

/// Which property each axis is shown by (0: colour, 1: mark, 2: line): of those with room for it the one that shows least so
/// far.
fn allot(axes: &[usize]) -> Option<Vec<usize>> {
    let room = [COLOURS.len(), MARKS.len(), LINES.len()];
    let mut used = [1; 3];
    let property = |values: &usize| {
        let property = (0..3).filter(|&p| used[p] * values <= room[p]).min_by_key(|&p| used[p])?;
        used[property] *= values;
        Some(property)
    };
    axes.iter().map(property).collect()
}

/// Axes that share a property count in it like digits of a number.
fn mixed(properties: &[usize], axes: &[usize], curve: &[usize]) -> [usize; 3] {
    let mut places = [0; 3];
    for ((&property, values), value) in properties.iter().zip(axes).zip(curve) {
        places[property] = places[property] * values + value;
    }
    places
}

/// Draws a mark in pixels, so that lines end at it: white within where it is hollow.
pub fn draw_mark<DB: DrawingBackend>(
    area: &DrawingArea<DB, Shift>,
    (x, y): (i32, i32),
    style: Style,
    filled: bool,
) -> Result<(), DrawingAreaErrorKind<DB::ErrorType>> {
    let (fill, edge) = (if filled { style.colour } else { WHITE }, style.colour.stroke_width(2));
    let corners: &[(i32, i32)] = match style.mark {
        Mark::Circle => {
            area.draw(&Circle::new((x, y), REACH, fill.filled()))?;
            return area.draw(&Circle::new((x, y), REACH, edge));
        }
        Mark::Square => &[(-4, -4), (4, -4), (4, 4), (-4, 4)],
        Mark::Triangle => &[(0, -5), (5, 4), (-5, 4)],
        Mark::Diamond => &[(0, -6), (6, 0), (0, 6), (-6, 0)],
    };
    let at = |(dx, dy): &(i32, i32)| (x + dx, y + dy);
    area.draw(&Polygon::new(corners.iter().map(at).collect::<Vec<_>>(), fill.filled()))?;
    // The first edge twice, so that the last corner is as sharp as the others.
    area.draw(&PathElement::new(corners.iter().chain(&corners[..2]).map(at).collect::<Vec<_>>(), edge))
}

/// Draws a curve's line in pixels.
pub fn draw_line<DB: DrawingBackend>(
    area: &DrawingArea<DB, Shift>,
    points: Vec<(i32, i32)>,
    style: Style,
) -> Result<(), DrawingAreaErrorKind<DB::ErrorType>> {
    let drawn = style.colour.stroke_width(2);
    let (dash, gap) = match style.line {
        Line::Solid => return area.draw(&PathElement::new(points, drawn)),
        Line::Dashed => (8, 5),
        Line::Dotted => (2, 4),
    };
    area.draw(&DashedPathElement::new(points, dash, gap, drawn))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All curves of these axes.
    fn all(axes: &[usize]) -> Vec<Vec<usize>> {
        axes.iter().fold(vec![Vec::new()], |curves, values| {
            let with = |curve: &Vec<usize>, value| [curve.clone(), vec![value]].concat();
            curves.iter().flat_map(|curve| (0..*values).map(move |value| with(curve, value))).collect()
        })
    }

    #[test]
    fn no_two_curves_look_alike() {
        for axes in [&[][..], &[3], &[3, 2], &[2, 2, 2, 2], &[7, 4, 3], &[6, 6], &[84], &[2, 3, 2, 2, 2]] {
            let styles = styles(axes, &all(axes));
            for (place, style) in styles.iter().enumerate() {
                assert!(!styles[..place].contains(style), "{axes:?}: {style:?} is there twice");
            }
        }
        assert_eq!(styles(&[85], &all(&[85])).len(), 85, "from here on they repeat");
    }

    #[test]
    fn each_axis_has_a_property_of_its_own() {
        let (curves, told) = (all(&[3, 2, 2]), styles(&[3, 2, 2], &all(&[3, 2, 2])));
        for (one, a) in curves.iter().zip(&told) {
            for (other, b) in curves.iter().zip(&told) {
                assert_eq!(one[0] == other[0], a.colour == b.colour);
                assert_eq!(one[1] == other[1], a.mark == b.mark);
                assert_eq!(one[2] == other[2], a.line == b.line);
            }
        }
    }
}
