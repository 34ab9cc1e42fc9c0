//! What backward needs of forward.

use super::choices::{Attention, Checkpoint, Precision};
use super::shape::{Architecture, Shape, VOCABULARY, bounded};

impl Shape {
    /// What backward needs of forward, as libtorch 2.11 saves it on a CPU, [autocast's copies] included;
    /// N = batch · seq, C the width, H the heads, T the sequence, V the vocabulary, s the bytes of a number
    /// in the stream (4; bf16: 2), e those of one in a product (4; bf16 and amp-bf16: 2).
    ///
    /// GPT, each block: its input and the stream between its halves (2·sNC), both layer norms' outputs, as
    /// the linear layers take them (2·eNC), with mean and 1/σ of each position (2·2sN), the MLP before and
    /// after GELU (2·4eNC); attention with sdpa: q, k and v in one block (3eNC), output (eNC) and logsumexp
    /// (4NH, f32 always); with math: copies of q, k and v (3eNC), softmax (eNHT) and the joined output
    /// (eNC). The head: the last norm's input (sNC) and output (eNC), its statistics (2sN), log-softmax
    /// (sNV); the positions (8T) and the loss's total weight (s).
    ///
    /// MLP, each layer: its input (eNC) and its sum before GELU (eNC); the head's input (eNC), log-softmax
    /// (sNV) and the loss's total weight (s).
    ///
    /// So a GPT takes LN(64C + 16 + 4H) + N(8C + 8 + 4V) + 8T + 4 in f32 and
    /// LN(32C + 8 + 4H) + N(4C + 4 + 2V) + 8T + 2 in bf16; under autocast LN(36C + 16 + 4H) +
    /// N(6C + 8 + 4V) + 8T + 4, where the norms' f32 outputs are rounded and dropped, and the loss is f32.
    ///
    /// With checkpointing of segments of K blocks (`full`: 1), n = ⌈L/K⌉ of them keep their inputs, n·sNC, and
    /// nothing else of the blocks is kept; an MLP's keep sNC + (n − 1)·eNC, as the first input is not rounded yet.
    /// `selective` takes away sdpa's logsumexp (4NH a block), or math's softmax (eNHT): q, k and v are kept as they
    /// came, in one block, and each head's output, joined, is the next layer's input. So a GPT takes in f32
    /// nN·4C + N(8C + 8 + 4V) + 8T + 4, and LN(64C + 16) + N(8C + 8 + 4V) + 8T + 4 with `selective`.
    ///
    /// Backward has one segment's blocks at once beside the inputs that are left, so that the best K lies where
    /// (L/K)·i + K·a is least: K ≈ √(L·i/a), of a block's bytes a, and i of its input. In f32 an MLP's layer keeps
    /// a = 2i, K ≈ √(L/2); a GPT's block, with i = 4C and a = 64C + 16 + 4H, 16 times its input: K ≈ √L / 4, and 1
    /// up to some 32 layers, where half of the inputs begin to outweigh a second block. (What forward alone keeps
    /// falls with every larger K.)
    ///
    /// Batch and targets are saved too, but are input. Korthikanti et al. 2022 count `s·b·h·(34 + 5·a·s/h)`
    /// bytes a block in 16 bit, where dropout keeps a mask and an output beside each softmax. Without
    /// dropout their list gives 32C + 2HT a position in bf16, and twice that in f32, as `math` here; they
    /// leave out the norms' statistics, and sdpa keeps a logsumexp (4H) for the softmax.
    ///
    /// [autocast's copies]: Shape::autocast_copy_bytes
    pub fn activation_bytes(&self) -> i64 {
        let [layers, width, seq, batch] = [self.layers, self.width, self.seq, self.batch].map(i128::from);
        let [stream, product] =
            [self.precision.parameter(), self.precision.product()].map(|float| i128::from(float.bytes()));
        let positions = batch * seq;
        let logits = positions * stream * i128::from(VOCABULARY);
        let kept = match self.architecture {
            Architecture::Gpt { heads, attention } => {
                let each = match (attention, self.checkpoint) {
                    (_, Checkpoint::Selective) => 0,
                    (Attention::Sdpa, _) => 4,
                    (Attention::Math, _) => product * seq,
                };
                let block = (2 * stream + 14 * product) * width + 4 * stream + i128::from(heads) * each;
                let blocks = self.segments().map_or(layers * block, |segments| segments * stream * width);
                let head = (stream + product) * width + 2 * stream;
                positions * (blocks + head) + logits + 8 * seq + stream
            }
            Architecture::Mlp => {
                let each = product * width;
                // The first segment's input is not rounded yet.
                let inputs = |segments| stream * width + (segments - 1) * each;
                let blocks = self.segments().map_or(2 * layers * each, inputs);
                positions * (blocks + each) + logits + stream
            }
        };
        bounded(kept + i128::from(self.autocast_copy_bytes()))
    }

    /// Into how many segments all blocks are divided, each of which keeps its input only.
    pub(super) fn segments(&self) -> Option<i128> {
        let group = self.checkpoint.group()?;
        Some(i128::from(self.layers).div_euclid(i128::from(group)) + i128::from(self.layers % group != 0))
    }

