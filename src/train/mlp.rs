//! A plain stack of Linear and GELU over the same bytes: nothing in the instruments knows one model.

use tch::nn::Path;
use tch::{TchError, Tensor};

use super::config::Config;
use super::gpt::{dropped_out, gelu, mean_cross_entropy};
use super::layers::{Linear, normal};
use super::model::Model;
use super::segments::{self, Part};
use crate::probe::scope;
use crate::theory::VOCABULARY;

/// Predicts each next byte from the byte before it alone.
#[derive(Debug)]
pub struct MlpModel {
    wte: Tensor,
    layers: Vec<Layer>,
    head: Linear,
    dropout: f64,
    /// Layers in a checkpointed segment; `None` where none is one.
    group: Option<usize>,
}

#[derive(Debug)]
struct Layer {
    name: String,
    linear: Linear,
    dropout: f64,
}

const STDEV: f64 = 0.02;

impl MlpModel {
    /// Builds the model in `root`: `wte`, `h.<i>`, `head`.
    pub fn new(root: &Path, config: &Config) -> Result<Self, TchError> {
        let wte = normal(&(root / "wte"), "weight", &[VOCABULARY, config.width], STDEV)?;
        let h = root / "h";
        // Kaiming's spread for this width: a deep plain stack of narrower weights would pass nothing on.
        let stdev = (2.0 / config.width as f64).sqrt();
        let layer = |i| {
            let linear = Linear::new(&(&h / i), config.width, config.width, stdev)?;
            Ok(Layer { name: format!("h.{i}"), linear, dropout: config.dropout })
        };
        let layers = (0..config.layers).map(layer).collect::<Result<_, TchError>>()?;
        let head = Linear::new(&(root / "head"), config.width, VOCABULARY, STDEV)?;
        let group = config.checkpoint.group().map(|layers| layers as usize);
        Ok(MlpModel { wte, layers, head, dropout: config.dropout, group })
    }
}

impl Model for MlpModel {
    fn loss(&self, tokens: &Tensor, targets: &Tensor) -> Result<Tensor, TchError> {
        let embedded = {
            let _scope = scope("embed");
            dropped_out(Tensor::f_embedding(&self.wte, tokens, -1, false, false)?, self.dropout)?
        };
        let hidden = segments::run(&self.layers, self.group, embedded)?;
        let logits = {
            let _scope = scope("head");
            self.head.forward(&hidden)?
        };
        drop(hidden);
        let _scope = scope("loss");
        mean_cross_entropy(&logits, targets)
    }
}

impl Part for Layer {
    fn name(&self) -> &str {
        &self.name
    }

    fn forward(&self, x: Tensor) -> Result<Tensor, TchError> {
        let _scope = scope(&self.name);
        let wide = self.linear.forward(&x)?;
        dropped_out(gelu(wide)?, self.dropout)
    }

    fn shallow_clone(&self) -> Self {
        Layer { name: self.name.clone(), linear: self.linear.shallow_clone(), dropout: self.dropout }
    }
}
