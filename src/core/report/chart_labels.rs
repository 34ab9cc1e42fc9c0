//! Where a picture's points have their labels: beside them, and never upon another mark or label.

use std::ops::Range;

use plotters::style::RGBColor;

use super::chart_curves::{Curve, Point};
use super::chart_style::REACH;

/// Pixels of a label's character, of its height, and between it and its mark.
const CHAR: i32 = 7;
const HEIGHT: i32 = 11;
const GAP: i32 = 3;

/// A rectangle in pixels: left, top, right, bottom.
type Box = [i32; 4];

/// The batch of a point.
pub struct Label {
    pub text: String,
    pub colour: RGBColor,
    /// Its top left corner; `None` where there is no room.
    pub at: Option<(i32, i32)>,
}

/// Where a peak and a rate are drawn.
pub type Pixel<'a> = &'a dyn Fn(f64, f64) -> (i32, i32);

/// The labels of all points, within these pixels.
pub fn labels(curves: &[Curve], pixel: Pixel, (across, down): (Range<i32>, Range<i32>)) -> Vec<Label> {
    let at = |point: &Point| point.at(pixel);
    let points = curves.iter().flat_map(|curve| curve.points.iter().map(move |point| (curve, point)));
    let (colours, marks): (Vec<RGBColor>, Vec<Marked>) = points
        .filter_map(|(curve, point)| Some((curve.style.colour, (at(point), point.cell.setting("batch")?))))
        .unzip();
    let lines = curves.iter().flat_map(|curve| curve.points.windows(2));
    let lines: Vec<Stroke> = lines.map(|ends| (at(&ends[0]), at(&ends[1]))).collect();
    let places = place_labels(&marks, &lines, [across.start, down.start, across.end, down.end]);
    let label = |((colour, (_, text)), at)| Label { text, colour, at };
    colours.into_iter().zip(marks).zip(places).map(label).collect()
}

/// A mark's place and its label's text.
type Marked = ((i32, i32), String);

/// A line from one pixel to another.
type Stroke = ((i32, i32), (i32, i32));

/// The top left corners of the labels of these marks, upon no line where that can be; `None` where there is no room
/// within the frame.
fn place_labels(marks: &[Marked], lines: &[Stroke], frame: Box) -> Vec<Option<(i32, i32)>> {
    let reach = REACH + 2;
    let mut taken: Vec<Box> =
        marks.iter().map(|((x, y), _)| [x - reach, y - reach, x + reach, y + reach]).collect();
    let mut place = |(point, text): &Marked| {
        let fits = |place: &Box| is_within(place, &frame) && !taken.iter().any(|other| overlap(place, other));
        let room: Vec<Box> =
            around(*point, text.chars().count() as i32 * CHAR).into_iter().filter(fits).collect();
        let clear = room.iter().find(|place| !lines.iter().any(|line| crosses(line, place)));
        let found = *clear.or(room.first())?;
        taken.push(found);
        Some((found[0], found[1]))
    };
    marks.iter().map(&mut place).collect()
}

/// Whether a line goes through a rectangle: the part of it that is within the rectangle's left and right end, and then
/// within its top and bottom, is not empty (Liang and Barsky 1984).
fn crosses(&((x0, y0), (x1, y1)): &Stroke, [left, top, right, bottom]: &Box) -> bool {
    let within = |(from, to): (f64, f64), at: i32, step: i32, low: i32, high: i32| {
        let (at, step, low, high) = (f64::from(at), f64::from(step), f64::from(low), f64::from(high));
        match step {
            0.0 if at < low || at > high => None,
            0.0 => Some((from, to)),
            _ => {
                let (a, b) = ((low - at) / step, (high - at) / step);
                let (from, to) = (from.max(a.min(b)), to.min(a.max(b)));
                (from <= to).then_some((from, to))
            }
        }
    };
    let across = within((0.0, 1.0), x0, x1 - x0, *left, *right);
    across.and_then(|part| within(part, y0, y1 - y0, *top, *bottom)).is_some()
}

/// The places of a label of this width, the best first: to the right below, where curves that rise leave room.
fn around((x, y): (i32, i32), width: i32) -> [Box; 8] {
    let (right, left) = (x + REACH + GAP, x - REACH - GAP - width);
    let (below, above, middle) = (y + GAP, y - GAP - HEIGHT, y - HEIGHT / 2);
    let at = |left: i32, top: i32| [left, top, left + width, top + HEIGHT];
    [
        at(right, below),
        at(right, above),
        at(left, above),
        at(left, below),
        at(right + GAP, middle),
        at(left - GAP, middle),
        at(x - width / 2, y + REACH + GAP),
        at(x - width / 2, y - REACH - GAP - HEIGHT),
    ]
}

fn is_within([left, top, right, bottom]: &Box, frame: &Box) -> bool {
    frame[0] <= *left && frame[1] <= *top && *right <= frame[2] && *bottom <= frame[3]
}

fn overlap(one: &Box, other: &Box) -> bool {
    one[0] < other[2] && other[0] < one[2] && one[1] < other[3] && other[1] < one[3]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_upon_nothing() {
        let marks: Vec<((i32, i32), String)> =
            (0..40).map(|n| ((100 + 9 * (n % 8), 100 + 13 * (n / 8)), format!("{}", 4 << (n % 5)))).collect();
        let places = place_labels(&marks, &[], [0, 0, 300, 300]);
        let boxes: Vec<Box> = places
            .iter()
            .zip(&marks)
            .filter_map(|(place, (_, text))| {
                let (left, top) = (*place)?;
                Some([left, top, left + CHAR * text.len() as i32, top + HEIGHT])
            })
            .collect();
        assert!(boxes.len() > 5 && boxes.len() < 40, "{}", boxes.len());
        for (at, label) in boxes.iter().enumerate() {
            assert!(boxes[..at].iter().all(|other| !overlap(label, other)));
            assert!(marks.iter().all(|((x, y), _)| !overlap(label, &[x - 4, y - 4, x + 4, y + 4])));
        }
        // Alone it is where one looks for it, and without room it is not there.
        assert_eq!(place_labels(&marks[..1], &[], [0, 0, 300, 300]), [Some((107, 103))]);
        assert_eq!(place_labels(&marks[..1], &[], [95, 95, 105, 105]), [None]);
    }

    #[test]
    fn labels_make_way_for_lines() {
        let mark = [((100, 100), "16".to_owned())];
        let frame = [0, 0, 300, 300];
        // Falling to the right below, where the label would be.
        let places = place_labels(&mark, &[((100, 100), (200, 120))], frame);
        assert_eq!(places, [Some((107, 86))], "right above");
        let everywhere: Vec<Stroke> = (0..60).map(|n| ((0, 5 * n), (300, 5 * n))).collect();
        assert_eq!(place_labels(&mark, &everywhere, frame), [Some((107, 103))], "better than nowhere");
        for (line, expected) in [
            (((0, 0), (10, 10)), true),
            (((0, 0), (3, 3)), false),
            (((6, 0), (6, 20)), true),
            (((0, 11), (20, 11)), false),
            (((0, 9), (1, 30)), false),
        ] {
            assert_eq!(crosses(&line, &[5, 5, 10, 10]), expected, "{line:?}");
        }
    }
}
