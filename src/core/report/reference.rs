//! What a run's device can do at most, for its products' type, and who says so.

use serde::Serialize;

use crate::record::ReferenceRates;
use crate::theory::{Precision, ProductsAtMost};

/// The two sides of a roofline (Williams, Waterman & Patterson 2009), and where they come from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reference {
    /// `calibrated` (measured on this device) or `datasheet` (its maker's figures, dense).
    pub source: &'static str,
    /// Of matrix products in the type of the run's.
    pub tflop_s: f64,
    /// Of memory: STREAM's triad where it was measured, as the paper has it.
    pub gb_s: f64,
    /// In words: when it was measured and with what, and whether its rounds scattered; or the document.
    pub what: String,
}

/// For products in this precision; `None` where nobody has a figure for it.
pub fn reference(rates: &ReferenceRates, precision: Precision) -> Option<Reference> {
    let ProductsAtMost { tflop_s, source, what, .. } = ProductsAtMost::of(rates, precision)?;
    let (gb_s, doubt) = match rates {
        ReferenceRates::Calibrated(rates) => (rates.triad_gb_s.median, rates.triad_gb_s.doubt()),
        ReferenceRates::Datasheet(sheet) => (sheet.bandwidth_gb_s, None),
    };
    let doubt = doubt.map(|doubt| format!("; memory's rate {doubt}")).unwrap_or_default();
    Some(Reference { source, tflop_s, gb_s, what: what + &doubt })
}

/// Whose figures those of a source are, as sentences say it.
pub fn whose(source: &str) -> &'static str {
    match source {
        "datasheet" => "by the datasheet, never measured here",
        _ => "measured by `stepledger calibrate`",
    }
}
