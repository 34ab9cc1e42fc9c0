//! Points of one peak in a picture: side by side, so that each is seen by itself.

use super::chart_curves::Curve;
use super::chart_frame::Frame;
use super::chart_labels::Pixel;
use super::chart_style::REACH;

/// Points no further from each other than so many pixels cannot be told apart.
const CLOSE: i32 = 3;
/// Pixels between points that are set apart, and between where a point belongs and where it is drawn, at the most.
const BESIDE: i32 = 9;
const MOST: f64 = 18.0;
/// How often the distance between points is halved below a pixel, where there are so many.
const HALVINGS: i32 = 12;

/// A point in pixels, with its mark and its interval.
#[derive(Debug, Clone, Copy)]
struct Bar {
    x: i32,
    top: i32,
    bottom: i32,
    /// Of a peak beyond the capacity.
    is_beyond: bool,
}

/// Moves points that would be drawn upon each other a few pixels to the side, and none across the capacity.
pub fn set_apart(curves: &mut [Curve], frame: &Frame, pixel: Pixel) {
    let mut points: Vec<_> = curves.iter_mut().flat_map(|curve| &mut curve.points).collect();
    let limit = frame.limit();
    let bar = |peak: f64, rate: f64, interval: Option<(f64, f64)>| {
        let (x, y) = pixel(peak, rate);
        let (low, high) = interval.unwrap_or((rate, rate));
        let at = |rate: f64| pixel(peak, rate.clamp(frame.rates.start, frame.rates.end)).1;
        let reach = REACH + 2;
        let is_beyond = limit.is_some_and(|limit| peak > limit);
        Bar { x, top: at(high).min(y - reach), bottom: at(low).max(y + reach), is_beyond }
    };
    let places = points.iter().map(|point| point.place);
    let bars: Vec<Bar> = places.map(|place| bar(place.peak, place.rate, place.interval)).collect();
    let limit = limit.map(|limit| pixel(limit, frame.rates.start).0);
    for (point, shift) in points.iter_mut().zip(shifts(bars, limit)) {
        point.shift = shift;
    }
}

/// How far the point is moved that is moved furthest, in MiB; `None` where none is.
pub fn furthest(curves: &[Curve], frame: &Frame, pixel: Pixel) -> Option<f64> {
    let shifts = curves.iter().flat_map(|curve| &curve.points).map(|point| point.shift.abs());
    let pixels = shifts.max().filter(|pixels| *pixels > 0)?;
    let across = |peak: f64| f64::from(pixel(peak, frame.rates.start).0);
    let (peaks, width) = (&frame.peaks, across(frame.peaks.end) - across(frame.peaks.start));
    Some(f64::from(pixels) * (peaks.end - peaks.start) / width)
}

/// How far each bar is moved, with the capacity at this pixel: for the widest distance at which none is too far from where
/// it belongs.
fn shifts(bars: Vec<Bar>, limit: Option<i32>) -> Vec<i32> {
    let mut by_x: Vec<usize> = (0..bars.len()).collect();
    by_x.sort_by_key(|&place| (bars[place].x, bars[place].is_beyond));
    let row = Row { bars: by_x.iter().map(|&place| bars[place]).collect(), limit: limit.map(f64::from) };
    let below_a_pixel = (1..=HALVINGS).map(|halvings| 0.5_f64.powi(halvings));
    let mut distances = (1..=BESIDE).rev().map(f64::from).chain(below_a_pixel);
    let placed = distances.find_map(|distance| row.place(distance)).unwrap_or_default();
    let mut shifts = vec![0; bars.len()];
    for (place, x) in by_x.into_iter().zip(placed) {
        shifts[place] = x.floor() as i32 - bars[place].x;
    }
    shifts
}

/// Bars from the left to the right.
struct Row {
    bars: Vec<Bar>,
    limit: Option<f64>,
}

