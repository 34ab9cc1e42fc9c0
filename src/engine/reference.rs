//! What a run's rates can be held against: what was measured of its device before, else what its maker says.

use stepledger_core::cli::calibrated;
use stepledger_core::theory::datasheet;

use crate::device::cards;
use crate::probe::machine;
use crate::record::ReferenceRates;

/// For a run on this device (a flag's value that was found to be right), with so many threads on a CPU.
pub fn reference_rates(device: &str, threads: i32) -> Option<ReferenceRates> {
    match ordinal(device) {
        None => calibrated(&machine(), "cpu", Some(i64::from(threads))).map(ReferenceRates::Calibrated),
        Some(ordinal) => {
            let card =
                cards().ok().and_then(|cards| cards.into_iter().find(|card| card.ordinal == ordinal))?.name;
            // Another card may have come into the place of the one that was measured.
            let rates = calibrated(&machine(), &format!("cuda:{ordinal}"), None)
                .filter(|rates| rates.card.as_ref() == Some(&card));
            let printed = || datasheet(&card).cloned().map(ReferenceRates::Datasheet);
            rates.map(ReferenceRates::Calibrated).or_else(printed)
        }
    }
}

/// Of `cuda` and `cuda:N`.
fn ordinal(device: &str) -> Option<i32> {
    match device.strip_prefix("cuda")? {
        "" => Some(0),
        number => number.strip_prefix(':')?.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_numbered_from_0() {
        assert_eq!(["cpu", "cuda", "cuda:3", "cuda:x"].map(ordinal), [None, Some(0), Some(3), None]);
    }
}
