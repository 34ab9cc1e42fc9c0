//! What recomputation costs.

use super::choices::Checkpoint;
use super::products::attention_again;
use super::shape::{Architecture, Shape};

impl Shape {
    /// What recomputation adds to a step's matrix products, as a share of what they are without it: R / 3F, where
    /// F are those of forward, of which backward has twice as many.
    ///
    /// Multiplications and additions a position, with the sizes' names of [`activation_bytes`]; attention's two
    /// products are counted whole, though the fused kernel leaves out blocks that causality masks:
    ///
    /// - GPT: F = L(24C² + 4TC) + 2VC. A segment ends before the last product of its last block (8C²), which saves
    ///   its input only: with ⌈L/K⌉ segments (`full`: K = 1) R = L(24C² + 4TC) − 8C²·⌈L/K⌉; `selective`: 4TC·L with
    ///   the fused kernel, 2TC·L with spelt-out attention, whose product with v is not needed again.
    /// - MLP: F = 2LC² + 2VC, R = 2LC².
    ///
    /// For large L and C ≫ T so up to 1/3 with large K, and 2/9 with `full`.
    ///
    /// [`activation_bytes`]: Shape::activation_bytes
    pub fn recompute_share(&self) -> f64 {
        self.products_again() / (3.0 * self.forward_products())
    }

    /// R of a position.
    fn products_again(&self) -> f64 {
        let segments = self.segments().map(|segments| segments as f64);
        let square = (self.width as f64).powi(2);
        match (self.architecture, segments) {
            (Architecture::Gpt { .. }, Some(segments)) => self.block_products() - 8.0 * square * segments,
            (Architecture::Gpt { attention, .. }, None) if self.checkpoint == Checkpoint::Selective => {
                attention_again(attention, self.attention_products())
            }
            (Architecture::Mlp, Some(_)) => self.block_products(),
            (_, None) => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::shape::tests::{GPT, shape};

    #[test]
    fn shares_of_the_default_gpt() {
        let square = 128.0 * 128.0;
        let (core, head) = (4.0 * 64.0 * 128.0, 2.0 * 256.0 * 128.0);
        let step = 3.0 * (4.0 * (24.0 * square + core) + head);
        for (attention, checkpoint, again) in [
            ("sdpa", "none", 0.0),
            ("sdpa", "full", 4.0 * (16.0 * square + core)),
            ("sdpa", "every:1", 4.0 * (16.0 * square + core)),
            ("sdpa", "every:3", 4.0 * (24.0 * square + core) - 2.0 * 8.0 * square),
            ("sdpa", "selective", 4.0 * core),
            ("math", "selective", 2.0 * core),
        ] {
            let gpt = GPT.replace("sdpa", attention);
            let gpt = shape(&gpt, &format!(r#""checkpoint":"{checkpoint}""#)).unwrap();
            assert_eq!(gpt.recompute_share(), again / step, "{attention} {checkpoint}");
        }
    }

    #[test]
    fn an_mlp_computes_all_layers_again() {
        let mlp = shape(GPT, r#""model":"mlp","checkpoint":"full""#).unwrap();
        // 2·128²·4 of 3·(2·128²·4 + 2·256·128)
        assert_eq!(mlp.recompute_share(), 2.0 / 9.0);
    }
}