impl Row {
    /// Where each is drawn if those that would be drawn upon each other are so far apart. `None` where that moves one too far.
    ///
    /// Each is pushed to the right by those before it and to the left by those behind it, and is drawn in the middle of
    /// the two. How far it may be moved, and the capacity, push in the same way; since all of them keep the distances, so
    /// does whatever lies between them.
    fn place(&self, distance: f64) -> Option<Vec<f64>> {
        let allowed = |is_beyond: bool, bar: &Bar| self.limit.filter(|_| bar.is_beyond == is_beyond);
        let least = |bar: &Bar| allowed(true, bar).unwrap_or(f64::MIN).max(f64::from(bar.x) - MOST);
        let most = |bar: &Bar| allowed(false, bar).unwrap_or(f64::MAX).min(f64::from(bar.x) + MOST);
        let (least, most) = (self.pushed_right(distance, least)?, self.pushed_left(distance, most));
        let right = self.pushed_right(distance, |bar| f64::from(bar.x))?;
        let left = self.pushed_left(distance, |bar| f64::from(bar.x));
        let middle = |place: usize| 0.5 * (left[place] + right[place]);
        let is_possible = least.iter().zip(&most).all(|(least, most)| least <= most);
        is_possible.then(|| {
            let bounds = least.iter().zip(&most).enumerate();
            bounds.map(|(place, (least, most))| middle(place).max(*least).min(*most)).collect()
        })
    }

    /// Each at `from`, or as far to the right of it as those before it push it; `None` where that is out of all reach.
    fn pushed_right(&self, distance: f64, from: impl Fn(&Bar) -> f64) -> Option<Vec<f64>> {
        let mut places: Vec<f64> = Vec::with_capacity(self.bars.len());
        for (place, bar) in self.bars.iter().enumerate() {
            let near =
                self.bars[..place].iter().enumerate().rev().take_while(|(_, other)| is_near(other, bar));
            let pushes =
                near.filter_map(|(before, other)| Some(places[before] + between(other, bar, distance)?));
            let pushed = pushes.fold(from(bar), f64::max);
            if pushed > f64::from(bar.x) + 2.0 * MOST {
                return None;
            }
            places.push(pushed);
        }
        Some(places)
    }

    /// Each at `from`, or as far to the left of it as those behind it push it.
    fn pushed_left(&self, distance: f64, from: impl Fn(&Bar) -> f64) -> Vec<f64> {
        let mut places: Vec<f64> = self.bars.iter().map(from).collect();
        for (place, bar) in self.bars.iter().enumerate().rev() {
            let behind = self.bars.iter().enumerate().skip(place + 1);
            let near = behind.take_while(|(_, other)| is_near(bar, other));
            let pushes =
                near.filter_map(|(behind, other)| Some(places[behind] - between(bar, other, distance)?));
            places[place] = pushes.fold(places[place], f64::min);
        }
        places
    }
}

/// Whether the two could meet, wherever they are drawn.
fn is_near(left: &Bar, right: &Bar) -> bool {
    f64::from(right.x - left.x) <= 2.0 * MOST + f64::from(BESIDE)
}

/// How far the two are to be from each other: those that can be told apart no further than they are. `None` where one is
/// above the other.
fn between(left: &Bar, right: &Bar, distance: f64) -> Option<f64> {
    let own = right.x - left.x;
    let is_beside = left.top <= right.bottom && right.top <= left.bottom;
    is_beside.then(|| if own <= CLOSE { distance } else { distance.min(f64::from(own)) })
}

#[cfg(test)]
mod tests {
    use super::super::chart_sweep::sweep_chart;
    use super::*;
    use crate::sweep::Sweep;
    use crate::sweep::made_up::{cell, made_up};

    fn bar(x: i32, top: i32) -> Bar {
        Bar { x, top, bottom: top + 10, is_beyond: false }
    }

    /// Where these are drawn.
    fn places(bars: &[Bar], limit: Option<i32>) -> Vec<i32> {
        bars.iter().zip(shifts(bars.to_vec(), limit)).map(|(bar, shift)| bar.x + shift).collect()
    }

    #[test]
    fn bars_upon_each_other_are_set_apart_and_no_others() {
        assert_eq!(places(&[bar(50, 0), bar(50, 5), bar(51, 8)], None), [41, 50, 59]);
        assert_eq!(places(&[bar(50, 0), bar(50, 20)], None), [50, 50], "above each other");
        assert_eq!(places(&[bar(50, 0), bar(55, 0)], None), [50, 55], "beside each other");
        assert_eq!(places(&[bar(50, 0), bar(50, 0), bar(57, 0)], None), [45, 54, 61], "they make way");
    }

