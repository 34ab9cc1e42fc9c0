//! Where the memory went.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::units::share_pct;
use crate::record::{AllocationRow, Category, Detail, LedgerMoment};

/// The ledger at one moment, with its own reconciliation.
#[derive(Debug, Clone, PartialEq)]
pub struct MomentSummary(pub LedgerMoment);

impl Serialize for MomentSummary {
    /// `{category: bytes, …, "total", "allocator_total", "difference", "at_ms"}`; `unattributed` is in the total, and
    /// explains nothing of the difference.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let LedgerMoment { bytes, allocator_bytes, at_ns, .. } = self.0;
        let total = bytes.total();
        let mut object: Map<String, Value> =
            bytes.iter().map(|(category, bytes)| (category.as_str().to_owned(), bytes.into())).collect();
        object.insert("total".into(), total.into());
        object.insert("allocator_total".into(), allocator_bytes.into());
        object.insert("difference".into(), self.0.difference_bytes().into());
        object.insert("at_ms".into(), (at_ns as f64 / 1e6).into());
        object.serialize(serializer)
    }
}

/// A part of what was alive at the peak.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PeakPart {
    pub category: &'static str,
    pub detail: Option<&'static str>,
    pub bytes: i64,
    pub share_pct: f64,
    pub blocks: i64,
}

/// Allocations by category and detail, the largest part first.
pub fn by_detail<'a>(allocations: impl IntoIterator<Item = &'a AllocationRow>) -> Vec<PeakPart> {
    let mut parts: BTreeMap<(Category, Option<Detail>), (i64, i64)> = BTreeMap::new();
    for row in allocations {
        let (bytes, blocks) = parts.entry((row.category, row.detail)).or_default();
        *bytes += row.bytes;
        *blocks += 1;
    }
    let all = parts.values().map(|(bytes, _)| bytes).sum();
    let mut parts: Vec<PeakPart> = parts
        .into_iter()
        .map(|((category, detail), (bytes, blocks))| PeakPart {
            category: category.as_str(),
            detail: detail.map(Detail::as_str),
            bytes,
            share_pct: share_pct(bytes, all),
            blocks,
        })
        .collect();
    parts.sort_by_key(|part| -part.bytes);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{ByCategory, Moment};

    /// A difference that is made up by a category of its own could not fail.
    #[test]
    fn what_is_unattributed_is_a_difference() {
        let mut bytes = ByCategory::default();
        (bytes[Category::Parameter], bytes[Category::Unattributed]) = (100, 7);
        let moment = LedgerMoment { step: 0, moment: Moment::Peak, at_ns: 0, bytes, allocator_bytes: 107 };
        let shown = serde_json::to_value(MomentSummary(moment)).unwrap();
        assert_eq!((&shown["total"], &shown["allocator_total"]), (&107.into(), &107.into()));
        assert_eq!(shown["difference"], 7);
    }
}