    /// The bf16 copies of the weights of linear layers that autocast makes and backward needs: each layer's
    /// gradient of its input is a product with its weight. Under autocast 2·12C² a block and 2VC of the head
    /// for the GPT, 2C² a layer and 2VC for the MLP; else nothing. Backward releases each after its layer.
    /// Where blocks are computed again, their weights are copied again, so that only the head's 2VC are kept.
    ///
    /// Autocast copies biases too, but no gradient needs them: they go with its cache as forward ends.
    pub fn autocast_copy_bytes(&self) -> i64 {
        if self.precision != Precision::AmpBf16 {
            return 0;
        }
        let blocks = if self.segments().is_some() { 0 } else { self.block_weights() };
        bounded(2 * (blocks + i128::from(VOCABULARY) * i128::from(self.width)))
    }

    /// Of all linear layers but the head.
    fn block_weights(&self) -> i128 {
        let [layers, width] = [self.layers, self.width].map(i128::from);
        let matrices = match self.architecture {
            Architecture::Gpt { .. } => 12,
            Architecture::Mlp => 1,
        };
        layers * matrices * width * width
    }

    /// The bf16 copies that autocast's cache alone holds until forward ends: of the biases, and of the weights of
    /// blocks that will be computed again.
    pub(super) fn autocast_cache_bytes(&self) -> i128 {
        if self.precision != Precision::AmpBf16 {
            return 0;
        }
        let [layers, width] = [self.layers, self.width].map(i128::from);
        let biases = match self.architecture {
            // c_attn, c_proj, c_fc, c_proj; the head has none.
            Architecture::Gpt { .. } => layers * 9 * width,
            Architecture::Mlp => layers * width + i128::from(VOCABULARY),
        };
        2 * (biases + if self.segments().is_some() { self.block_weights() } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::super::shape::tests::{GPT, shape};

    const LONG: &str =
        r#"{"model":"gpt","layers":2,"width":64,"heads":4,"seq":160,"batch":1,"attention":"math"}"#;
    const DEEP: &str = r#"{"model":"mlp","layers":8,"width":128,"seq":64,"batch":8}"#;

    /// As measured with PyTorch 2.11: what forward made and backward released.
    #[test]
    fn activations_are_what_was_measured() {
        let small = r#""layers":5,"width":24,"heads":8,"seq":33,"batch":2"#;
        let mlp = r#""model":"mlp","width":200,"layers":3,"seq":4,"batch":2"#;
        for (further, attention, measured) in [
            ("", "sdpa", [17_895_940, 8_964_610, 12_063_236]),
            ("", "math", [19_960_324, 9_980_418, 13_079_044]),
            (small, "sdpa", [603_772, 307_298, 460_252]),
            (small, "math", [941_692, 470_978, 623_932]),
            (mlp, "sdpa", [52_996, 26_498, 372_996]),
        ] {
            let config = GPT.replace("sdpa", attention);
            for (dtype, measured) in ["f32", "bf16", "amp-bf16"].into_iter().zip(measured) {
                let comma = if further.is_empty() { "" } else { "," };
                let shape = shape(&config, &format!("{further}{comma}\"dtype\":\"{dtype}\"")).unwrap();
                assert_eq!(shape.activation_bytes(), measured, "{shape:?}");
            }
        }
    }

    /// As measured with PyTorch 2.11: `torch.utils.checkpoint`, not reentrant.
    #[test]
    fn activations_of_segments_are_what_was_measured() {
        for (config, attention, checkpoint, measured) in [
            (GPT, "sdpa", "full", [2_101_764, 1_051_138, 2_036_228]),
            (GPT, "sdpa", "every:3", [1_577_476, 788_994, 1_511_940]),
            (GPT, "sdpa", "selective", [17_863_172, 8_931_842, 12_030_468]),
            (GPT, "math", "full", [2_101_764, 1_051_138, 2_036_228]),
            (GPT, "math", "selective", [17_863_172, 8_931_842, 12_030_468]),
            (LONG, "math", "every:2", [289_284, 145_282, 301_572]),
            (LONG, "math", "selective", [1_564_164, 782_722, 1_199_620]),
            (DEEP, "sdpa", "full", [2_883_588, 1_441_794, 1_900_548]),
            (DEEP, "sdpa", "every:3", [1_572_868, 786_434, 1_245_188]),
        ] {
            let config = config.replace("math", attention).replace("sdpa", attention);
            for (dtype, measured) in ["f32", "bf16", "amp-bf16"].into_iter().zip(measured) {
                let further = format!(r#""dtype":"{dtype}","checkpoint":"{checkpoint}""#);
                let shape = shape(config.as_str(), &further).unwrap();
                assert_eq!(shape.activation_bytes(), measured, "{shape:?}");
            }
        }
    }

    #[test]
    fn only_autocast_copies_weights() {
        assert_eq!(shape(GPT, "").unwrap().autocast_copy_bytes(), 0);
        assert_eq!(shape(GPT, r#""dtype":"bf16""#).unwrap().autocast_copy_bytes(), 0);
        // 2·(12·128² · 4 + 256·128)
        let amp = r#""dtype":"amp-bf16""#;
        assert_eq!(shape(GPT, amp).unwrap().autocast_copy_bytes(), 1_638_400);
        let full = shape(GPT, &format!(r#"{amp},"checkpoint":"full""#)).unwrap();
        assert_eq!(full.autocast_copy_bytes(), 65_536);
    }
}
