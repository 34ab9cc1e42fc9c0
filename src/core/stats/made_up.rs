//! Random series for tests, the same each time.

use super::random::SplitMix64;

/// Steps of a run, warm-up included.
pub const STEPS: usize = 120;

/// What the level of a run's log times does as the run goes on, over what was asked of it; `place` is from 0 to 1.
pub type Course = fn(place: f64) -> f64;

pub const LEVEL: Course = |_| 0.0;

pub struct Random(SplitMix64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(SplitMix64::new(seed))
    }

    /// A whole number from 0 to below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0.below(end)
    }

    /// From 0 to below 1.
    pub fn uniform(&mut self) -> f64 {
        (self.0.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Standard normal (Box & Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let (radius, angle) = (1.0 - self.uniform(), self.uniform());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }

    /// `x_t = φ · x_{t−1} + e_t` with normal `e` of standard deviation `innovation`, from its stationary
    /// distribution on.
    pub fn autoregression(&mut self, n: usize, phi: f64, innovation: f64) -> Vec<f64> {
        let mut value = self.normal() * innovation / (1.0 - phi * phi).sqrt();
        let mut next = || {
            value = phi * value + innovation * self.normal();
            value
        };
        (0..n).map(|_| next()).collect()
    }

    /// The step times of a run of a process about `exp(level)`: steps that depend on each other, what this process drew
    /// by lot, a warm-up that dies away, and rare spikes of up to five times the step.
    pub fn run(&mut self, level: f64, course: Course) -> Vec<f64> {
        let process = 0.008 * self.normal();
        let steps = self.autoregression(STEPS, 0.5, 0.02);
        let at = |(place, step): (usize, f64)| {
            let warmup = 0.4 * (-(place as f64) / 5.0).exp();
            let course = course(place as f64 / STEPS as f64);
            let spike = if self.uniform() < 0.01 { 0.1 + 1.5 * self.uniform() } else { 0.0 };
            (level + course + process + step + warmup + spike).exp()
        };
        steps.into_iter().enumerate().map(at).collect()
    }
}
