//! The operations of a step's matrix products.

use super::choices::Attention;
use super::shape::{Architecture, Shape, VOCABULARY};

impl Shape {
    /// Floating-point operations of a step's matrix products, forward and backward, without recomputation: the *model*
    /// FLOPs of Chowdhery et al. 2022 (PaLM, appendix B), from which model FLOPs utilisation comes. A multiplication
    /// with its addition counts as two.
    ///
    /// FLOPs = 3F · positions, where backward has twice forward's products and positions = micro-batches · sequences ·
    /// tokens; F a position, with the sizes' names of [`activation_bytes`]:
    ///
    /// - GPT: F = L(24C² + 4TC) + 2VC. Attention's two products are counted whole, though the fused kernel leaves out
    ///   blocks that causality masks.
    /// - MLP: F = 2LC² + 2VC.
    ///
    /// What is no product (norms, softmax, GELU, AdamW) is not counted, so that a rate from this is one of products.
    ///
    /// [`activation_bytes`]: Shape::activation_bytes
    pub fn product_flops(&self) -> f64 {
        let [accumulate, batch, seq] =
            [self.training.accumulate, self.batch, self.seq].map(|size| size as f64);
        3.0 * self.forward_products() * accumulate * batch * seq
    }

    /// F of a position.
    pub(super) fn forward_products(&self) -> f64 {
        let head = 2.0 * VOCABULARY as f64 * self.width as f64;
        self.block_products() + head
    }

    /// Of all blocks, for a position.
    pub(super) fn block_products(&self) -> f64 {
        let [layers, square] = [self.layers as f64, (self.width as f64).powi(2)];
        match self.architecture {
            Architecture::Gpt { .. } => 24.0 * square * layers + self.attention_products(),
            Architecture::Mlp => 2.0 * square * layers,
        }
    }

    /// Of attention's products with k and with v in all blocks, for a position.
    pub(super) fn attention_products(&self) -> f64 {
        4.0 * self.seq as f64 * self.width as f64 * self.layers as f64
    }
}

/// Attention's part of what `selective` computes again: its product with v is not needed again where it is spelt out.
pub(super) fn attention_again(attention: Attention, products: f64) -> f64 {
    match attention {
        Attention::Sdpa => products,
        Attention::Math => products / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::shape::tests::{GPT, shape};

    #[test]
    fn the_default_gpts_products_matrix_by_matrix() {
        // A block at C = 128, T = 64: c_attn C×3C, c_proj C×C, c_fc C×4C, c_proj 4C×C; attention C×T twice.
        let (c, t, v) = (128.0, 64.0, 256.0);
        let block = 2.0 * (c * 3.0 * c + c * c + c * 4.0 * c + 4.0 * c * c) + 2.0 * (2.0 * c * t);
        let forward = 4.0 * block + 2.0 * c * v;
        let gpt = shape(GPT, "").unwrap();
        assert_eq!(gpt.product_flops(), 3.0 * forward * 8.0 * 64.0);
    }

    #[test]
    fn micro_batches_multiply_and_recomputation_does_not_count() {
        let once = shape(GPT, "").unwrap().product_flops();
        assert_eq!(shape(GPT, r#""accumulate":3"#).unwrap().product_flops(), 3.0 * once);
        assert_eq!(shape(GPT, r#""checkpoint":"full""#).unwrap().product_flops(), once);
    }

    #[test]
    fn six_a_parameter_and_token_in_a_wide_gpt() {
        // Kaplan et al. 2020: C ≈ 6N a token, where attention's products and the embeddings are small.
        let wide = shape(GPT, r#""width":4096,"seq":16"#).unwrap();
        let rule = 6.0 * wide.parameters() as f64 * (8 * 16) as f64;
        assert!((wide.product_flops() / rule - 1.0).abs() < 0.01);
    }
}
