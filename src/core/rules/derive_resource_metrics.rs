//! Rule 5: what a stage's work and time say about the hardware it used.

use serde::Serialize;

use super::RuleError;
use super::error::finite;
use super::field::{Field, Kind, Range};
use super::object::Object;
use super::registry::Spec;
use super::round::plain;

/// The one way of measuring for which the times may be added up.
pub const TIME_MODEL: &str = "nonoverlapping_exposed_intervals";

const FLOPS: Field = Field::new("flops", "FLOP", Kind::Number(Range::Above(0.0)));
const DRAM_BYTES: Field = Field::new("dram_bytes", "bytes", Kind::Number(Range::Above(0.0)));
const KERNEL_MS: Field = Field::new("kernel_ms", "ms", Kind::Number(Range::Above(0.0)));
const TRANSFER_MS: Field = Field::new("transfer_ms", "ms", Kind::Number(Range::AtLeast(0.0)));
const SYNC_MS: Field = Field::new("sync_ms", "ms", Kind::Number(Range::AtLeast(0.0)));
const LAUNCH_MS: Field = Field::new("launch_ms", "ms", Kind::Number(Range::AtLeast(0.0)));
const TIMES_ARE: Field = Field::new("time_model", "", Kind::Word(&[TIME_MODEL]));

/// The object under the key `record`, here and in rule `attribute-bottleneck`.
pub(super) const RECORD: Field = Field::new(
    "record",
    "",
    Kind::Object(&[FLOPS, DRAM_BYTES, KERNEL_MS, TRANSFER_MS, SYNC_MS, LAUNCH_MS, TIMES_ARE]),
);

pub(super) const SPEC: Spec = Spec {
    summary: "Arithmetic intensity, achieved compute and bandwidth, and the share of each exposed time",
    inputs: &[RECORD],
    thresholds: &[],
    source: "the quantities of the roofline model: Williams, Waterman and Patterson, CACM 52(4), 2009",
};

/// The work and the exposed times of one stage. The times do not overlap: each is the part of the stage in
/// which nothing but that went on ([`TIME_MODEL`]).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ResourceRecord {
    pub flops: f64,
    /// Moved to and from the device's memory.
    pub dram_bytes: f64,
    pub kernel_ms: f64,
    pub transfer_ms: f64,
    pub sync_ms: f64,
    pub launch_ms: f64,
}

/// What a [`ResourceRecord`] says about the hardware.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ResourceMetrics {
    pub arithmetic_intensity_flop_per_byte: f64,
    pub achieved_tflops: f64,
    pub achieved_dram_gbps: f64,
    #[serde(serialize_with = "plain")]
    pub total_ms: f64,
    pub exposed_share: ExposedShare,
}

/// Shares of the total time, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ExposedShare {
    pub transfer: f64,
    pub sync: f64,
    pub launch: f64,
}

/// Derives intensity, achieved rates and exposed shares.
///
/// - **Formula:** intensity = FLOP / bytes; TFLOP/s = FLOP / `kernel_ms` / 10⁹; GB/s = bytes / `kernel_ms` /
///   10⁶; total = kernel + transfer + sync + launch; a share = its time / total.
/// - **Units:** FLOP, bytes and milliseconds in; 10¹² FLOP/s and 10⁹ bytes/s out.
/// - **Assumption:** the times do not overlap; overlapping ones would be counted twice.
/// - **Source:** Williams, Waterman and Patterson, *Roofline*, CACM 52(4), 2009.
/// - **Errors:** one of the first three not above 0, another negative, anything not finite, a result beyond
///   all numbers; in JSON also another `time_model`.
pub fn derive_resource_metrics(record: &ResourceRecord) -> Result<ResourceMetrics, RuleError> {
    record.check()?;
    let total_ms =
        finite("total_ms", record.kernel_ms + record.transfer_ms + record.sync_ms + record.launch_ms)?;
    Ok(ResourceMetrics {
        arithmetic_intensity_flop_per_byte: finite(
            "arithmetic_intensity_flop_per_byte",
            record.flops / record.dram_bytes,
        )?,
        achieved_tflops: finite("achieved_tflops", record.flops / record.kernel_ms / 1e9)?,
        achieved_dram_gbps: finite("achieved_dram_gbps", record.dram_bytes / record.kernel_ms / 1e6)?,
        total_ms,
        exposed_share: ExposedShare {
            transfer: record.transfer_ms / total_ms,
            sync: record.sync_ms / total_ms,
            launch: record.launch_ms / total_ms,
        },
    })
}

impl ResourceRecord {
    fn check(&self) -> Result<(), RuleError> {
        let fields = [
            (FLOPS, self.flops),
            (DRAM_BYTES, self.dram_bytes),
            (KERNEL_MS, self.kernel_ms),
            (TRANSFER_MS, self.transfer_ms),
            (SYNC_MS, self.sync_ms),
            (LAUNCH_MS, self.launch_ms),
        ];
        for (field, value) in fields {
            field.check(value).map_err(|error| error.within(RECORD.name))?;
        }
        Ok(())
    }

    pub(super) fn read(mut object: Object) -> Result<Self, RuleError> {
        object.take::<String>(TIMES_ARE.name)?;
        Ok(Self {
            flops: object.take("flops")?,
            dram_bytes: object.take("dram_bytes")?,
            kernel_ms: object.take("kernel_ms")?,
            transfer_ms: object.take("transfer_ms")?,
            sync_ms: object.take("sync_ms")?,
            launch_ms: object.take("launch_ms")?,
        })
    }
}

pub(super) fn apply(mut input: Object) -> Result<ResourceMetrics, RuleError> {
    derive_resource_metrics(&input.take_object(RECORD.name, ResourceRecord::read)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: ResourceRecord = ResourceRecord {
        flops: 4e10,
        dram_bytes: 1e6,
        kernel_ms: 5.0,
        transfer_ms: 3.0,
        sync_ms: 2.0,
        launch_ms: 0.0,
    };

    #[test]
    fn rates_have_their_units() {
        let metrics = derive_resource_metrics(&RECORD).unwrap();
        assert_eq!((metrics.achieved_tflops, metrics.achieved_dram_gbps), (8.0, 0.2));
        assert_eq!((metrics.total_ms, metrics.exposed_share.transfer), (10.0, 0.3));
    }

    #[test]
    fn errors_name_the_input_or_the_result() {
        let field = |record| derive_resource_metrics(&record).unwrap_err().field;
        assert_eq!(field(ResourceRecord { kernel_ms: 0.0, ..RECORD }), "record.kernel_ms");
        assert_eq!(field(ResourceRecord { sync_ms: f64::NAN, ..RECORD }), "record.sync_ms");
        assert_eq!(field(ResourceRecord { sync_ms: f64::MAX, launch_ms: f64::MAX, ..RECORD }), "total_ms");
        let intense = ResourceRecord { flops: 1e300, dram_bytes: 1e-300, ..RECORD };
        assert_eq!(field(intense), "arithmetic_intensity_flop_per_byte");
    }
}
