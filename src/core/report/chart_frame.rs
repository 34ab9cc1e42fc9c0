//! What the axes of a sweep's picture show.

use std::ops::Range;

/// Of the frame around the points, as a share of their range.
const ROOM: f64 = 0.12;
/// Intervals have at most so much room: where they are wide the points would lie in a line.
const ROOM_FOR_INTERVALS: f64 = 0.4;
/// Between an interval's end and the frame.
const EDGE: f64 = 0.03;
/// A capacity further from the points than so many times their range would squeeze them into a stroke.
const FAR: f64 = 2.0;
/// Peaks that are closer than this share of the highest are drawn close: the axis would tell bytes from each other.
const LEAST_SPAN: f64 = 0.02;
/// What counts for a range at the least, as a share of its upper end: a single point has one too.
const LEAST_RANGE: f64 = 0.25;

/// A double has no more of them to tell.
const MOST_DECIMALS: f64 = 12.0;

/// A point, with the interval of its rate if it has one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place {
    pub peak: f64,
    pub rate: f64,
    pub interval: Option<(f64, f64)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    pub peaks: Range<f64>,
    pub rates: Range<f64>,
    pub capacity: Capacity,
}

/// Where the capacity lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Capacity {
    NotGiven,
    Within(f64),
    /// Far to the left of all points, or to the right.
    Below,
    Beyond,
}

impl Frame {
    /// All points and a capacity near them, with some room; intervals as far as they reach little further. `None` without
    /// points.
    pub fn of(places: &[Place], capacity: Option<f64>) -> Option<Self> {
        let (low, high) = ends(places.iter().map(|place| place.peak))?;
        let capacity = capacity.map_or(Capacity::NotGiven, |capacity| standing(capacity, low, high));
        let shown = if let Capacity::Within(capacity) = capacity { Some(capacity) } else { None };
        let peaks = at_least_wide(with_room(places.iter().map(|place| place.peak).chain(shown))?);
        Some(Frame { peaks, rates: rates(places)?, capacity })
    }

    /// The capacity, where it is in the picture.
    pub fn limit(&self) -> Option<f64> {
        match self.capacity {
            Capacity::Within(capacity) => Some(capacity),
            _ => None,
        }
    }

    /// Whether a point's interval ends within the picture, if it has one.
    pub fn holds(&self, place: Place) -> bool {
        place.interval.is_none_or(|(low, high)| self.rates.contains(&low) && self.rates.contains(&high))
    }
}

fn standing(capacity: f64, low: f64, high: f64) -> Capacity {
    let far = FAR * (high - low).max(LEAST_RANGE * high);
    match capacity {
        _ if capacity > high + far => Capacity::Beyond,
        _ if capacity < low - far => Capacity::Below,
        _ => Capacity::Within(capacity),
    }
}

fn rates(places: &[Place]) -> Option<Range<f64>> {
    let rates = with_room(places.iter().map(|place| place.rate))?;
    let intervals = places.iter().filter_map(|place| place.interval);
    let (most, edge) = (ROOM_FOR_INTERVALS * (rates.end - rates.start), EDGE * (rates.end - rates.start));
    let wide = intervals
        .fold(rates.clone(), |range, (low, high)| range.start.min(low - edge)..range.end.max(high + edge));
    Some(wide.start.max(rates.start - most).max(0.0)..wide.end.min(rates.end + most))
}

fn with_room(values: impl Iterator<Item = f64>) -> Option<Range<f64>> {
    let (low, high) = ends(values)?;
    // A single point has a frame too.
    let room = if high > low { ROOM * (high - low) } else { ROOM * high.abs().max(f64::MIN_POSITIVE) };
    Some((low - room).max(0.0)..high + room)
}

/// The same around its middle, where it is narrower than it may be.
fn at_least_wide(range: Range<f64>) -> Range<f64> {
    let more = (LEAST_SPAN * range.end - (range.end - range.start)).max(0.0) / 2.0;
    range.start - more..range.end + more
}

fn ends(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |range, value: f64| match range {
        None => Some((value, value)),
        Some((low, high)) => Some((value.min(low), value.max(high))),
    })
}

/// Decimals of an axis' labels, some ten of them: they must differ. Ticks are a twentieth of the range at the least.
pub fn decimals(range: &Range<f64>) -> usize {
    let tick = (range.end - range.start) / 20.0;
    (-tick.log10()).ceil().clamp(0.0, MOST_DECIMALS) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(peaks: &[f64], capacity: Option<f64>) -> Frame {
        let place = |peak: &f64| Place { peak: *peak, rate: 100.0 * peak, interval: None };
        Frame::of(&peaks.iter().map(place).collect::<Vec<_>>(), capacity).unwrap()
    }

    #[test]
    fn a_capacity_that_is_near_is_shown_and_one_that_is_far_does_not_squeeze_the_points() {
        let near = frame(&[14.0, 48.0], Some(64.0));
        assert_eq!(near.capacity, Capacity::Within(64.0));
        assert!(near.peaks.contains(&64.0));
        for (capacity, expected) in [(64.0, Capacity::Beyond), (0.01, Capacity::Below)] {
            let far = frame(&[0.30, 0.38], Some(capacity));
            assert_eq!(far.capacity, expected);
            assert!(far.peaks.start > 0.28 && far.peaks.end < 0.40, "{far:?}");
        }
        assert_eq!(frame(&[20.0], Some(28.0)).capacity, Capacity::Within(28.0));
        assert_eq!(frame(&[20.0], Some(64.0)).capacity, Capacity::Beyond);
        assert_eq!(frame(&[20.0], None).capacity, Capacity::NotGiven);
        assert_eq!(Frame::of(&[], Some(1.0)), None);
    }

    #[test]
    fn labels_differ() {
        for (range, expected) in [
            (0.004..0.0045, 5),
            (0.28..0.41, 3),
            (0.2..1.5, 2),
            (14.0..30.0, 1),
            (14.0..64.0, 0),
            (1.0..1.0, 12),
        ] {
            assert_eq!(decimals(&range), expected, "{range:?}");
        }
    }

    #[test]
    fn peaks_that_differ_by_bytes_are_drawn_close() {
        let bytes = |more: f64| 0.411 + more / f64::from(1 << 20);
        let Range { start, end } = frame(&[bytes(0.0), bytes(156.0), bytes(512.0)], None).peaks;
        assert!(
            end - start >= LEAST_SPAN * bytes(0.0) && end - start < 0.03 * bytes(0.0),
            "{start} to {end}"
        );
        assert!(start < bytes(0.0) && end > bytes(512.0));
    }
}
