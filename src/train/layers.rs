//! The two layers both toy models are made of.

use tch::nn::{Init, Path};
use tch::{TchError, Tensor};

/// `y = x·Wᵀ + b`, with W of shape [out, in].
#[derive(Debug)]
pub struct Linear {
    weight: Tensor,
    bias: Tensor,
}

impl Linear {
    pub fn new(path: &Path, inputs: i64, outputs: i64, stdev: f64) -> Result<Self, TchError> {
        let weight = path.f_var("weight", &[outputs, inputs], Init::Randn { mean: 0.0, stdev })?;
        let bias = path.f_zeros("bias", &[outputs])?;
        Ok(Linear { weight, bias })
    }

    pub fn forward(&self, x: &Tensor) -> Result<Tensor, TchError> {
        x.f_linear(&self.weight, Some(&self.bias))
    }
}

/// Layer norm over the last axis, with bias; eps 1e-5.
#[derive(Debug)]
pub struct LayerNorm {
    weight: Tensor,
    bias: Tensor,
    width: i64,
}

impl LayerNorm {
    pub fn new(path: &Path, width: i64) -> Result<Self, TchError> {
        Ok(LayerNorm {
            weight: path.f_ones("weight", &[width])?,
            bias: path.f_zeros("bias", &[width])?,
            width,
        })
    }

    pub fn forward(&self, x: &Tensor) -> Result<Tensor, TchError> {
        x.f_layer_norm([self.width], Some(&self.weight), Some(&self.bias), 1e-5, true)
    }
}
