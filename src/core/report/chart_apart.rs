//! Points of one peak in a picture: side by side, so that their intervals are seen each by itself.

use super::chart_curves::Curve;
use super::chart_labels::Pixel;

/// Bars no further from each other than so many pixels cannot be told apart.
const CLOSE: i32 = 3;
/// Pixels between bars that are set apart, and from the first to the last of them at the most.
const BESIDE: i32 = 9;
const MOST: i32 = 36;

/// An interval in pixels.
#[derive(Debug, Clone, Copy)]
struct Bar {
    x: i32,
    top: i32,
    bottom: i32,
}

/// Moves points whose intervals would be drawn upon each other a few pixels to the side.
pub fn set_apart(curves: &mut [Curve], pixel: Pixel) {
    let mut points: Vec<_> = curves.iter_mut().flat_map(|curve| &mut curve.points).collect();
    points.retain(|point| point.place.interval.is_some());
    let bar = |peak: f64, (low, high): (f64, f64)| {
        let ((x, bottom), (_, top)) = (pixel(peak, low), pixel(peak, high));
        Bar { x, top, bottom }
    };
    let bars: Vec<Bar> =
        points.iter().filter_map(|point| Some(bar(point.place.peak, point.place.interval?))).collect();
    for (point, shift) in points.iter_mut().zip(shifts(&bars)) {
        point.shift = shift;
    }
}

/// How far each bar is moved: those of a crowd evenly around where they are.
fn shifts(bars: &[Bar]) -> Vec<i32> {
    let mut by_x: Vec<usize> = (0..bars.len()).collect();
    by_x.sort_by_key(|&place| bars[place].x);
    let mut shifts = vec![0; bars.len()];
    for crowd in by_x.chunk_by(|&one, &next| bars[next].x - bars[one].x <= CLOSE) {
        let gaps = crowd.len() as i32 - 1;
        if gaps == 0 || !any_overlap(crowd, bars) {
            continue;
        }
        let beside = BESIDE.min(MOST / gaps).max(1);
        for (rank, &place) in crowd.iter().enumerate() {
            shifts[place] = rank as i32 * beside - gaps * beside / 2;
        }
    }
    shifts
}

fn any_overlap(crowd: &[usize], bars: &[Bar]) -> bool {
    let mut crowd: Vec<Bar> = crowd.iter().map(|&place| bars[place]).collect();
    crowd.sort_by_key(|bar| bar.top);
    crowd.windows(2).any(|pair| pair[1].top <= pair[0].bottom)
}

#[cfg(test)]
mod tests {
    use super::super::chart_sweep::sweep_chart;
    use super::*;
    use crate::sweep::Sweep;
    use crate::sweep::made_up::{cell, made_up};

    #[test]
    fn bars_upon_each_other_are_set_apart_and_no_others() {
        let bar = |x, top| Bar { x, top, bottom: top + 10 };
        assert_eq!(shifts(&[bar(50, 0), bar(50, 5), bar(51, 8)]), [-9, 0, 9]);
        assert_eq!(shifts(&[bar(50, 0), bar(50, 20)]), [0, 0], "above each other");
        assert_eq!(shifts(&[bar(50, 0), bar(80, 0)]), [0, 0], "beside each other");
        let many = shifts(&[bar(50, 0); 12]);
        assert!(many.iter().all(|shift| shift.abs() <= MOST / 2), "{many:?}");
        assert!(many.windows(2).all(|pair| pair[0] < pair[1]), "{many:?}");
    }

    /// Where the upright bars of these peaks are in a picture, and what its axes say.
    fn drawn(peaks: [i64; 3]) -> (Vec<String>, Vec<String>) {
        let cells = ["fused", "foreach", "loop"].iter().zip(peaks).map(|(way, peak)| {
            let mut cell = cell(8, "none", 900.0, peak);
            cell.settings.insert("adamw".to_owned(), (*way).into());
            cell
        });
        let sweep = Sweep { grid: vec!["adamw".to_owned()], ..made_up(cells.collect(), None) };
        let svg = sweep_chart(&sweep).unwrap();
        let tags = |tag: &'static str| svg.split('<').filter(move |part| part.starts_with(tag));
        // The curves are coloured, and what else is drawn is black.
        let lines = tags("polyline").filter(|line| !line.contains("stroke=\"#000000\""));
        let upright = |line: &str| {
            let points = line.split("points=\"").nth(1)?.split('"').next()?;
            let xs: Vec<&str> =
                points.split_whitespace().filter_map(|point| point.split(',').next()).collect();
            (xs.len() == 2 && xs[0] == xs[1]).then(|| xs[0].to_owned())
        };
        let mut bars: Vec<String> = lines.filter_map(upright).collect();
        bars.sort();
        bars.dedup();
        let text = |tag: &str| Some(tag.split_once('>')?.1.trim().to_owned());
        (bars, tags("text").filter_map(text).filter(|text| text.starts_with("0.4")).collect())
    }

    #[test]
    fn settings_of_almost_one_peak_have_bars_of_their_own_and_ticks_that_differ() {
        for peaks in [[431_000; 3], [431_000, 431_156, 431_512]] {
            let (bars, ticks) = drawn(peaks);
            assert!(bars.len() >= 3, "{peaks:?}: {bars:?}");
            assert!(
                ticks.len() > 2 && ticks.windows(2).all(|pair| pair[0] != pair[1]),
                "{peaks:?}: {ticks:?}"
            );
        }
    }
}