    #[test]
    fn none_is_moved_far_however_many_there_are() {
        let neighbours: Vec<Bar> = (0..40).map(|place| bar(50 + 3 * place, 0)).collect();
        for (bars, at_least) in [
            (vec![bar(50, 0); 5], 9),
            (vec![bar(50, 0); 37], 1),
            (vec![bar(50, 0); 38], 0),
            (vec![bar(50, 0); 1000], 0),
            (neighbours, 3),
        ] {
            let shifts = shifts(bars.clone(), None);
            assert!(
                shifts.iter().all(|shift| f64::from(shift.abs()) <= MOST),
                "{} bars: {shifts:?}",
                bars.len()
            );
            let places = places(&bars, None);
            assert!(
                places.windows(2).all(|two| two[1] - two[0] >= at_least),
                "{} bars: {places:?}",
                bars.len()
            );
        }
        let hundred = places(&[bar(50, 0); 100], None);
        assert_eq!((hundred.first(), hundred.last()), (Some(&37), Some(&62)), "a quarter of a pixel");
    }

    #[test]
    fn none_is_drawn_on_the_other_side_of_the_capacity() {
        let beyond = |x: i32| Bar { is_beyond: true, ..bar(x, 0) };
        assert_eq!(places(&[bar(49, 0), bar(50, 0), bar(50, 0)], Some(50)), [32, 41, 50]);
        assert_eq!(places(&[beyond(50), beyond(51)], Some(50)), [50, 59]);
        assert_eq!(places(&[beyond(50), bar(50, 0)], Some(50)), [54, 45], "those that fit on the left");
        for many in [2, 5, 30, 300] {
            let bars = [vec![beyond(50); many], vec![bar(50, 0); many]].concat();
            let places = places(&bars, Some(50));
            assert!(places[..many].iter().all(|x| (50..=68).contains(x)), "{places:?}");
            assert!(places[many..].iter().all(|x| (32..=50).contains(x)), "{places:?}");
        }
    }

    /// A picture of settings of these peaks.
    fn picture(peaks: [i64; 3], with_intervals: bool) -> String {
        let cells = ["fused", "foreach", "loop"].iter().zip(peaks).map(|(way, peak)| {
            let mut cell = cell(8, "none", 900.0, peak);
            cell.settings.insert("adamw".to_owned(), (*way).into());
            if !with_intervals {
                (cell.tokens_per_s_low, cell.tokens_per_s_high) = (None, None);
            }
            cell
        });
        let sweep = Sweep { grid: vec!["adamw".to_owned()], ..made_up(cells.collect(), None) };
        sweep_chart(&sweep).unwrap()
    }

    /// Where the upright bars of these peaks are in a picture, and what its axes say.
    fn drawn(peaks: [i64; 3]) -> (Vec<String>, Vec<String>) {
        let svg = picture(peaks, true);
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
    fn that_points_are_moved_is_told_and_how_far() {
        let told = |svg: &str| {
            let words: Vec<&str> =
                svg.split('<').filter_map(|tag| Some(tag.split_once('>')?.1.trim())).collect();
            let words = words.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
            words.split_once("side by side: ").map(|(_, told)| told.to_owned())
        };
        for with_intervals in [true, false] {
            let svg = picture([431_000, 431_000, 431_010], with_intervals);
            let told = told(&svg).unwrap();
            assert!(
                told.starts_with("settings of nearly one peak, none further from its own than 1"),
                "{told}"
            );
            // The marks, too: two circles a mark, each at a place of its own.
            let middle = |tag: &&str| tag.starts_with("circle");
            let mut marks: Vec<&str> = svg
                .split('<')
                .filter(middle)
                .filter_map(|tag| tag.split("cx=\"").nth(1)?.split('"').next())
                .collect();
            marks.sort_unstable();
            marks.dedup();
            assert!(marks.len() >= 3, "{marks:?}");
        }
        assert_eq!(told(&picture([431_000, 631_000, 831_000], true)), None, "none is moved");
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
