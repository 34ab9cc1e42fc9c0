//! Rule 6: what holds a stage up.

use serde::{Serialize, Serializer};

use super::RuleError;
use super::derive_resource_metrics::{RECORD, ResourceMetrics, ResourceRecord, derive_resource_metrics};
use super::error::finite;
use super::field::{Field, Kind, Range};
use super::object::Object;
use super::registry::Spec;
use super::round::Plain;
use super::thresholds::{self, SCREEN, Threshold, Thresholds};
use crate::record::words;

const REFERENCE_TFLOPS: Field = Field::new("reference_tflops", "TFLOP/s", Kind::Number(Range::Above(0.0)));
const REFERENCE_DRAM_GBPS: Field = Field::new("reference_dram_gbps", "GB/s", Kind::Number(Range::Above(0.0)));

pub(super) const SPEC: Spec = Spec {
    summary: "The roofline's limit for a stage, how near it came, and the likeliest bottleneck",
    inputs: &[RECORD, REFERENCE_TFLOPS, REFERENCE_DRAM_GBPS, SCREEN],
    thresholds: &[
        Threshold::new("efficiency_screen", thresholds::EFFICIENCY_SCREEN, ""),
        Threshold::new("recheck_efficiency", thresholds::RECHECK_EFFICIENCY, "").fixed(),
    ],
    source: "Williams, Waterman and Patterson, Roofline, CACM 52(4), 2009; the two thresholds are teaching heuristics",
};

/// A stage and the machine it ran on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BottleneckInput {
    pub record: ResourceRecord,
    /// What the machine reaches at best, measured rather than taken from its data sheet.
    pub reference_tflops: f64,
    pub reference_dram_gbps: f64,
    /// See [`EFFICIENCY_SCREEN`](thresholds::EFFICIENCY_SCREEN).
    pub efficiency_screen: f64,
}

/// What a machine reaches at best, for inputs that do not say it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct References {
    pub tflops: f64,
    pub dram_gbps: f64,
}

words! {
    /// Which of the roofline's two sides limits a stage.
    Bound, "bound" {
        Memory = "memory",
        Compute = "compute",
    }
}

words! {
    /// Whether the references can be right.
    Consistency, "reference consistency" {
        RecheckReference = "recheck_reference",
        WithinScreen = "within_screen",
    }
}

words! {
    /// What a stage may be held up by.
    Hypothesis, "hypothesis" {
        KernelMemory = "kernel_memory",
        KernelCompute = "kernel_compute",
        /// Far below either limit: too little parallelism, poor occupancy.
        KernelUnderutilized = "kernel_underutilized",
        Transfer = "transfer",
        Synchronization = "synchronization",
        Launch = "launch",
        /// Faster than the machine is said to be: nothing follows until the references are right.
        RecheckReference = "recheck_reference",
    }
}

/// Where a stage's time goes, and the likeliest reason.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Attribution {
    pub machine_balance_flop_per_byte: f64,
    pub roofline_bound: Bound,
    pub roofline_limit_tflops: f64,
    pub reference_efficiency: f64,
    /// The screen that was used.
    pub efficiency_screen: f64,
    pub reference_consistency: Consistency,
    /// The kernel's time under its hypothesis, then transfer, synchronization and launch.
    #[serde(serialize_with = "as_map")]
    pub exposed_ms: [(Hypothesis, f64); 4],
    pub primary_hypothesis: Hypothesis,
}

fn as_map<S: Serializer>(exposed: &[(Hypothesis, f64); 4], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(exposed.map(|(hypothesis, ms)| (hypothesis, Plain(ms))))
}

