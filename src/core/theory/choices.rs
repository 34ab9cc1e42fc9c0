//! What a run of a toy model chooses among, as far as its memory depends on it.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::record::words;

words! {
    /// Which of the toy models.
    ModelKind, "model" {
        /// GPT-2's layout at any size.
        Gpt = "gpt",
        /// A stack of Linear and GELU, applied to each position alone.
        Mlp = "mlp",
    }
}

words! {
    /// How causal attention is computed.
    Attention, "attention" {
        /// libtorch's `scaled_dot_product_attention`.
        Sdpa = "sdpa",
        /// Scores, mask, softmax and product, each on its own.
        Math = "math",
    }
}

words! {
    /// What parameters are kept in and computed with.
    Precision, "dtype" {
        F32 = "f32",
        /// Parameters, and with them everything, in bfloat16.
        Bf16 = "bf16",
        /// Parameters in f32, forward and loss under autocast: products in bfloat16, all else in f32.
        AmpBf16 = "amp-bf16",
    }
}

words! {
    /// A number type of parameters or optimizer states.
    Float, "number type" {
        F32 = "f32",
        Bf16 = "bf16",
    }
}

impl Float {
    pub const fn bytes(self) -> i64 {
        match self {
            Float::F32 => 4,
            Float::Bf16 => 2,
        }
    }
}

impl Precision {
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

words! {
    /// How AdamW's update is computed: the three ways that PyTorch has, by its names, and one of our own.
    AdamWKind, "AdamW" {
        /// One kernel for everything.
        Fused = "fused",
        /// All tensors at once, one operation after the other.
        Foreach = "foreach",
        /// One tensor after the other.
        Loop = "loop",
        /// A kernel of this project's own, on a GPU: all of the update in one launch, on any mix of types.
        Kernel = "kernel",
    }
}

words! {
    /// What becomes of the gradients before a step.
    ZeroGrad, "zero_grad" {
        /// They are freed.
        None = "none",
        /// They stay, set to zero.
        Zero = "zero",
    }
}

/// Which activations backward computes again instead of keeping them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Checkpoint {
    #[default]
    None,
    /// Each block (of the MLP: each layer) is a segment.
    Full,
    /// Each group of so many blocks is a segment, the last one of what is left.
    Every(i64),
    /// The attention core of each block is a segment: from q, k and v to the joined heads.
    Selective,
}

impl Checkpoint {
    /// The one name of policies that do the same: `every:1` is `full`.
    pub fn canonical(self) -> Self {
        if self == Checkpoint::Every(1) { Checkpoint::Full } else { self }
    }

    /// Blocks in a segment; `None` where no block is one.
    pub fn group(self) -> Option<i64> {
        match self {
            Checkpoint::None | Checkpoint::Selective => None,
            Checkpoint::Full => Some(1),
            Checkpoint::Every(blocks) => Some(blocks.max(1)),
        }
    }
}

impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Checkpoint::None => f.pad("none"),
            Checkpoint::Full => f.pad("full"),
            Checkpoint::Every(blocks) => f.pad(&format!("every:{blocks}")),
            Checkpoint::Selective => f.pad("selective"),
        }
    }
}

impl FromStr for Checkpoint {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "none" => Ok(Checkpoint::None),
            "full" => Ok(Checkpoint::Full),
            "selective" => Ok(Checkpoint::Selective),
            _ => {
                let blocks = word.strip_prefix("every:").and_then(|blocks| blocks.parse().ok());
                let allowed = "allowed: none, full, every:K (groups of K blocks), selective";
                blocks.map(Checkpoint::Every).ok_or_else(|| allowed.to_owned())
            }
        }
    }
}

impl Serialize for Checkpoint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
