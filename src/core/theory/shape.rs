//! A toy model's sizes, and the bytes that follow from them in f32.

use serde_json::{Map, Value};

use super::choices::{Attention, ModelKind};

/// Bytes are the vocabulary.
pub const VOCABULARY: i64 = 256;

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
        let architecture = match word("model")?.parse().ok()? {
            ModelKind::Gpt => {
                Architecture::Gpt { heads: size("heads")?, attention: word("attention")?.parse().ok()? }
            }
            ModelKind::Mlp => Architecture::Mlp,
        };
        let (layers, width) = (size("layers")?, size("width")?);
        Some(Shape { architecture, layers, width, seq: size("seq")?, batch: size("batch")? })
    }

    /// Trained scalars, tied ones once. Like all sizes here it stops at `i64::MAX`: no machine has more.
    pub fn parameters(&self) -> i64 {
        let [layers, width, seq, vocabulary] =
            [self.layers, self.width, self.seq, VOCABULARY].map(i128::from);
        bounded(match self.architecture {
            // Embeddings; a block's two layer norms, c_attn, c_proj, c_fc, c_proj; the last layer norm.
            Architecture::Gpt { .. } => {
                (vocabulary + seq) * width + layers * (12 * width * width + 13 * width) + 2 * width
            }
            Architecture::Mlp => {
                vocabulary * width + layers * (width * width + width) + (width + 1) * vocabulary
            }
        })
    }

    /// Tensors that hold them: each has gradient, states and a step counter of its own.
    pub fn variables(&self) -> i64 {
        match self.architecture {
            Architecture::Gpt { .. } => 4 + 12 * self.layers,
            Architecture::Mlp => 3 + 2 * self.layers,
        }
    }

    pub fn parameter_bytes(&self) -> i64 {
        self.parameters().saturating_mul(4)
    }

    /// Adam's two states, and an f32 step counter for each variable.
    pub fn adam_state_bytes(&self) -> i64 {
        self.parameters().saturating_mul(8).saturating_add(4 * self.variables())
    }

    /// What a step's peak cannot get below: parameters, Adam's states and activations, with the gradients
    /// of log-softmax and of the logits at the beginning of backward, or else with all gradients at its end.
    pub fn floor_bytes(&self) -> i64 {
        let held = i128::from(self.parameter_bytes()) + i128::from(self.adam_state_bytes());
        let [positions, vocabulary] = [self.batch.saturating_mul(self.seq), VOCABULARY].map(i128::from);
        let begin = i128::from(self.activation_bytes()) + 8 * positions * vocabulary;
        bounded(held + begin.max(4 * i128::from(self.parameters())))
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
        let [layers, width, seq, batch] = [self.layers, self.width, self.seq, self.batch].map(i128::from);
        let positions = batch * seq;
        let logits = 4 * i128::from(VOCABULARY) * positions;
        bounded(match self.architecture {
            Architecture::Gpt { heads, attention } => {
                let kept = 4 * i128::from(heads) * if attention == Attention::Math { seq } else { 1 };
                let blocks = layers * positions * (64 * width + 16 + kept);
                blocks + positions * (8 * width + 8) + logits + 8 * seq + 4
            }
            Architecture::Mlp => positions * (8 * layers * width + 4 * width) + logits + 4,
        })
    }
}

fn bounded(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(config: &str) -> Option<Shape> {
        Shape::of(&serde_json::from_str(config).unwrap())
    }

    const GPT: &str =
        r#"{"model":"gpt","layers":4,"width":128,"heads":4,"seq":64,"batch":8,"attention":"sdpa"}"#;

    #[test]
    fn the_default_gpts_sizes() {
        let gpt = shape(GPT).unwrap();
        assert_eq!((gpt.parameters(), gpt.variables()), (834_304, 52));
        assert_eq!(gpt.activation_bytes(), 17_895_940);
        // With batch and loss: the measured peak.
        assert_eq!(gpt.floor_bytes() + gpt.input_bytes() + 4, 28_964_568);
        let math = shape(&GPT.replace("sdpa", "math")).unwrap();
        assert_eq!(math.activation_bytes(), 19_960_324);
    }

    #[test]
    fn absurd_sizes_stop_at_the_largest_number() {
        let huge =
            GPT.replace("\"width\":128", "\"width\":16777216").replace("\"layers\":4", "\"layers\":16777216");
        assert_eq!(shape(&huge).unwrap().floor_bytes(), i64::MAX);
    }

    #[test]
    fn what_is_no_toy_model_has_no_shape() {
        assert_eq!(shape("{}"), None);
        assert_eq!(shape(&GPT.replace("gpt", "resnet")), None);
        assert_eq!(shape(&GPT.replace("\"layers\":4", "\"layers\":0")), None);
    }
}
