//! A toy model's sizes, as a run's configuration gives them.

use serde_json::{Map, Value};

use super::choices::{Attention, Checkpoint, ModelKind, Precision};
use super::state::Training;

/// Bytes are the vocabulary.
pub const VOCABULARY: i64 = 256;

/// Which of the toy models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Architecture {
    Gpt { heads: i64, attention: Attention },
    Mlp,
}

/// A toy model, the batch it is trained on, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub architecture: Architecture,
    pub layers: i64,
    pub width: i64,
    pub seq: i64,
    /// Sequences in a micro-batch.
    pub batch: i64,
    pub precision: Precision,
    pub checkpoint: Checkpoint,
    pub training: Training,
}

impl Shape {
    /// The shape that a run's configuration describes; `None` if it is not one of the toy models', or says
    /// something that is not known here. Whatever older runs could not say has a default.
    /// Dropout keeps masks, which no closed form here counts, so that a run with it has no shape.
    pub fn of(config: &Map<String, Value>) -> Option<Shape> {
        if config.get("dropout").is_some_and(|dropout| !dropout.is_null() && dropout.as_f64() != Some(0.0)) {
            return None;
        }
        let size = |name: &str| config.get(name)?.as_i64().filter(|&size| size > 0);
        let word = |name: &str| config.get(name)?.as_str();
        let architecture = match word("model")?.parse().ok()? {
            ModelKind::Gpt => {
                Architecture::Gpt { heads: size("heads")?, attention: word("attention")?.parse().ok()? }
            }
            ModelKind::Mlp => Architecture::Mlp,
        };
        let checkpoint = word("checkpoint").map_or(Some(Checkpoint::None), |word| word.parse().ok())?;
        let impossible = matches!(checkpoint, Checkpoint::Every(..=0));
        if impossible || (architecture == Architecture::Mlp && checkpoint == Checkpoint::Selective) {
            return None;
        }
        let precision = word("dtype").map_or(Some(Precision::F32), |word| word.parse().ok())?;
        let training = Training::of(config)?;
        let (layers, width) = (size("layers")?, size("width")?);
        Some(Shape {
            architecture,
            layers,
            width,
            seq: size("seq")?,
            batch: size("batch")?,
            precision,
            checkpoint,
            training,
        })
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

    /// Scalars in the largest of them: an embedding, or a block's largest matrix.
    pub fn largest_variable(&self) -> i64 {
        let widest = match self.architecture {
            Architecture::Gpt { .. } => VOCABULARY.max(self.seq).max(self.width.saturating_mul(4)),
            Architecture::Mlp => VOCABULARY.max(self.width),
        };
        widest.saturating_mul(self.width)
    }

    /// Tokens and targets of one micro-batch, int64.
    pub fn input_bytes(&self) -> i64 {
        bounded(2 * 8 * i128::from(self.batch) * i128::from(self.seq))
    }

    /// The causal mask of spelt-out attention, a byte a pair of positions.
    pub fn buffer_bytes(&self) -> i64 {
        match self.architecture {
            Architecture::Gpt { attention: Attention::Math, .. } => self.seq.saturating_mul(self.seq),
            _ => 0,
        }
    }
}

pub(super) fn bounded(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub const GPT: &str =
        r#"{"model":"gpt","layers":4,"width":128,"heads":4,"seq":64,"batch":8,"attention":"sdpa"}"#;

    /// The shape of a configuration, with further keys given as the inside of a JSON object.
    pub fn shape(config: &str, further: &str) -> Option<Shape> {
        let mut config: Map<String, Value> = serde_json::from_str(config).unwrap();
        config.extend(serde_json::from_str::<Map<String, Value>>(&format!("{{{further}}}")).unwrap());
        Shape::of(&config)
    }

    #[test]
    fn the_default_gpts_sizes() {
        let gpt = shape(GPT, "").unwrap();
        assert_eq!((gpt.parameters(), gpt.variables(), gpt.largest_variable()), (834_304, 52, 65_536));
        assert_eq!((gpt.input_bytes(), gpt.buffer_bytes()), (8192, 0));
        assert_eq!(shape(GPT, r#""attention":"math""#).unwrap().buffer_bytes(), 4096);
    }

    #[test]
    fn a_run_that_does_not_say_trains_in_f32_with_the_fused_adamw() {
        let gpt = shape(GPT, "").unwrap();
        assert_eq!((gpt.precision, gpt.training), (Precision::F32, Training::default()));
        assert_eq!(shape(GPT, r#""dtype":"amp-bf16""#).unwrap().precision, Precision::AmpBf16);
    }

    #[test]
    fn no_dropout_is_none() {
        assert_eq!(shape(GPT, r#""dropout":0.0"#), shape(GPT, ""));
        assert_eq!(shape(GPT, r#""checkpoint":"every:3""#).unwrap().checkpoint, Checkpoint::Every(3));
    }

    #[test]
    fn what_is_no_toy_model_has_no_shape() {
        assert_eq!(shape("{}", ""), None);
        for unknown in [
            r#""model":"resnet""#,
            r#""layers":0"#,
            r#""dtype":"f16""#,
            r#""state_dtype":"i8""#,
            r#""accumulate":0"#,
            r#""checkpoint":"every:0""#,
            r#""model":"mlp","checkpoint":"selective""#,
            r#""dropout":0.1"#,
        ] {
            assert_eq!(shape(GPT, unknown), None, "{unknown}");
        }
    }
}
