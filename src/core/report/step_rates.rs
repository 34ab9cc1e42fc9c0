//! A run's steps in four numbers.

use crate::stats::{Cycles, StepSpan, median};

/// A step, as far as these go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatedStep {
    pub span: StepSpan,
    pub tokens: Option<i64>,
    pub peak_bytes: Option<i64>,
}

/// Over the measured steps, as `show` has them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StepRates {
    pub n: usize,
    /// Of whole cycles ([`Cycles`]) the mean over their steps.
    pub median_ms: Option<f64>,
    /// The median of each cycle's own rate; `None` where no step is known to have waited for the device.
    pub tokens_per_s: Option<f64>,
    pub peak_bytes: Option<i64>,
}

impl StepRates {
    /// From all of a run's steps, warm-up included.
    pub fn of(steps: &[RatedStep]) -> Self {
        let spans: Vec<StepSpan> = steps.iter().map(|step| step.span).collect();
        let cycles = Cycles::of(&spans);
        let measured = || steps.iter().filter(|step| !step.span.warmup);
        StepRates {
            n: measured().count(),
            median_ms: median(&cycles.times_ms()),
            tokens_per_s: cycles
                .per_second(|at| steps[at].tokens.map(|tokens| tokens as f64))
                .filter(|_| cycles.told),
            peak_bytes: measured().filter_map(|step| step.peak_bytes).max(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every fourth step waits for the three before it, too.
    fn steps(waited: impl Fn(i64) -> bool) -> Vec<RatedStep> {
        let step = |step: i64| RatedStep {
            span: StepSpan {
                step,
                warmup: step < 4,
                beside_host: true,
                waited: waited(step),
                begin_ns: step / 4 * 40_000_000 + step % 4 * 1_000_000,
                wall_ns: if step % 4 == 3 { 37_000_000 } else { 1_000_000 },
                lead_ns: None,
                updated: None,
                between_ns: 0,
            },
            tokens: Some(100),
            peak_bytes: Some(step),
        };
        (0..20).map(step).collect()
    }

    #[test]
    fn a_steps_rate_is_that_of_whole_cycles() {
        let rates = StepRates::of(&steps(|step| step % 4 == 3));
        let expected =
            StepRates { n: 16, median_ms: Some(10.0), tokens_per_s: Some(10_000.0), peak_bytes: Some(19) };
        assert_eq!(rates, expected);
    }

    #[test]
    fn where_every_step_waits_it_is_that_of_a_step() {
        let rates = StepRates::of(&steps(|_| true));
        assert_eq!((rates.n, rates.median_ms, rates.tokens_per_s), (16, Some(1.0), Some(100_000.0)));
    }

    #[test]
    fn without_a_whole_cycle_nothing_is_said() {
        let rates = StepRates::of(&steps(|step| [0, 19].contains(&step)));
        assert_eq!((rates.n, rates.median_ms, rates.tokens_per_s), (16, None, None));
    }

    #[test]
    fn how_fast_the_host_hands_work_over_is_no_rate() {
        assert_eq!(StepRates::of(&steps(|_| false)).tokens_per_s, None);
    }

    #[test]
    fn steps_without_tokens_have_no_rate() {
        let mut all = steps(|_| true);
        all.iter_mut().skip(5).for_each(|step| step.tokens = None);
        assert_eq!(StepRates::of(&all).tokens_per_s, Some(100_000.0));
        all.iter_mut().for_each(|step| step.tokens = None);
        assert_eq!(StepRates::of(&all).tokens_per_s, None);
    }
}
