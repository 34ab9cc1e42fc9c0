//! How many matrix products a device does at most, and who says so.

use super::choices::Precision;
use crate::record::{DeviceRates, MeasuredRate, ReferenceRates};

/// The rate of large matrix products of one type.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ProductsAtMost {
    /// 10¹² operations a second; a multiplication with its addition counts as two.
    pub tflop_s: f64,
    /// The type of the products' factors, `f32` or `bf16`.
    pub dtype: &'static str,
    /// `calibrated` (measured on this device) or `datasheet` (its maker's figure, dense).
    pub source: &'static str,
    /// In words: when it was measured and with what, and whether its rounds scattered; or the document.
    pub what: String,
    /// Whether it was measured while the machine was so unsteady that it says little ([`MeasuredRate::is_unsteady`]).
    pub unsteady: bool,
}

impl ProductsAtMost {
    /// For this precision, if the rates have it and it is above 0.
    pub fn of(rates: &ReferenceRates, precision: Precision) -> Option<Self> {
        let f32 = precision == Precision::F32;
        let (source, tflop_s, what, unsteady) = match rates {
            ReferenceRates::Calibrated(rates) => {
                let rate = if f32 { rates.matmul_f32_tflop_s } else { rates.matmul_bf16_tflop_s };
                ("calibrated", rate.median, calibrated(rates, rate), rate.is_unsteady())
            }
            ReferenceRates::Datasheet(sheet) => {
                let rate = if f32 { sheet.f32_tflop_s } else { sheet.bf16_tflop_s };
                ("datasheet", rate?, format!("{}: {}", sheet.card, sheet.source), false)
            }
        };
        let usable = tflop_s.is_finite() && tflop_s > 0.0;
        usable.then(|| ProductsAtMost {
            tflop_s,
            dtype: precision.product().as_str(),
            source,
            what,
            unsteady,
        })
    }
}

fn calibrated(rates: &DeviceRates, rate: MeasuredRate) -> String {
    let DeviceRates { device, card, threads, measured_at, torch, .. } = rates;
    let card = card.as_deref().map(|card| format!(" ({card})")).unwrap_or_default();
    let threads = threads.map(|threads| format!(", threads {threads}")).unwrap_or_default();
    let doubt = rate.doubt().map(|doubt| format!("; {doubt}")).unwrap_or_default();
    format!("{device}{card}{threads}, libtorch {torch}, {}{doubt}", measured_at.format("%Y-%m-%d"))
}
