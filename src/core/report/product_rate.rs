//! How fast a step gets its matrix products done, held against what the device can do at most.

use serde::Serialize;
use serde_json::{Map, Value};

use super::step_times::StepSummary;
use crate::record::ReferenceRates;
use crate::theory::{ProductsAtMost, Shape};

/// The matrix products of a step: how many there are in theory, and what the measured step makes of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProductRate {
    /// Theory: of forward and backward, without recomputation.
    pub theory_flops_per_step: f64,
    /// The type of the products' factors, `f32` or `bf16`.
    pub dtype: &'static str,
    /// Theory's FLOPs over the measured median step, in TFLOP/s: of the whole step, whatever else it does.
    pub tflop_s: f64,
    /// Null where nobody has said what the device can do.
    pub reference: Option<ProductReference>,
}

/// What the device can do at most, and who says so.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProductReference {
    /// `calibrated` (measured on this device) or `datasheet` (its maker's figure, dense).
    pub source: &'static str,
    pub tflop_s: f64,
    /// `tflop_s` of the step, in percent of this. Of the products' rate alone it would be more.
    pub share_pct: f64,
    /// In words: when it was measured and with what, and whether its rounds scattered; or the document.
    pub what: String,
    /// Whether it was measured while the machine was so unsteady that it says little.
    pub unsteady: bool,
}

/// Of a run with this configuration whose measured step was this; `None` where theory knows
/// no FLOPs (it is no toy model, or has dropout), and where no step was measured, or the host's part of it alone.
///
/// rate = FLOPs / step time; share = 100 · rate / reference. With a datasheet's peak as reference this is the model
/// FLOPs utilisation of Chowdhery et al. 2022.
pub fn product_rate(
    config: &Map<String, Value>,
    rates: Option<&ReferenceRates>,
    step: &StepSummary,
) -> Option<ProductRate> {
    let shape = Shape::of(config)?;
    step.check_times().ok()?;
    let seconds = step.median_ms.filter(|ms| *ms > 0.0)? / 1e3;
    let flops = shape.product_flops();
    let tflop_s = flops / seconds / 1e12;
    let at_most = rates.and_then(|rates| ProductsAtMost::of(rates, shape.precision));
    let reference = at_most.map(|at_most| {
        let ProductsAtMost { tflop_s: most, source, what, unsteady, .. } = at_most;
        ProductReference { source, tflop_s: most, share_pct: 100.0 * tflop_s / most, what, unsteady }
    });
    let dtype = shape.precision.product().as_str();
    Some(ProductRate { theory_flops_per_step: flops, dtype, tflop_s, reference })
}
