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
        /// Parameters, gradients and activations in bfloat16.
        Bf16 = "bf16",
        /// Parameters in f32; forward computes in bfloat16 where autocast says so.
        AmpBf16 = "amp-bf16",
    }
}

words! {
    /// What Adam's states are kept in.
    StateType, "state type" {
        F32 = "f32",
        Bf16 = "bf16",
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
