//! A toy model's sizes, and the bytes that follow from them in f32.

use serde_json::{Map, Value};

/// Bytes are the vocabulary.
pub const VOCABULARY: i64 = 256;

/// How causal attention is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attention {
    /// libtorch's `scaled_dot_product_attention`.
    Sdpa,
    /// Scores, mask, softmax and product, each on its own.
    Math,
}

/// Which of the toy models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Architecture {
    Gpt { heads: i64, attention: Attention },
    Mlp,
}

/// A toy model and the batch it is trained on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub architecture: Architecture,
    pub layers: i64,
    pub width: i64,
    pub seq: i64,
    pub batch: i64,
}

impl Shape {
    /// The shape that a run's configuration describes; `None` if it is not one of the toy models'.
    pub fn of(config: &Map<String, Value>) -> Option<Shape> {
        let size = |name: &str| config.get(name)?.as_i64().filter(|&size| size > 0);
        let word = |name: &str| config.get(name)?.as_str();
        let architecture = match word("model")? {
            "gpt" => Architecture::Gpt {
                heads: size("heads")?,
                attention: if word("attention")? == "math" { Attention::Math } else { Attention::Sdpa },
            },
            "mlp" => Architecture::Mlp,
            _ => return None,
        };
        let (layers, width) = (size("layers")?, size("width")?);
        Some(Shape { architecture, layers, width, seq: size("seq")?, batch: size("batch")? })
    }

    /// Trained scalars, tied ones once.
    pub fn parameters(&self) -> i64 {
        let Shape { layers, width, seq, .. } = *self;
        match self.architecture {
            // Embeddings; a block's two layer norms, c_attn, c_proj, c_fc, c_proj; the last layer norm.
            Architecture::Gpt { .. } => {
                (VOCABULARY + seq) * width + layers * (12 * width * width + 13 * width) + 2 * width
            }
            Architecture::Mlp => {
                VOCABULARY * width + layers * (width * width + width) + (width + 1) * VOCABULARY
            }
        }
    }

    /// Tensors that hold them: each has gradient, states and a step counter of its own.
    pub fn variables(&self) -> i64 {
        match self.architecture {
            Architecture::Gpt { .. } => 4 + 12 * self.layers,
            Architecture::Mlp => 3 + 2 * self.layers,
        }
    }

    pub fn parameter_bytes(&self) -> i64 {
        4 * self.parameters()
    }

    /// Adam's two states, and an f32 step counter for each variable.
    pub fn adam_state_bytes(&self) -> i64 {
        8 * self.parameters() + 4 * self.variables()
    }

    /// Tokens and targets, int64.
    pub fn input_bytes(&self) -> i64 {
        2 * 8 * self.batch * self.seq
    }

    /// What backward needs of forward, as libtorch 2.11 saves it in f32; N = batch · seq, C the width, H the
    /// heads, T the sequence, V the vocabulary.
    ///
    /// GPT, each block: its input and the stream between its halves (2·4NC), both layer norms' outputs
    /// (2·4NC) with mean and 1/σ of each position (2·8N), the MLP before and after GELU (2·16NC); attention
    /// with sdpa: q, k and v in one block (12NC), output (4NC) and logsumexp (4NH); with math: copies of q, k
    /// and v (12NC), softmax (4NHT) and the joined output (4NC). The head: the last norm's input and output
    /// (2·4NC), its statistics (8N), log-softmax (4NV); the positions (8T) and the loss's total weight (4).
    ///
    /// MLP, each layer: its input (4NC) and its sum before GELU (4NC); the head's input (4NC), log-softmax
    /// (4NV) and the loss's total weight (4).
    ///
    /// Batch and targets are saved too, but are input. Korthikanti et al. 2022 count `s·b·h·(34 + 5·a·s/h)`
    /// bytes a block in 16 bit, where dropout keeps a mask and an output beside each softmax. In f32 and
    /// without dropout their list gives 64C + 4HT a position, as `math` here; they leave out the norms'
    /// statistics (16), and sdpa keeps a logsumexp (4H) for the softmax (4HT).
    pub fn activation_bytes(&self) -> i64 {
        let Shape { layers, width, seq, batch, .. } = *self;
        let positions = batch * seq;
        let logits = 4 * VOCABULARY * positions;
        match self.architecture {
            Architecture::Gpt { heads, attention } => {
                let kept = match attention {
                    Attention::Sdpa => 4 * heads,
                    Attention::Math => 4 * heads * seq,
                };
                let blocks = layers * positions * (64 * width + 16 + kept);
                blocks + positions * (8 * width + 8) + logits + 8 * seq + 4
            }
            Architecture::Mlp => positions * (8 * layers * width + 4 * width) + logits + 4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(config: &str) -> Option<Shape> {
        Shape::of(&serde_json::from_str(config).unwrap())
    }

    const GPT: &str = r#"{"model":"gpt","layers":4,"width":128,"heads":4,"seq":64,"batch":8,"attention":"sdpa"}"#;

    #[test]
    fn the_default_gpts_sizes() {
        let gpt = shape(GPT).unwrap();
        assert_eq!((gpt.parameters(), gpt.variables()), (834_304, 52));
        assert_eq!(gpt.activation_bytes(), 17_895_940);
        let math = shape(&GPT.replace("sdpa", "math")).unwrap();
        assert_eq!(math.activation_bytes(), 19_960_324);
    }

    #[test]
    fn what_is_no_toy_model_has_no_shape() {
        assert_eq!(shape("{}"), None);
        assert_eq!(shape(&GPT.replace("gpt", "resnet")), None);
        assert_eq!(shape(&GPT.replace("\"layers\":4", "\"layers\":0")), None);
    }
}