/// Attributes a stage's time to its likeliest bottleneck.
///
/// - **Formula:** balance = reference TFLOP/s · 1000 / reference GB/s; bound by memory below it, else by
///   compute; limit = min(reference TFLOP/s, intensity · reference GB/s / 1000); efficiency = achieved /
///   limit. The kernel's hypothesis is its bound where the efficiency reaches the screen, else
///   `kernel_underutilized`. The primary hypothesis has the largest exposed time, the first on a tie;
///   `recheck_reference` overrides it above an efficiency of 1.05.
/// - **Units:** 10¹² FLOP/s, 10⁹ bytes/s, FLOP per byte, milliseconds.
/// - **Assumption:** those of [`derive_resource_metrics`], and references reached on the same machine.
/// - **Source:** Williams, Waterman and Patterson, *Roofline*, CACM 52(4), 2009; the screen and 1.05 are
///   teaching heuristics.
/// - **Abstains** as `recheck_reference`. **Errors:** a bad record, a reference not above 0, a screen outside
///   (0, 1], a result beyond all numbers.
pub fn attribute_bottleneck(input: &BottleneckInput) -> Result<Attribution, RuleError> {
    let metrics = derive_resource_metrics(&input.record)?;
    let tflops = REFERENCE_TFLOPS.check(input.reference_tflops)?;
    let gbps = REFERENCE_DRAM_GBPS.check(input.reference_dram_gbps)?;
    let efficiency_screen = SCREEN.check(input.efficiency_screen)?;
    let balance = finite("machine_balance_flop_per_byte", tflops * 1000.0 / gbps)?;
    let limit = limit(&metrics, tflops, gbps)?;
    let efficiency = finite("reference_efficiency", metrics.achieved_tflops / limit)?;
    let bound =
        if metrics.arithmetic_intensity_flop_per_byte < balance { Bound::Memory } else { Bound::Compute };
    let exposed_ms = exposed(&input.record, kernel_hypothesis(bound, efficiency, efficiency_screen));
    let consistency = consistency(efficiency);
    Ok(Attribution {
        machine_balance_flop_per_byte: balance,
        roofline_bound: bound,
        roofline_limit_tflops: limit,
        reference_efficiency: efficiency,
        efficiency_screen,
        reference_consistency: consistency,
        exposed_ms,
        primary_hypothesis: match consistency {
            Consistency::RecheckReference => Hypothesis::RecheckReference,
            Consistency::WithinScreen => largest(&exposed_ms),
        },
    })
}

fn limit(metrics: &ResourceMetrics, tflops: f64, gbps: f64) -> Result<f64, RuleError> {
    // An infinite memory roof is no error: the compute roof is the lower one then.
    finite("roofline_limit_tflops", tflops.min(metrics.arithmetic_intensity_flop_per_byte * gbps / 1000.0))
}

fn consistency(efficiency: f64) -> Consistency {
    if efficiency > thresholds::RECHECK_EFFICIENCY {
        Consistency::RecheckReference
    } else {
        Consistency::WithinScreen
    }
}

fn kernel_hypothesis(bound: Bound, efficiency: f64, screen: f64) -> Hypothesis {
    match bound {
        _ if efficiency < screen => Hypothesis::KernelUnderutilized,
        Bound::Memory => Hypothesis::KernelMemory,
        Bound::Compute => Hypothesis::KernelCompute,
    }
}

fn exposed(record: &ResourceRecord, kernel: Hypothesis) -> [(Hypothesis, f64); 4] {
    [
        (kernel, record.kernel_ms),
        (Hypothesis::Transfer, record.transfer_ms),
        (Hypothesis::Synchronization, record.sync_ms),
        (Hypothesis::Launch, record.launch_ms),
    ]
}

fn largest(exposed: &[(Hypothesis, f64); 4]) -> Hypothesis {
    let [first, rest @ ..] = exposed;
    rest.iter().fold(*first, |largest, &next| if next.1 > largest.1 { next } else { largest }).0
}

