//! The bytes of two sides, moment by moment. They are counted, so they are compared exactly.

use serde::{Serialize, Serializer};

use super::repeat::Repeat;
use crate::record::{Category, LedgerMoment, Moment};

/// The moment that each category is read at: where it is what it is for. Gradients are whole when backward ends,
/// activations when forward does; what passes by, and what cannot be explained, counts at the peak.
pub const MEASURED_AT: [(Category, Moment); Category::ALL.len()] = [
    (Category::Parameter, Moment::OptimizerEnd),
    (Category::Gradient, Moment::BackwardEnd),
    (Category::AdamState, Moment::OptimizerEnd),
    (Category::Activation, Moment::ForwardEnd),
    (Category::Input, Moment::ForwardEnd),
    (Category::Buffer, Moment::OptimizerEnd),
    (Category::Workspace, Moment::Peak),
    (Category::Unattributed, Moment::Peak),
];

/// The moments that the table of all bytes has.
const MOMENTS: [Moment; 4] = [Moment::ForwardEnd, Moment::BackwardEnd, Moment::OptimizerEnd, Moment::Peak];

/// The least and the most over the runs of a side; the same where they all agree, as they should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub least: i64,
    pub most: i64,
}

impl Span {
    /// `None` where no run has a value.
    pub fn of(values: impl Iterator<Item = Option<i64>>) -> Option<Self> {
        let spans = values.flatten().map(|value| Span { least: value, most: value });
        spans.reduce(|a, b| Span { least: a.least.min(b.least), most: a.most.max(b.most) })
    }

    pub fn varies(self) -> bool {
        self.least < self.most
    }
}

/// One number of bytes on both sides: the most of any run. Null where memory was not traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CategoryBytes {
    pub base: Option<i64>,
    pub candidate: Option<i64>,
    pub moment: Moment,
    /// Whether the runs of a side disagree.
    pub varies: bool,
    #[serde(skip)]
    pub(super) spans: (Option<Span>, Option<Span>),
}

/// A list as a JSON object, in its own order.
#[derive(Debug, Clone, PartialEq)]
pub struct Keyed<K, V>(pub Vec<(K, V)>);

impl<K: Serialize, V: Serialize> Serialize for Keyed<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// Each category at its own moment.
pub fn by_category(base: &[&Repeat], candidate: &[&Repeat]) -> Keyed<Category, CategoryBytes> {
    let cell = |(category, moment)| (category, category_bytes(base, candidate, moment, category));
    Keyed(MEASURED_AT.map(cell).to_vec())
}

/// Every category at every moment that a side has.
pub fn by_moment(base: &[&Repeat], candidate: &[&Repeat]) -> Keyed<Moment, Keyed<Category, CategoryBytes>> {
    let has = |moment: &Moment| base.iter().chain(candidate).any(|run| at(run, *moment).is_some());
    let categories = |moment| {
        let cell = |&category: &Category| (category, category_bytes(base, candidate, moment, category));
        (moment, Keyed(Category::ALL.iter().map(cell).collect()))
    };
    Keyed(MOMENTS.into_iter().filter(has).map(categories).collect())
}

/// The highest total of the measured steps.
pub fn peaks(runs: &[&Repeat]) -> Option<Span> {
    Span::of(runs.iter().map(|run| run.peak_bytes))
}

fn category_bytes(
    base: &[&Repeat],
    candidate: &[&Repeat],
    moment: Moment,
    category: Category,
) -> CategoryBytes {
    let span = |runs: &[&Repeat]| Span::of(runs.iter().map(|run| Some(at(run, moment)?.bytes[category])));
    let spans = (span(base), span(candidate));
    CategoryBytes {
        base: spans.0.map(|span| span.most),
        candidate: spans.1.map(|span| span.most),
        moment,
        varies: [spans.0, spans.1].into_iter().flatten().any(Span::varies),
        spans,
    }
}

fn at(run: &Repeat, moment: Moment) -> Option<&LedgerMoment> {
    run.ledger.iter().find(|row| row.moment == moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_category_has_its_moment() {
        let measured: Vec<Category> = MEASURED_AT.iter().map(|(category, _)| *category).collect();
        assert_eq!(measured, Category::ALL);
    }

    #[test]
    fn a_span_holds_all_that_is_known() {
        assert_eq!(Span::of([Some(3), None, Some(1)].into_iter()), Some(Span { least: 1, most: 3 }));
        assert_eq!(Span::of([None, None].into_iter()), None);
    }
}
