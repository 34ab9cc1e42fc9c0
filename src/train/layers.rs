//! The two layers both toy models are made of.

use tch::nn::Path;
use tch::{TchError, Tensor};

/// A new variable, normally distributed around 0.
pub fn normal(path: &Path, name: &str, dims: &[i64], stdev: f64) -> Result<Tensor, TchError> {
    // In place: tch's own initialiser panics where there is no memory for its intermediates.
    let mut variable = path.f_zeros(name, dims)?;
    let _ = tch::no_grad(|| variable.f_normal_(0.0, stdev))?;
    Ok(variable)
}

/// `y = x·Wᵀ + b`, with W of shape [out, in].
#[derive(Debug)]
pub struct Linear {
    weight: Tensor,
    bias: Tensor,
}

impl Linear {
    pub fn new(path: &Path, inputs: i64, outputs: i64, stdev: f64) -> Result<Self, TchError> {
        let weight = normal(path, "weight", &[outputs, inputs], stdev)?;
        let bias = path.f_zeros("bias", &[outputs])?;
        Ok(Linear { weight, bias })
    }

    pub fn forward(&self, x: &Tensor) -> Result<Tensor, TchError> {
        x.f_linear(&self.weight, Some(&self.bias))
    }

    /// The same variables, for a segment to hold.
    pub fn shallow_clone(&self) -> Self {
        Linear { weight: self.weight.shallow_clone(), bias: self.bias.shallow_clone() }
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

    /// The same variables, for a segment to hold.
    pub fn shallow_clone(&self) -> Self {
        let LayerNorm { weight, bias, width } = self;
        LayerNorm { weight: weight.shallow_clone(), bias: bias.shallow_clone(), width: *width }
    }
}