pub(super) fn apply(
    mut input: Object,
    thresholds: &Thresholds,
    known: Option<References>,
) -> Result<Attribution, RuleError> {
    let mut reference = |name, known: Option<f64>| match known {
        Some(known) => Ok(input.take_optional(name).unwrap_or(known)),
        None => input.take(name),
    };
    let reference_tflops = reference(REFERENCE_TFLOPS.name, known.map(|known| known.tflops));
    let reference_dram_gbps = reference(REFERENCE_DRAM_GBPS.name, known.map(|known| known.dram_gbps));
    attribute_bottleneck(&BottleneckInput {
        record: input.take_object(RECORD.name, ResourceRecord::read)?,
        reference_tflops: reference_tflops?,
        reference_dram_gbps: reference_dram_gbps?,
        efficiency_screen: input.take_optional(SCREEN.name).unwrap_or(thresholds.efficiency_screen),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Achieves 8 TFLOP/s at 40 000 FLOP per byte.
    const INPUT: BottleneckInput = BottleneckInput {
        record: ResourceRecord {
            flops: 4e10,
            dram_bytes: 1e6,
            kernel_ms: 5.0,
            transfer_ms: 5.0,
            sync_ms: 0.0,
            launch_ms: 0.0,
        },
        reference_tflops: 10.0,
        reference_dram_gbps: 1000.0,
        efficiency_screen: 0.8,
    };

    #[test]
    fn the_screen_and_the_tie_belong_to_the_kernel() {
        let attribution = attribute_bottleneck(&INPUT).unwrap();
        assert_eq!(attribution.reference_efficiency, 0.8);
        assert_eq!(attribution.primary_hypothesis, Hypothesis::KernelCompute);
        let stricter = attribute_bottleneck(&BottleneckInput { efficiency_screen: 0.81, ..INPUT }).unwrap();
        assert_eq!(stricter.primary_hypothesis, Hypothesis::KernelUnderutilized);
    }

    #[test]
    fn a_stage_faster_than_its_machine_asks_for_the_references() {
        let attribution = attribute_bottleneck(&BottleneckInput { reference_tflops: 7.0, ..INPUT }).unwrap();
        assert_eq!(attribution.reference_consistency, Consistency::RecheckReference);
        assert_eq!(attribution.primary_hypothesis, Hypothesis::RecheckReference);
    }

    #[test]
    fn known_references_stand_in_for_those_that_the_input_leaves_out() {
        const RECORD: &str = r#""record": {"flops": 4e10, "dram_bytes": 1e6, "kernel_ms": 5, "transfer_ms": 5,
            "sync_ms": 0, "launch_ms": 0, "time_model": "nonoverlapping_exposed_intervals"}"#;
        let apply = |text: &str, known| {
            let object = super::super::input::read(text, SPEC.inputs).unwrap();
            super::apply(object, &Thresholds::default(), known)
        };
        let known = Some(References { tflops: 10.0, dram_gbps: 1000.0 });
        let left_out = format!("{{{RECORD}}}");
        assert_eq!(apply(&left_out, known).unwrap().reference_efficiency, 0.8);
        assert_eq!(apply(&left_out, None).unwrap_err().field, "reference_tflops");
        let given = format!(r#"{{{RECORD}, "reference_tflops": 16}}"#);
        assert_eq!(apply(&given, known).unwrap().reference_efficiency, 0.5);
        assert_eq!(apply(&given, None).unwrap_err().field, "reference_dram_gbps");
    }

    #[test]
    fn references_and_screen_have_ranges() {
        let field = |input| attribute_bottleneck(&input).unwrap_err().field;
        assert_eq!(field(BottleneckInput { reference_tflops: 0.0, ..INPUT }), "reference_tflops");
        assert_eq!(
            field(BottleneckInput { reference_dram_gbps: f64::INFINITY, ..INPUT }),
            "reference_dram_gbps"
        );
        assert_eq!(field(BottleneckInput { efficiency_screen: 1.1, ..INPUT }), "efficiency_screen");
        let lopsided = BottleneckInput { reference_tflops: 1e300, reference_dram_gbps: 1e-300, ..INPUT };
        assert_eq!(field(lopsided), "machine_balance_flop_per_byte");
    }
}
