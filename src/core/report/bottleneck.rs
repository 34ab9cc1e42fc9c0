//! What holds a step on a GPU up, held against what the run's device was measured to do.

use serde::Serialize;
use serde_json::{Map, Value};

use super::reference::{Reference, reference};
use super::resources::Resources;
use crate::record::ReferenceRates;
use crate::rules::{Attribution, BottleneckInput, Thresholds, attribute_bottleneck};
use crate::theory::Shape;

/// Rule `attribute-bottleneck` on the median step, and the two rates that it was given.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BottleneckFinding {
    #[serde(flatten)]
    pub rule: Attribution,
    pub reference: Reference,
}

/// By the rates that the run was recorded with: its device's calibration, else its datasheet. `Err` says what is missing.
pub fn bottleneck(
    resources: &Resources,
    config: &Map<String, Value>,
    rates: Option<&ReferenceRates>,
) -> Result<BottleneckFinding, String> {
    // First: what no calibration would help.
    let record = resources.record()?;
    let rates = rates.ok_or(
        "the device was not calibrated before the run, and has no datasheet here; `stepledger calibrate` measures it",
    )?;
    let shape = Shape::of(config).ok_or("the type of its products is known for the toy models only")?;
    let reference =
        reference(rates, shape.precision).ok_or("the datasheet has no rate for products in this type")?;
    let input = BottleneckInput {
        record,
        reference_tflops: reference.tflop_s,
        reference_dram_gbps: reference.gb_s,
        efficiency_screen: Thresholds::default().efficiency_screen,
    };
    let rule = attribute_bottleneck(&input).map_err(|error| error.to_string())?;
    Ok(BottleneckFinding { rule, reference })
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use serde_json::json;

    use super::*;
    use crate::record::{DeviceRates, MeasuredRate};
    use crate::rules::Bound;
    use crate::theory::datasheet;

    /// 8 TFLOP/s at 80 FLOP per byte.
    const ALL: Resources = Resources {
        flops: Some(4e10),
        dram_bytes: Some(5e8),
        kernel_ms: Some(5.0),
        transfer_ms: Some(1.0),
        sync_ms: Some(0.0),
        launch_ms: Some(0.5),
    };

    fn gpt(dtype: &str) -> Map<String, Value> {
        let config = json!({"model": "gpt", "layers": 4, "width": 128, "heads": 4, "seq": 64, "batch": 8,
            "attention": "sdpa", "dtype": dtype});
        config.as_object().unwrap().clone()
    }

    fn calibrated() -> ReferenceRates {
        let rate = |median| MeasuredRate { median, q1: median, q3: median, rounds: 5 };
        ReferenceRates::Calibrated(DeviceRates {
            device: "cuda:0".to_owned(),
            card: Some("Tesla V100-SXM2-16GB".to_owned()),
            threads: None,
            measured_at: DateTime::UNIX_EPOCH,
            stepledger: "0.1.0".to_owned(),
            torch: "2.11.0".to_owned(),
            array_bytes: None,
            caches_bytes: None,
            copy_gb_s: rate(790.0),
            triad_gb_s: rate(800.0),
            matmul_f32_tflop_s: rate(10.0),
            matmul_bf16_tflop_s: rate(100.0),
            matmul_f32_rows: Some(8192),
            matmul_bf16_rows: Some(8192),
            fma_f32_tflop_s: Some(rate(14.0)),
        })
    }

    #[test]
    fn the_runs_own_calibration_is_what_the_rule_is_given() {
        let found = bottleneck(&ALL, &gpt("f32"), Some(&calibrated())).unwrap();
        assert_eq!(found.reference.source, "calibrated");
        // Balance 10 TFLOP/s · 1000 / 800 GB/s = 12.5 FLOP/byte; 8 of 10 TFLOP/s.
        assert_eq!(found.rule.machine_balance_flop_per_byte, 12.5);
        assert_eq!((found.rule.roofline_bound, found.rule.reference_efficiency), (Bound::Compute, 0.8));
        let half = bottleneck(&ALL, &gpt("bf16"), Some(&calibrated())).unwrap();
        assert_eq!((half.rule.roofline_bound, half.rule.roofline_limit_tflops), (Bound::Memory, 64.0));
    }

    #[test]
    fn a_datasheet_stands_in_and_is_named_as_one() {
        let sheet = ReferenceRates::Datasheet(datasheet("Tesla V100-SXM2-16GB").unwrap().clone());
        let found = bottleneck(&ALL, &gpt("f32"), Some(&sheet)).unwrap();
        assert_eq!(
            (found.reference.source, found.reference.tflop_s, found.reference.gb_s),
            ("datasheet", 15.7, 900.0)
        );
        let error = bottleneck(&ALL, &gpt("bf16"), Some(&sheet)).unwrap_err();
        assert!(error.contains("no rate for products in this type"), "{error}");
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = bottleneck(&ALL, &gpt("f32"), None).unwrap_err();
        assert!(error.contains("stepledger calibrate"), "{error}");
        let unmeasured = Resources { dram_bytes: None, ..ALL };
        let error = bottleneck(&unmeasured, &gpt("f32"), Some(&calibrated())).unwrap_err();
        assert!(error.starts_with("not measured: dram_bytes "), "{error}");
        // Of a run that was not calibrated either, this is what no calibration would help.
        let neither = bottleneck(&unmeasured, &gpt("f32"), None).unwrap_err();
        assert_eq!(neither, error);
        assert!(bottleneck(&ALL, &Map::new(), Some(&calibrated())).unwrap_err().contains("toy models"));
    }
}
