//! What a run of a toy model chooses among, as far as its memory depends on it.

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
    /// How AdamW's update is computed, as PyTorch names the ways.
    AdamWKind, "AdamW" {
        /// One kernel for everything.
        Fused = "fused",
        /// All tensors at once, one operation after the other.
        Foreach = "foreach",
        /// One tensor after the other.
        Loop = "loop",
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
