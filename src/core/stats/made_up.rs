//! Random series for tests, the same each time.

use super::random::SplitMix64;

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
}
