//! The lines the rules draw.
//!
//! They are teaching heuristics: round figures that send a beginner to the right place most of the time.
//! No device, model or paper defines them. Where they mislead, override them; what was used is printed
//! with every result.

use serde::{Deserialize, Serialize};

use super::RuleError;
use super::field::{Field, Kind, Range};

/// Waiting longer than this, with a device less busy than [`WAITING_BUSY_PCT`], points at input or synchronization.
pub const CPU_WAIT_MS: f64 = 40.0;
/// Below this a device is idle enough for the waiting to be the likely reason.
pub const WAITING_BUSY_PCT: f64 = 60.0;
/// Below this a device is underused, whatever the waiting.
pub const LOW_BUSY_PCT: f64 = 50.0;
/// A busy device with steps longer than this deserves a look at its compute.
pub const SLOW_STEP_MS: f64 = 200.0;
/// From this share of the roofline's limit on, a kernel counts as held back by the roofline itself.
pub const EFFICIENCY_SCREEN: f64 = 0.70;
/// Above this efficiency the references cannot be right: 5% is allowed for measuring. Not adjustable.
pub const RECHECK_EFFICIENCY: f64 = 1.05;

/// The lines of rule `summarize-step-metrics`, printed with each of its results.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StepThresholds {
    pub cpu_wait_ms: f64,
    pub waiting_busy_pct: f64,
    pub low_busy_pct: f64,
    pub slow_step_ms: f64,
}

/// Every adjustable line; the keys of a thresholds file, each of them optional.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Thresholds {
    pub cpu_wait_ms: f64,
    pub waiting_busy_pct: f64,
    pub low_busy_pct: f64,
    pub slow_step_ms: f64,
    pub efficiency_screen: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            cpu_wait_ms: CPU_WAIT_MS,
            waiting_busy_pct: WAITING_BUSY_PCT,
            low_busy_pct: LOW_BUSY_PCT,
            slow_step_ms: SLOW_STEP_MS,
            efficiency_screen: EFFICIENCY_SCREEN,
        }
    }
}

impl Thresholds {
    /// The same thresholds, once each has been found to lie in its range.
    pub fn checked(self) -> Result<Self, RuleError> {
        let duration = Kind::Number(Range::AtLeast(0.0));
        let percent = Kind::Number(Range::Between(0.0, 100.0));
        Field::new("cpu_wait_ms", "ms", duration).check(self.cpu_wait_ms)?;
        Field::new("waiting_busy_pct", "%", percent).check(self.waiting_busy_pct)?;
        Field::new("low_busy_pct", "%", percent).check(self.low_busy_pct)?;
        Field::new("slow_step_ms", "ms", duration).check(self.slow_step_ms)?;
        SCREEN.check(self.efficiency_screen)?;
        Ok(self)
    }

    pub(super) fn step(&self) -> StepThresholds {
        StepThresholds {
            cpu_wait_ms: self.cpu_wait_ms,
            waiting_busy_pct: self.waiting_busy_pct,
            low_busy_pct: self.low_busy_pct,
            slow_step_ms: self.slow_step_ms,
        }
    }
}

/// The screen, in a thresholds file and in the input of rule `attribute-bottleneck`.
pub(super) const SCREEN: Field =
    Field::new("efficiency_screen", "", Kind::Number(Range::AboveUpTo(0.0, 1.0)))
        .or("0.7, or the thresholds file's");

/// One line of the list of rules.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Threshold {
    pub name: &'static str,
    pub value: f64,
    pub unit: &'static str,
    /// Whether a thresholds file may change it.
    pub adjustable: bool,
}

impl Threshold {
    pub(super) const fn new(name: &'static str, value: f64, unit: &'static str) -> Self {
        Self { name, value, unit, adjustable: true }
    }

    pub(super) const fn fixed(mut self) -> Self {
        self.adjustable = false;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_outside_its_range_is_named() {
        assert!(Thresholds::default().checked().is_ok());
        let wrong = Thresholds { low_busy_pct: 101.0, ..Thresholds::default() };
        assert_eq!(wrong.checked().unwrap_err().field, "low_busy_pct");
        let wrong = Thresholds { efficiency_screen: 0.0, ..Thresholds::default() };
        assert_eq!(wrong.checked().unwrap_err().field, "efficiency_screen");
    }
}
