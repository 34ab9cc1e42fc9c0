//! The highest point of one backward, found by walking through it: what each operation of libtorch 2.11 makes
//! and releases, in its order; with checkpointing, what is computed again where it is called for, too.
//!
//! What a segment computes again belongs to nobody but the node that needs it, which so releases it as soon as its
//! gradients are computed, and not, as what forward has saved, when all of its work is done.

mod again;
mod attention;
mod linear;

use linear::Side;

use super::choices::{Attention, Checkpoint, Precision};
use super::shape::{Architecture, Shape, VOCABULARY};

/// The most that is alive during backward, above what is alive as forward ends.
pub fn highest(shape: &Shape) -> i128 {
    let mut walk = Walk::new(shape);
    match shape.architecture {
        Architecture::Gpt { heads, attention } => walk.gpt(shape.layers, i128::from(heads), attention),
        Architecture::Mlp => walk.mlp(shape.layers),
    }
    walk.highest
}

/// Bytes relative to the end of forward, and the sizes that the operations need.
struct Walk {
    live: i128,
    highest: i128,
    /// Bytes of a number in the stream, in gradients of parameters, and in the loss.
    stream: i128,
    /// Bytes of a number in a product.
    product: i128,
    autocast: bool,
    /// New gradients are added to the ones there are, and released.
    adds: bool,
    micro_batches: bool,
    checkpoint: Checkpoint,
    positions: i128,
    seq: i128,
    width: i128,
    threads: i128,
}

const V: i128 = VOCABULARY as i128;

impl Walk {
    fn new(shape: &Shape) -> Walk {
        let [positions, seq, width, threads] =
            [shape.batch.saturating_mul(shape.seq), shape.seq, shape.width, shape.training.threads]
                .map(i128::from);
        Walk {
            live: 0,
            highest: 0,
            stream: i128::from(shape.precision.parameter().bytes()),
            product: i128::from(shape.precision.product().bytes()),
            autocast: shape.precision == Precision::AmpBf16,
            adds: shape.training.keeps_gradients(),
            micro_batches: shape.training.accumulate > 1,
            checkpoint: shape.checkpoint,
            positions,
            seq,
            width,
            threads,
        }
    }

    fn make(&mut self, bytes: i128) {
        self.live += bytes;
        self.highest = self.highest.max(self.live);
    }

    fn free(&mut self, bytes: i128) {
        self.live -= bytes;
    }

    fn gpt(&mut self, layers: i64, heads: i128, attention: Attention) {
        self.loss();
        self.tied_head();
        self.norm();
        for block in (0..layers).rev() {
            if let Some(first) = self.segment_ending_in(block, layers) {
                // Autocast rounds the stream's gradient for the last linear layer before that asks for its input.
                let rounded = if self.autocast { self.product * self.positions * self.width } else { 0 };
                self.make(rounded);
                for again in first..=block {
                    self.block_again(heads, attention, again == block);
                }
                self.end_of_autocast(9 * i128::from(block - first + 1) * self.width);
                self.free(rounded); // the layer counts it itself
            }
            self.block(heads, attention);
        }
        self.embeddings();
    }

    fn block(&mut self, heads: i128, attention: Attention) {
        let width = self.width;
        self.linear(4 * width, Side::Product, width, Side::Stream);
        self.gelu(4 * width);
        self.linear(width, Side::Stream, 4 * width, Side::Product);
        self.norm_beside_stream();
        self.attention_to_stream(attention);
        match attention {
            Attention::Sdpa => self.sdpa(heads),
            Attention::Math => self.math(heads),
        }
        self.linear(width, Side::Stream, 3 * width, Side::Product);
        self.norm_beside_stream();
    }

    fn mlp(&mut self, layers: i64) {
        let width = self.width;
        self.loss();
        self.linear_unsegmented(width, Side::Product, V, Side::Product);
        for layer in (0..layers).rev() {
            if let Some(first) = self.segment_ending_in(layer, layers) {
                for again in first..=layer {
                    self.layer_again(again == 0, again == layer);
                }
                self.end_of_autocast(i128::from(layer - first + 1) * width);
            }
            self.gelu(width);
            let input = if layer == 0 { Side::Stream } else { Side::Product };
            match self.checkpoint.group() {
                Some(group) if layer % group == 0 => self.first_linear_of_segment(input),
                _ => self.linear(width, input, width, Side::Product),
            }
        }
        self.make(self.stream * V * width);
    }

    /// From the loss to the gradient of the logits, which is cast where they were.
    fn loss(&mut self) {
        let [logits, stream] = [self.stream * self.positions * V, self.stream];
        // The loss's gradient lives to the end; with micro-batches so does the loss's share of the mean.
        self.make(stream * if self.micro_batches { 2 } else { 1 });
        self.make(logits);
        self.free(stream); // the total weight
        self.make(logits);
        self.free(2 * logits); // nll's gradient, the log-softmax
        if self.autocast {
            self.make(self.product * self.positions * V);
            self.free(logits);
        }
    }

    /// The head's gradient of the embedding is not added anywhere yet: it waits for the embedding's own.
    fn tied_head(&mut self) {
        let [hidden, logits, weight] =
            [self.positions * self.width, self.positions * V, V * self.width].map(|n| self.product * n);
        self.make(weight);
        self.make(hidden);
        self.free(logits + hidden); // the logits' gradient, the norm's output
        if self.autocast {
            self.free(weight); // autocast's copy
            self.cast(self.positions * self.width);
            self.cast(V * self.width);
        }
    }

    fn gelu(&mut self, width: i128) {
        let bytes = self.product * self.positions * width;
        self.make(bytes);
        self.free(2 * bytes); // the gradient given, the sum saved
    }

    /// Mean and 1/σ, and its input, are released; what the threads sum for γ and β is put together.
    fn norm(&mut self) {
        let stream = self.stream * self.positions * self.width;
        let partial = self.threads * 2 * self.stream * self.width;
        self.make(stream + 2 * self.stream * self.width + partial);
        self.free(partial + 2 * stream + 2 * self.stream * self.positions);
        self.added(2 * self.width);
    }

    /// The norm's gradient is added to that of the stream that went past.
    fn norm_beside_stream(&mut self) {
        self.norm();
        self.free(self.stream * self.positions * self.width);
    }

    /// Tokens first, whose gradient is added to the head's; then positions, which were looked up first.
    fn embeddings(&mut self) {
        let [tokens, positions] = [V * self.width, self.seq * self.width].map(|n| self.stream * n);
        self.make(positions); // summed over the batch
        self.make(tokens);
        self.free(self.stream * self.positions * self.width);
        if !self.autocast {
            // The head's is a transposed view, in which nothing can be added in place.
            self.make(tokens);
            self.free(tokens);
        }
        self.free(tokens);
        self.added(V * self.width);
        self.make(positions);
        self.free(positions + 8 * self.seq);
        self.added(self.seq * self.width);
    }
}
