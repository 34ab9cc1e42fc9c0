//! A plain stack of Linear and GELU over the same bytes: nothing in the instruments knows one model.

use tch::nn::Path;
use tch::{TchError, Tensor};

use super::config::Config;
use super::gpt::{gelu, mean_cross_entropy};
use super::layers::{Linear, normal};
use super::model::Model;
use crate::probe::scope;
use crate::theory::VOCABULARY;

/// Predicts each next byte from the byte before it alone.
#[derive(Debug)]
pub struct MlpModel {
    wte: Tensor,
    layers: Vec<(String, Linear)>,
    head: Linear,
}

const STDEV: f64 = 0.02;

impl MlpModel {
    /// Builds the model in `root`: `wte`, `h.<i>`, `head`.
    pub fn new(root: &Path, config: &Config) -> Result<Self, TchError> {
        let wte = normal(&(root / "wte"), "weight", &[VOCABULARY, config.width], STDEV)?;
        let h = root / "h";
        // Kaiming's spread for this width: a deep plain stack of narrower weights would pass nothing on.
        let stdev = (2.0 / config.width as f64).sqrt();
        let layer = |i| Ok((format!("h.{i}"), Linear::new(&(&h / i), config.width, config.width, stdev)?));
        let layers = (0..config.layers).map(layer).collect::<Result<_, TchError>>()?;
        let head = Linear::new(&(root / "head"), config.width, VOCABULARY, STDEV)?;
        Ok(MlpModel { wte, layers, head })
    }
}

impl Model for MlpModel {
    fn loss(&self, tokens: &Tensor, targets: &Tensor) -> Result<Tensor, TchError> {
        let mut hidden = {
            let _scope = scope("embed");
            Tensor::f_embedding(&self.wte, tokens, -1, false, false)?
        };
        for (name, layer) in &self.layers {
            let _scope = scope(name);
            let wide = layer.forward(&hidden)?;
            hidden = gelu(wide)?;
        }
        let logits = {
            let _scope = scope("head");
            self.head.forward(&hidden)?
        };
        drop(hidden);
        let _scope = scope("loss");
        mean_cross_entropy(&logits, targets)
    }
}
