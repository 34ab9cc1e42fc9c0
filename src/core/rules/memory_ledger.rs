//! Rule 3: the memory a training step needs in theory.

use serde::Serialize;

use super::RuleError;
use super::error::finite;
use super::field::{Field, Kind, Range};
use super::object::Object;
use super::registry::Spec;
use super::round::{plain, round};
use crate::record::words;

const BYTES_PER_MIB: f64 = 1_048_576.0;

const PARAM_COUNT: Field = Field::new("param_count", "parameters", Kind::Whole(Range::AtLeast(1.0)));
const PARAM_BYTES: Field =
    Field::new("param_bytes", "bytes per parameter", Kind::Number(Range::AtLeast(0.0)));
const GRAD_BYTES: Field = Field::new("grad_bytes", "bytes per parameter", Kind::Number(Range::AtLeast(0.0)));
const ADAM_STATE_BYTES: Field =
    Field::new("adam_state_bytes", "bytes per parameter", Kind::Number(Range::AtLeast(0.0)));
const ACTIVATION_BYTES: Field = Field::new("activation_bytes", "bytes", Kind::Whole(Range::AtLeast(0.0)));
const TEMPORARY_BYTES: Field =
    Field::new("temporary_bytes", "bytes", Kind::Whole(Range::AtLeast(0.0))).or("0");

pub(super) const SPEC: Spec = Spec {
    summary: "The memory of a training step in theory, by component, and which one dominates",
    inputs: &[PARAM_COUNT, PARAM_BYTES, GRAD_BYTES, ADAM_STATE_BYTES, ACTIVATION_BYTES, TEMPORARY_BYTES],
    thresholds: &[],
    source: "the usual account of model state, as in Rajbhandari et al., ZeRO (2020), section 3",
};

/// What the ledger is reckoned from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LedgerInput {
    pub param_count: i64,
    /// Bytes per parameter: 4 for float32, 0.5 for 4-bit weights.
    pub param_bytes: f64,
    /// Bytes per parameter.
    pub grad_bytes: f64,
    /// Bytes per parameter: 8 for two float32 moments.
    pub adam_state_bytes: f64,
    /// In all.
    pub activation_bytes: i64,
    /// In all.
    pub temporary_bytes: i64,
}

words! {
    /// A component of the ledger.
    Component, "component" {
        Parameters = "parameters",
        Grads = "grads",
        AdamState = "adam_state",
        Activation = "activation",
        Temporary = "temporary",
    }
}

words! {
    /// What to look at when a component dominates.
    MemoryCheck, "memory check" {
        CompareBatchOrCheckpoint = "compare_batch_or_checkpoint",
        InspectOptimizerStateOrSharding = "inspect_optimizer_state_or_sharding",
        InspectDtypeOrModelState = "inspect_dtype_or_model_state",
    }
}

/// The ledger. `_mb` are MiB to two decimals; `_bytes` are exact (up to 2⁵³, 8 PiB).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MemoryLedger {
    pub parameters_mb: f64,
    pub grads_mb: f64,
    pub adam_state_mb: f64,
    pub activation_mb: f64,
    pub temporary_mb: f64,
    /// Of the exact total; the rounded components may add up to a little more or less.
    pub total_mb: f64,
    #[serde(serialize_with = "plain")]
    pub parameters_bytes: f64,
    #[serde(serialize_with = "plain")]
    pub grads_bytes: f64,
    #[serde(serialize_with = "plain")]
    pub adam_state_bytes: f64,
    #[serde(serialize_with = "plain")]
    pub activation_bytes: f64,
    #[serde(serialize_with = "plain")]
    pub temporary_bytes: f64,
    #[serde(serialize_with = "plain")]
    pub total_bytes: f64,
    pub shares_pct: SharesPct,
    pub dominant: Component,
    pub dominant_share_pct: f64,
    pub recommended_check: MemoryCheck,
}

/// Each component's share of the total, to one decimal.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SharesPct {
    pub parameters_mb: f64,
    pub grads_mb: f64,
    pub adam_state_mb: f64,
    pub activation_mb: f64,
    pub temporary_mb: f64,
}

/// Reckons the memory of a training step from its parameters and activations.
///
/// - **Formula:** a component of model state is `param_count` · its bytes per parameter; activations and
///   temporaries are as given; the total is their sum. Shares are of the rounded MiB (so that they agree
///   with what is shown), or of the bytes where the total rounds to zero. `dominant` is the largest by
///   bytes, the first on a tie.
/// - **Units:** bytes in; MiB (2²⁰ bytes) and bytes out.
/// - **Assumption:** everything is alive at once, nothing is sharded, and the allocator wastes nothing.
/// - **Source:** the usual account of model state (Rajbhandari et al., *ZeRO*, 2020, section 3).
/// - **Errors:** `param_count` < 1, a negative or non-finite number, a ledger of zero bytes (it has no
///   shares), a total beyond all numbers.
pub fn memory_ledger(input: &LedgerInput) -> Result<MemoryLedger, RuleError> {
    let bytes = component_bytes(input)?;
    let total_bytes = finite("total_bytes", bytes.iter().sum())?;
    if total_bytes == 0.0 {
        return Err(RuleError::new("total_bytes", "is 0, so that there are no shares; it must be above 0"));
    }
    let mb = bytes.map(mib);
    let total_mb = mib(total_bytes);
    let shares = if total_mb == 0.0 { shares(bytes, total_bytes) } else { shares(mb, total_mb) };
    let (dominant, dominant_share_pct) = dominant(bytes, shares);
    let [parameters_mb, grads_mb, adam_state_mb, activation_mb, temporary_mb] = mb;
    let [parameters_bytes, grads_bytes, adam_state_bytes, activation_bytes, temporary_bytes] = bytes;
    Ok(MemoryLedger {
        parameters_mb,
        grads_mb,
        adam_state_mb,
        activation_mb,
        temporary_mb,
        total_mb,
        parameters_bytes,
        grads_bytes,
        adam_state_bytes,
        activation_bytes,
        temporary_bytes,
        total_bytes,
        shares_pct: SharesPct::of(shares),
        dominant,
        dominant_share_pct,
        recommended_check: recommended_check(dominant),
    })
}

