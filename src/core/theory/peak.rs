//! The highest point of a step.

use super::backward;
use super::choices::{Attention, Checkpoint, Precision};
use super::shape::{Architecture, Shape, VOCABULARY, bounded};

impl Shape {
    /// What a step's peak cannot get below: parameters, Adam's states and activations, with the gradients
    /// of log-softmax and of the logits at the beginning of backward (both of the loss's type, which is f32
    /// under autocast too), or else with all gradients at its end. Where gradients are kept during forward,
    /// they are there at the beginning too.
    ///
    /// With batch, mask and loss it is the measured peak wherever backward is highest at its beginning.
    pub fn floor_bytes(&self) -> i64 {
        let kept = if self.training.keeps_gradients() { self.gradient_bytes() } else { 0 };
        let begin = i128::from(self.activation_bytes()) + i128::from(kept) + 2 * self.logit_bytes();
        bounded(self.held() + begin.max(i128::from(self.gradient_bytes())))
    }

    /// The highest total of a step that has optimizer states already, batch and loss included: the highest
    /// of the end of forward, of backward and of the optimizer.
    pub fn peak_bytes(&self) -> i64 {
        let gradients = i128::from(self.gradient_bytes());
        let kept = if self.training.keeps_gradients() { gradients } else { 0 };
        let constant = self.held() + i128::from(self.buffer_bytes());
        let forward_end = constant
            + kept
            + i128::from(self.activation_bytes())
            + i128::from(self.input_bytes())
            + i128::from(self.precision.parameter().bytes());
        let optimizer = constant + gradients + i128::from(self.optimizer_temporary_bytes());
        let within = self.end_of_forward().max(self.attention_of_forward()).max(backward::highest(self));
        bounded(optimizer.max(forward_end + within))
    }

    /// What is alive as the log-softmax is made, above what stays of forward: the logits, under autocast as
    /// they were before they were cast, too, with what its cache still holds.
    fn end_of_forward(&self) -> i128 {
        let rounded = if self.precision == Precision::AmpBf16 { self.logit_bytes() / 2 } else { 0 };
        self.logit_bytes() + rounded + self.autocast_cache_bytes()
    }

    /// What is alive as the last block's spelt-out attention takes its softmax (scaled and masked scores, and the
    /// softmax itself), above what stays of forward: the highest point where rows of scores are much longer than
    /// those of logits. Where blocks are computed again that is so in backward, with more around it.
    fn attention_of_forward(&self) -> i128 {
        let Architecture::Gpt { heads, attention: Attention::Math } = self.architecture else { return 0 };
        if self.checkpoint.group().is_some() {
            return 0;
        }
        let [stream, product] =
            [self.precision.parameter(), self.precision.product()].map(|float| i128::from(float.bytes()));
        let [layers, width, seq, batch] = [self.layers, self.width, self.seq, self.batch].map(i128::from);
        let positions = batch * seq;
        let each = product * positions * width;
        let copied = if batch == 1 { 0 } else { each };
        let scores = product * positions * i128::from(heads) * seq;
        // The block of q, k and v (3), copies of q and k (2), and the three: the block stays, or the copies do with
        // the softmax, and one of v that is not made yet.
        let beyond = match self.checkpoint {
            Checkpoint::Selective => 2 * copied + 3 * scores,
            _ => 2 * copied + 2 * scores,
        };
        // Joined heads, the second norm, the MLP, the last norm; both streams; statistics; log-softmax, loss and its
        // total weight.
        let later = 11 * each + 2 * stream * positions * (width + 2) + self.logit_bytes() + 2 * stream;
        let autocast = if self.precision == Precision::AmpBf16 {
            // The first norm's output and biases, less the copies of weights that are not made yet.
            let later = width * (9 * width + i128::from(VOCABULARY));
            stream * positions * width + 2 * ((9 * layers - 6) * width - later)
        } else {
            0
        };
        beyond - later + autocast
    }

    /// The logits in the loss's type.
    fn logit_bytes(&self) -> i128 {
        let positions = i128::from(self.batch) * i128::from(self.seq);
        positions * i128::from(VOCABULARY) * i128::from(self.precision.parameter().bytes())
    }

