//! Rule 2: where the time goes.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::value::RawValue;

use super::RuleError;
use super::error::finite;
use super::field::{Field, Kind, Range};
use super::object::Object;
use super::registry::Spec;
use super::round::{Plain, round};

const NAME: Field = Field::new("name", "", Kind::Text);
const TOTAL_MS: Field = Field::new("total_ms", "ms", Kind::Number(Range::AtLeast(0.0)));
const CALLS: Field = Field::new("calls", "calls", Kind::Number(Range::Above(0.0)));

pub(super) const SPEC: Spec = Spec {
    summary: "The events that take the most time, each with its share of the whole",
    inputs: &[
        Field::new("events", "", Kind::List(&[NAME, TOTAL_MS, CALLS])),
        Field::new("topk", "events", Kind::Whole(Range::Any)),
    ],
    thresholds: &[],
    source: "arithmetic",
};

/// Something that took time: a phase, a scope, an operator.
#[derive(Debug, Clone)]
pub struct Event {
    pub name: String,
    pub total_ms: f64,
    pub calls: f64,
    /// Any other fields, kept exactly as they were given.
    pub other: Vec<(String, Box<RawValue>)>,
}

impl Event {
    /// An event without other fields.
    pub fn new(name: impl Into<String>, total_ms: f64, calls: f64) -> Self {
        Self { name: name.into(), total_ms, calls, other: Vec::new() }
    }

    fn check(&self) -> Result<(), RuleError> {
        TOTAL_MS.check(self.total_ms)?;
        CALLS.check(self.calls)?;
        Ok(())
    }

    fn read(mut record: Object) -> Result<Self, RuleError> {
        let mut other = std::mem::take(&mut record.kept);
        // The rule's own output, fed in again, must not carry its share twice.
        other.retain(|(name, _)| name != "share_pct");
        Ok(Self {
            name: record.take("name")?,
            total_ms: record.take("total_ms")?,
            calls: record.take("calls")?,
            other,
        })
    }
}

/// An event and its share of the time of all events, those left out included.
#[derive(Debug, Clone)]
pub struct Hotspot {
    pub event: Event,
    /// Rounded to one decimal.
    pub share_pct: f64,
}

impl Serialize for Hotspot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.event.name)?;
        map.serialize_entry("total_ms", &Plain(self.event.total_ms))?;
        map.serialize_entry("calls", &Plain(self.event.calls))?;
        for (name, value) in &self.event.other {
            map.serialize_entry(name, value)?;
        }
        map.serialize_entry("share_pct", &self.share_pct)?;
        map.end()
    }
}

/// The `topk` events with the most time, the largest first; events with equal times keep their order.
///
/// - **Formula:** `share_pct = 100 · total_ms / Σ total_ms` over all events given, to one decimal.
/// - **Units:** milliseconds in all, calls.
/// - **Assumption:** the events do not contain each other, or their shares count time twice.
/// - **Source:** arithmetic.
/// - **Abstains** (an empty list, whatever the events) when there are none or `topk` ≤ 0.
/// - **Errors:** negative time, calls ≤ 0, anything not finite, a sum beyond all numbers, and all times
///   zero, which have no shares. In JSON also a missing field.
pub fn top_hotspots(events: Vec<Event>, topk: i64) -> Result<Vec<Hotspot>, RuleError> {
    let topk = usize::try_from(topk).unwrap_or(0);
    if topk == 0 || events.is_empty() {
        return Ok(Vec::new());
    }
    let total_ms = total_ms(&events)?;
    let mut events = events;
    events.sort_by(|a, b| b.total_ms.partial_cmp(&a.total_ms).unwrap_or(std::cmp::Ordering::Equal));
    events.truncate(topk);
    let hotspot = |event: Event| Hotspot { share_pct: round(event.total_ms / total_ms * 100.0, 1), event };
    Ok(events.into_iter().map(hotspot).collect())
}

fn total_ms(events: &[Event]) -> Result<f64, RuleError> {
    for (at, event) in events.iter().enumerate() {
        event.check().map_err(|error| error.within(&place(at)))?;
    }
    let total_ms = finite("events.total_ms", events.iter().map(|event| event.total_ms).sum())?;
    if total_ms == 0.0 {
        return Err(RuleError::new(
            "events.total_ms",
            "is 0 in every event, but must be above 0 in at least one",
        ));
    }
    Ok(total_ms)
}

fn place(at: usize) -> String {
    format!("events[{at}]")
}

pub(super) fn apply(mut input: Object) -> Result<Vec<Hotspot>, RuleError> {
    let (records, topk) = (input.take::<Vec<Object>>("events")?, input.take::<i64>("topk")?);
    if topk <= 0 {
        // Then nothing is asked of the events, not even that they are complete.
        return Ok(Vec::new());
    }
    let read = |(at, record)| Event::read(record).map_err(|error: RuleError| error.within(&place(at)));
    top_hotspots(records.into_iter().enumerate().map(read).collect::<Result<_, _>>()?, topk)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, total_ms: f64) -> Event {
        Event::new(name, total_ms, 1.0)
    }

    fn names(hotspots: &[Hotspot]) -> Vec<&str> {
        hotspots.iter().map(|hotspot| hotspot.event.name.as_str()).collect()
    }

    #[test]
    fn equal_times_keep_their_order() {
        let hotspots = top_hotspots(vec![event("a", 5.0), event("b", 9.0), event("c", 5.0)], 9).unwrap();
        assert_eq!(names(&hotspots), ["b", "a", "c"]);
    }

    #[test]
    fn shares_are_of_all_events() {
        let hotspots = top_hotspots(vec![event("a", 1.0), event("b", 3.0)], 1).unwrap();
        assert_eq!((names(&hotspots), hotspots[0].share_pct), (vec!["b"], 75.0));
    }

    #[test]
    fn errors_name_the_event() {
        let field = |events| top_hotspots(events, 1).unwrap_err().field;
        assert_eq!(field(vec![event("a", 1.0), event("b", -1.0)]), "events[1].total_ms");
        assert_eq!(field(vec![Event::new("a", 1.0, 0.0)]), "events[0].calls");
        assert_eq!(field(vec![event("a", 0.0)]), "events.total_ms");
        assert_eq!(field(vec![event("a", 1e308), event("b", 1e308)]), "events.total_ms");
    }
}
