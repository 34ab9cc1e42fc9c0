//! How large a difference must be to matter.

use serde::Serialize;

use super::metrics::percent;
use super::pct::range_pct;
use crate::record::words;
use crate::stats::LEAST_MARGIN;

words! {
    /// Where the margin comes from.
    MarginSource, "source of the margin" {
        /// Nobody cares for less than 1 %.
        Least = "least",
        /// This machine's own noise, measured between runs of the same program.
        Noise = "noise",
    }
}

/// Differences of this size and less do not matter. It is one of logarithms, so that neither side is favoured: a
/// candidate that takes 8 % more time than its base is as far from it as the base, which takes 7.4 % less, is from it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Margin {
    pub pct: f64,
    pub source: MarginSource,
    /// Its two ends as changes: `−pct / (1 + pct / 100)`, and `pct`.
    pub low_pct: f64,
    pub high_pct: f64,
}

impl Margin {
    /// `max(1 %, noise)`: `noise_pct` is the half-width that pairs of the same program had on this machine.
    pub fn of(noise_pct: Option<f64>) -> Self {
        let least = 100.0 * LEAST_MARGIN;
        let (pct, source) = match noise_pct.filter(|noise| *noise > least) {
            Some(pct) => (pct, MarginSource::Noise),
            None => (least, MarginSource::Least),
        };
        Margin { pct, source, low_pct: percent(-(pct / 100.0).ln_1p()), high_pct: pct }
    }

    /// Of logarithms.
    pub fn log(self) -> f64 {
        (self.pct / 100.0).ln_1p()
    }

    /// Its two ends, in words.
    pub fn told(self) -> String {
        range_pct(self.low_pct, self.high_pct)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_counts_from_one_percent_on_and_both_ends_are_as_far() {
        assert_eq!(Margin::of(None).told(), "−0.99 % to +1.00 %");
        assert_eq!(Margin::of(Some(0.4)), Margin::of(None));
        let noisy = Margin::of(Some(8.0));
        assert_eq!((noisy.source, noisy.told()), (MarginSource::Noise, "−7.41 % to +8.00 %".to_owned()));
        assert!(((noisy.low_pct / 100.0).ln_1p() + noisy.log()).abs() < 1e-12);
    }
}
