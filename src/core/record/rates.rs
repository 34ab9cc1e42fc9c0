//! What a device can do at most: as `stepledger calibrate` measured it, or as its maker says.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::instant;

/// A rate over several rounds, in the unit of the field that holds it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MeasuredRate {
    pub median: f64,
    /// The middle half of the rounds lies between these.
    pub q1: f64,
    pub q3: f64,
    pub rounds: usize,
}

/// From so many times on that the upper end of the middle half is its lower end, a median says little.
const UNSTEADY: f64 = 2.0;

impl MeasuredRate {
    /// How far the middle half of the rounds lies apart: q3 / q1.
    pub fn spread(&self) -> f64 {
        self.q3 / self.q1
    }

    /// Whether the rounds scatter so widely that the median says little of what the device can do: q3 ≥ 2·q1, and where
    /// that cannot be told.
    pub fn is_unsteady(&self) -> bool {
        let steady = self.spread() < UNSTEADY;
        !steady
    }

    /// What is told beside such a rate.
    pub fn doubt(&self) -> Option<String> {
        self.is_unsteady().then(|| {
            format!(
                "unsteady, the middle half of its rounds lies a factor of {:.1} apart: calibrate again",
                self.spread()
            )
        })
    }
}

/// What one device of a machine was measured to do. GB are 10⁹ bytes, TFLOP 10¹² operations, of which a
/// multiplication with an addition counts as two.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceRates {
    /// `cpu`, `cuda:0`, …
    pub device: String,
    /// The GPU's name; `None` for a CPU, which the machine names.
    pub card: Option<String>,
    /// The threads that libtorch computed with; `None` for a GPU.
    pub threads: Option<i64>,
    #[serde(with = "instant")]
    pub measured_at: DateTime<Utc>,
    pub stepledger: String,
    pub torch: String,
    /// Of each array that memory was measured with, and of all last-level caches together; the caches are `None` also where
    /// the system lists none of a third level, so that the last one is not known. Both are for a GPU, and if it was measured
    /// before this was kept.
    #[serde(default)]
    pub array_bytes: Option<u64>,
    #[serde(default)]
    pub caches_bytes: Option<u64>,
    /// STREAM's copy: a = b, 2 arrays of bytes read or written.
    pub copy_gb_s: MeasuredRate,
    /// STREAM's triad: a = b + s·c, 3 arrays.
    pub triad_gb_s: MeasuredRate,
    /// A product of square matrices, 2n³ operations.
    pub matmul_f32_tflop_s: MeasuredRate,
    pub matmul_bf16_tflop_s: MeasuredRate,
    /// n of these products: small ones are slower. `None` if it was measured before this was kept.
    #[serde(default)]
    pub matmul_f32_rows: Option<i64>,
    #[serde(default)]
    pub matmul_bf16_rows: Option<i64>,
    /// Fused multiply-adds alone; `None` for a CPU.
    pub fma_f32_tflop_s: Option<MeasuredRate>,
}

/// How many times as large as the last-level caches together an array must be so that they hold little of it (STREAM's
/// own rule, McCalpin 1995).
const ARRAY_TIMES_CACHES: u64 = 4;
/// What an array has where the caches are not known: little of it fits into those of most processors.
const BEYOND_UNKNOWN_CACHES_BYTES: u64 = 1 << 30;
/// The largest arrays that memory is measured with.
pub const MOST_ARRAY_BYTES: u64 = 4 << 30;
/// An array takes this part of the free memory at most: three of them take half of it.
pub const ARRAY_PART_OF_MEMORY: u64 = 6;

/// Bytes from which on an array lies beyond caches of so many bytes together.
pub fn beyond_caches_bytes(caches: Option<u64>) -> u64 {
    caches.map_or(BEYOND_UNKNOWN_CACHES_BYTES, |bytes| bytes.saturating_mul(ARRAY_TIMES_CACHES))
}

impl DeviceRates {
    /// Whether the caches may have served what was measured as the memory's rate: the arrays were smaller than STREAM's
    /// rule has them, or than 1 GiB where the caches are not known. Of arrays that are not known it is not said.
    pub fn may_be_of_caches(&self) -> bool {
        self.array_bytes.is_some_and(|bytes| bytes < beyond_caches_bytes(self.caches_bytes))
    }
}

/// What a card's maker says of it: dense products, no sparsity. `None` where the document does not say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Datasheet {
    pub card: String,
    /// The names that the driver gives such cards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    pub memory_gb: f64,
    pub bandwidth_gb_s: f64,
    /// f32 without tensor cores, which is what libtorch's f32 products use by default.
    #[serde(default)]
    pub f32_tflop_s: Option<f64>,
    #[serde(default)]
    pub tf32_tflop_s: Option<f64>,
    #[serde(default)]
    pub bf16_tflop_s: Option<f64>,
    #[serde(default)]
    pub fp16_tflop_s: Option<f64>,
    /// The document.
    pub source: String,
}

/// What a run's rates are held against, and who says so: measured and printed numbers are never mixed up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "a run has one")]
pub enum ReferenceRates {
    Calibrated(DeviceRates),
    Datasheet(Datasheet),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_whose_middle_half_spans_a_factor_of_two_is_unsteady() {
        let of = |q1, q3| MeasuredRate { median: 1.0, q1, q3, rounds: 5 };
        assert!(!of(1.0, 1.99).is_unsteady() && of(1.0, 2.0).is_unsteady());
        assert!(of(0.0, 0.0).is_unsteady() && of(f64::NAN, 1.0).is_unsteady(), "it cannot be told");
        assert_eq!(of(1.0, 1.1).doubt(), None);
        assert!(of(3.6, 163.5).doubt().is_some_and(|doubt| doubt.contains("factor of 45.4 apart")));
    }
}