/// The bytes of each component, in the order of [`Component::ALL`].
fn component_bytes(input: &LedgerInput) -> Result<[f64; 5], RuleError> {
    let count = PARAM_COUNT.check(input.param_count as f64)?;
    Ok([
        count * PARAM_BYTES.check(input.param_bytes)?,
        count * GRAD_BYTES.check(input.grad_bytes)?,
        count * ADAM_STATE_BYTES.check(input.adam_state_bytes)?,
        ACTIVATION_BYTES.check(input.activation_bytes as f64)?,
        TEMPORARY_BYTES.check(input.temporary_bytes as f64)?,
    ])
}

fn mib(bytes: f64) -> f64 {
    round(bytes / BYTES_PER_MIB, 2)
}

fn shares(parts: [f64; 5], total: f64) -> [f64; 5] {
    parts.map(|part| round(part / total * 100.0, 1))
}

fn dominant(bytes: [f64; 5], shares: [f64; 5]) -> (Component, f64) {
    let mut largest = 0;
    for at in 1..bytes.len() {
        if bytes[at] > bytes[largest] {
            largest = at;
        }
    }
    (Component::ALL[largest], shares[largest])
}

const fn recommended_check(dominant: Component) -> MemoryCheck {
    match dominant {
        Component::Activation => MemoryCheck::CompareBatchOrCheckpoint,
        Component::AdamState => MemoryCheck::InspectOptimizerStateOrSharding,
        Component::Parameters | Component::Grads | Component::Temporary => {
            MemoryCheck::InspectDtypeOrModelState
        }
    }
}

impl SharesPct {
    fn of([parameters_mb, grads_mb, adam_state_mb, activation_mb, temporary_mb]: [f64; 5]) -> Self {
        Self { parameters_mb, grads_mb, adam_state_mb, activation_mb, temporary_mb }
    }
}

pub(super) fn apply(mut input: Object) -> Result<MemoryLedger, RuleError> {
    memory_ledger(&LedgerInput {
        param_count: input.take("param_count")?,
        param_bytes: input.take("param_bytes")?,
        grad_bytes: input.take("grad_bytes")?,
        adam_state_bytes: input.take("adam_state_bytes")?,
        activation_bytes: input.take("activation_bytes")?,
        temporary_bytes: input.take_optional("temporary_bytes").unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const INPUT: LedgerInput = LedgerInput {
        param_count: 1_000_000,
        param_bytes: 2.0,
        grad_bytes: 2.0,
        adam_state_bytes: 8.0,
        activation_bytes: 25_165_824,
        temporary_bytes: 4_194_304,
    };

    #[test]
    fn bytes_are_exact_beside_the_rounded_mib() {
        let ledger = memory_ledger(&INPUT).unwrap();
        assert_eq!((ledger.parameters_mb, ledger.parameters_bytes), (1.91, 2_000_000.0));
        assert_eq!((ledger.total_mb, ledger.total_bytes), (39.44, 41_360_128.0));
        let half = memory_ledger(&LedgerInput { param_count: 4039, param_bytes: 0.5, ..INPUT }).unwrap();
        assert_eq!(half.parameters_bytes, 2019.5);
    }

    #[test]
    fn a_total_that_rounds_to_zero_takes_its_shares_from_the_bytes() {
        let tiny = LedgerInput { param_count: 1, activation_bytes: 36, temporary_bytes: 0, ..INPUT };
        let ledger = memory_ledger(&tiny).unwrap();
        assert_eq!((ledger.total_mb, ledger.dominant), (0.0, Component::Activation));
        assert_eq!(ledger.dominant_share_pct, 75.0);
    }

    #[test]
    fn nothing_has_no_shares_and_no_number_is_infinite() {
        let nothing = LedgerInput {
            param_bytes: 0.0,
            grad_bytes: 0.0,
            adam_state_bytes: 0.0,
            activation_bytes: 0,
            temporary_bytes: 0,
            ..INPUT
        };
        assert_eq!(memory_ledger(&nothing).unwrap_err().field, "total_bytes");
        assert_eq!(
            memory_ledger(&LedgerInput { param_bytes: 1e308, ..INPUT }).unwrap_err().field,
            "total_bytes"
        );
    }
}
