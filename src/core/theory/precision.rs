//! The number types a step computes and keeps things in.

use serde::Serialize;

/// A number type of parameters or optimizer states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Float {
    F32,
    Bf16,
}

impl Float {
    pub const fn bytes(self) -> i64 {
        match self {
            Float::F32 => 4,
            Float::Bf16 => 2,
        }
    }

    pub fn from_word(word: &str) -> Option<Float> {
        match word {
            "f32" => Some(Float::F32),
            "bf16" => Some(Float::Bf16),
            _ => None,
        }
    }
}

/// In what a model computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// All in f32.
    #[default]
    F32,
    /// Parameters, and with them everything, in bf16.
    Bf16,
    /// Parameters in f32, forward and loss under autocast: products in bf16, all else in f32.
    AmpBf16,
}

impl Precision {
    pub const fn as_str(self) -> &'static str {
        match self {
            Precision::F32 => "f32",
            Precision::Bf16 => "bf16",
            Precision::AmpBf16 => "amp-bf16",
        }
    }

    pub fn from_word(word: &str) -> Option<Precision> {
        [Precision::F32, Precision::Bf16, Precision::AmpBf16].into_iter().find(|it| it.as_str() == word)
    }

    /// Of parameters and their gradients, of the residual stream, the norms' statistics and the loss.
    pub const fn parameter(self) -> Float {
        match self {
            Precision::F32 | Precision::AmpBf16 => Float::F32,
            Precision::Bf16 => Float::Bf16,
        }
    }

    /// Of what the linear layers and attention take and give.
    pub const fn product(self) -> Float {
        match self {
            Precision::F32 => Float::F32,
            Precision::Bf16 | Precision::AmpBf16 => Float::Bf16,
        }
    }
}
