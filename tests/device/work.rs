//! Work of a known length: matrix products, one after the other.

use std::time::Instant;

use tch::{Device, Kind, Tensor};

use super::Outcome;

/// A chain of products on a GPU.
pub struct Chain {
    matrix: Tensor,
    product: Tensor,
    pub length: usize,
}

const ROWS: i64 = 4096;

impl Chain {
    /// So long that the host sees it take about this many milliseconds.
    pub fn lasting(device: Device, ms: f64) -> Outcome<Chain> {
        let matrix = Tensor::f_randn([ROWS, ROWS], (Kind::Float, device))?;
        let product = matrix.f_zeros_like()?;
        let mut chain = Chain { matrix, product, length: 8 };
        chain.host_ms()?;
        let each = chain.host_ms()? / chain.length as f64;
        chain.length = ((ms / each).ceil() as usize).max(1);
        Ok(chain)
    }

    /// Queues the products.
    pub fn queue(&self) -> Outcome<()> {
        for _ in 0..self.length {
            let _ = self.matrix.f_mm_out(&self.product, &self.matrix)?;
        }
        Ok(())
    }

    /// Waits until all that was queued on the current stream is done.
    pub fn wait(&self) -> Outcome<()> {
        self.product.f_double_value(&[0, 0])?;
        Ok(())
    }

    /// From an idle GPU to an idle GPU, by the host's clock.
    pub fn host_ms(&self) -> Outcome<f64> {
        self.wait()?;
        let begin = Instant::now();
        self.queue()?;
        self.wait()?;
        Ok(begin.elapsed().as_secs_f64() * 1e3)
    }
}