    fn held(&self) -> i128 {
        i128::from(self.parameter_bytes()) + i128::from(self.adam_state_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::super::shape::tests::{GPT, shape};

    const WIDE: &str =
        r#"{"model":"gpt","layers":1,"width":256,"heads":4,"seq":8,"batch":1,"attention":"sdpa"}"#;
    const LONG: &str =
        r#"{"model":"gpt","layers":2,"width":64,"heads":4,"seq":160,"batch":1,"attention":"math"}"#;
    const DEEP: &str = r#"{"model":"mlp","layers":8,"width":128,"seq":64,"batch":8}"#;
    const MLP: &str = r#"{"model":"mlp","layers":3,"width":200,"seq":4,"batch":2}"#;

    /// As measured with PyTorch 2.11, on one thread, in a step that has optimizer states. The highest point
    /// is the beginning of backward (the default GPT), its end (`WIDE`), attention (`LONG`), or the optimizer.
    #[test]
    fn peaks_are_what_was_measured() {
        for (config, further, measured) in [
            (GPT, "", 28_964_568),
            (GPT, r#""dtype":"bf16""#, 14_503_124),
            (GPT, r#""dtype":"amp-bf16""#, 23_131_864),
            (GPT, r#""dtype":"bf16","state_dtype":"f32""#, 17_840_340),
            (GPT, r#""dtype":"bf16","master_weights":true"#, 21_177_556),
            (GPT, r#""zero_grad":"zero""#, 32_301_784),
            (WIDE, "", 14_250_248),
            (WIDE, r#""dtype":"bf16""#, 7_125_252),
            (WIDE, r#""dtype":"amp-bf16""#, 14_132_040),
            (LONG, "", 4_350_072),
            (LONG, r#""dtype":"bf16""#, 2_189_812),
            (LONG, r#""dtype":"amp-bf16""#, 3_485_816),
            (GPT, r#""attention":"math","layers":3,"width":32,"heads":8,"seq":200,"batch":4"#, 30_313_376),
            (MLP, "", 3_578_668),
            (MLP, r#""dtype":"amp-bf16""#, 3_578_668),
        ] {
            assert_eq!(shape(config, further).unwrap().peak_bytes(), measured, "{config} {further}");
        }
    }

    /// As measured with PyTorch 2.11: `torch.utils.checkpoint`, not reentrant.
    #[test]
    fn peaks_of_segments_are_what_was_measured() {
        for (config, attention, checkpoint, measured) in [
            (GPT, "sdpa", "full", [18_315_992, 9_166_548, 16_349_400]),
            (GPT, "sdpa", "every:3", [25_151_192, 12_592_340, 20_301_016]),
            (GPT, "sdpa", "selective", [28_931_800, 14_470_356, 23_099_096]),
            (GPT, "math", "full", [18_836_184, 9_424_596, 16_607_448]),
            (GPT, "math", "selective", [28_935_896, 14_474_452, 23_103_192]),
            (LONG, "math", "every:2", [4_350_072, 2_189_812, 3_264_632]),
            (LONG, "math", "selective", [3_940_472, 1_985_012, 3_076_216]),
            (DEEP, "sdpa", "full", [6_315_092, 3_161_680, 5_334_612]),
            (DEEP, "sdpa", "every:3", [5_006_420, 2_507_344, 4_679_252]),
        ] {
            let config = config.replace("math", attention).replace("sdpa", attention);
            for (dtype, measured) in ["f32", "bf16", "amp-bf16"].into_iter().zip(measured) {
                let further = format!(r#""dtype":"{dtype}","checkpoint":"{checkpoint}""#);
                let shape = shape(config.as_str(), &further).unwrap();
                assert_eq!(shape.peak_bytes(), measured, "{shape:?}");
                assert!(shape.floor_bytes() <= measured, "{shape:?}");
            }
        }
    }

    #[test]
    fn where_backward_is_highest_at_its_beginning_the_floor_with_batch_and_loss_is_the_peak() {
        for (further, loss) in [
            ("", 4),
            (r#""dtype":"bf16""#, 2),
            (r#""dtype":"amp-bf16""#, 4),
            (r#""dtype":"bf16","master_weights":true"#, 2),
            (r#""zero_grad":"zero""#, 4),
        ] {
            let gpt = shape(GPT, further).unwrap();
            assert_eq!(gpt.floor_bytes() + gpt.input_bytes() + loss, gpt.peak_bytes(), "{further}");
        }
    }

    #[test]
    fn absurd_sizes_stop_at_the_largest_number() {
        let huge = shape(GPT, r#""width":16777216,"layers":4096,"seq":16777216,"batch":16777216"#).unwrap();
        assert_eq!((huge.floor_bytes(), huge.peak_bytes()), (i64::MAX, i64::MAX));
    }
}
