//! What a run's device can do at most, for its products' type, and who says so.

use serde::Serialize;

use crate::record::{DeviceRates, ReferenceRates};
use crate::theory::Precision;

/// The two sides of a roofline (Williams, Waterman & Patterson 2009), and where they come from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reference {
    /// `calibrated` (measured on this device) or `datasheet` (its maker's figures, dense).
    pub source: &'static str,
    /// Of matrix products in the type of the run's.
    pub tflop_s: f64,
    /// Of memory: STREAM's triad where it was measured, as the paper has it.
    pub gb_s: f64,
    /// In words: when it was measured and with what, or the document.
    pub what: String,
}

/// For products in this precision; `None` where the document has no figure for it. Under autocast products are computed
/// in bf16.
pub fn reference(rates: &ReferenceRates, precision: Precision) -> Option<Reference> {
    let f32 = precision == Precision::F32;
    match rates {
        ReferenceRates::Calibrated(rates) => {
            let products = if f32 { rates.matmul_f32_tflop_s } else { rates.matmul_bf16_tflop_s };
            Some(Reference {
                source: "calibrated",
                tflop_s: products.median,
                gb_s: rates.triad_gb_s.median,
                what: calibrated(rates),
            })
        }
        ReferenceRates::Datasheet(sheet) => Some(Reference {
            source: "datasheet",
            tflop_s: if f32 { sheet.f32_tflop_s } else { sheet.bf16_tflop_s }?,
            gb_s: sheet.bandwidth_gb_s,
            what: format!("{}: {}", sheet.card, sheet.source),
        }),
    }
}

fn calibrated(rates: &DeviceRates) -> String {
    let DeviceRates { device, card, threads, measured_at, torch, .. } = rates;
    let card = card.as_deref().map(|card| format!(" ({card})")).unwrap_or_default();
    let threads = threads.map(|threads| format!(", threads {threads}")).unwrap_or_default();
    format!("{device}{card}{threads}, libtorch {torch}, {}", measured_at.format("%Y-%m-%d"))
}

/// Whose figures those of a source are, as sentences say it.
pub fn whose(source: &str) -> &'static str {
    match source {
        "datasheet" => "by the datasheet, never measured here",
        _ => "measured by `stepledger calibrate`",
    }
}
