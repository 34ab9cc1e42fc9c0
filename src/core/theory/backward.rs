//! The highest point of one backward, found by walking through it: what each operation of libtorch 2.11 makes
//! and releases, in its order; with checkpointing, what is computed again where it is called for, too.
//!
//! What a segment computes again belongs to nobody but the node that needs it, which so releases it as soon as its
//! gradients are computed, and not, as what forward has saved, when all of its work is done.

use super::choices::{Attention, Checkpoint, Float, Precision};
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

/// On one side of a linear layer: the stream, to and from whose type autocast casts, or another product.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Stream,
    Product,
}

/// What a linear layer releases of its input before the gradient of its bias is made, and after; whether it has been
/// computed again.
struct Released {
    again: bool,
    early: i128,
    late: i128,
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

    /// The first block of the segment whose last one this is.
    fn segment_ending_in(&self, block: i64, blocks: i64) -> Option<i64> {
        let group = self.checkpoint.group()?;
        let last = block + 1 == blocks || (block + 1) % group == 0;
        last.then_some(block / group * group)
    }

    /// A block's forward once more; nothing is run after the last linear layer of a segment has saved its input.
    fn block_again(&mut self, heads: i128, attention: Attention, last: bool) {
        let width = self.width;
        let each = self.product * self.positions * width;
        self.norm_again();
        self.linear_again(width, 3 * width, Side::Stream);
        self.make(3 * each);
        match attention {
            Attention::Sdpa => self.sdpa_again(heads),
            Attention::Math => {
                self.softmax_again(heads);
                self.make(each); // by head
                self.free(self.scores(heads));
                self.make(each); // joined
            }
        }
        self.linear_again(width, width, Side::Product);
        self.make(each);
        if attention == Attention::Math {
            self.free(3 * self.copied() + each); // q, k and v in one block, where they were copied; by head
        }
        self.add_again();
        self.norm_again();
        self.linear_again(width, 4 * width, Side::Stream);
        self.make(4 * each);
        self.make(4 * each);
        self.linear_again(4 * width, width, Side::Product);
        if last {
            self.free_rounded();
        } else {
            self.make(each);
            self.add_again();
        }
    }

    /// An MLP's layer; GELU saves the sum before it computes.
    fn layer_again(&mut self, first: bool, last: bool) {
        let each = self.product * self.positions * self.width;
        self.linear_again(self.width, self.width, if first { Side::Stream } else { Side::Product });
        self.make(each);
        if !last {
            self.make(each);
        }
    }

    fn norm_again(&mut self) {
        self.make(self.stream * self.positions * (self.width + 2));
    }

    /// What autocast makes before a linear layer computes: copies of bias and weight, and of an f32 input.
    fn linear_again(&mut self, inputs: i128, outputs: i128, x: Side) {
        if self.autocast {
            self.make(self.product * outputs);
            self.make(self.product * inputs * outputs);
            if x == Side::Stream {
                self.make(self.product * self.positions * inputs);
            }
        }
    }

    /// What a half of a block gives is added to the stream.
    fn add_again(&mut self) {
        let stream = self.stream * self.positions * self.width;
        self.free_rounded();
        if self.autocast {
            self.make(stream);
        }
        self.make(stream);
        if self.autocast {
            self.free(stream);
        }
        self.free(self.product * self.positions * self.width);
    }

    /// A norm's f32 output under autocast, which needs its rounded copy only.
    fn free_rounded(&mut self) {
        if self.autocast {
            self.free(self.stream * self.positions * self.width);
        }
    }

    /// Autocast's cache of biases goes when a segment has been computed again.
    fn end_of_autocast(&mut self, biases: i128) {
        if self.autocast {
            self.free(self.product * biases);
        }
    }

    fn sdpa_again(&mut self, heads: i128) {
        let buffer = self.threads * flash_forward_buffer(self.seq, self.width / heads, self.product);
        self.make(self.product * self.positions * self.width + 4 * self.positions * heads + buffer);
        self.free(buffer);
    }

    /// Copies of q, k and v, and the softmax; the scaled scores are still there.
    fn softmax_again(&mut self, heads: i128) {
        let (copied, scores) = (self.copied(), self.scores(heads));
        self.make(2 * copied);
        self.make(scores);
        self.make(scores + 8 + self.product); // scaled, by a number on the heap
        self.free(scores + 8 + self.product);
        self.make(scores); // masked
        self.make(scores);
        self.free(scores);
        self.make(copied);
    }

    fn scores(&self, heads: i128) -> i128 {
        self.product * self.positions * heads * self.seq
    }

    /// Of q, k or v, side by side for each head: a single sequence needs no copies.
    fn copied(&self) -> i128 {
        if self.positions == self.seq { 0 } else { self.product * self.positions * self.width }
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

    /// A gradient of the product's type becomes one of the stream's.
    fn cast(&mut self, numbers: i128) {
        self.make(self.stream * numbers);
        self.free(self.product * numbers);
    }

    /// `y = x·Wᵀ + b`; x is saved, and released here.
    fn linear(&mut self, inputs: i128, x: Side, outputs: i128, y: Side) {
        let saved = self.product * self.positions * inputs;
        self.linear_but_for_its_input(inputs, x, outputs, y, self.released(saved));
    }

    fn linear_unsegmented(&mut self, inputs: i128, x: Side, outputs: i128, y: Side) {
        let saved = self.product * self.positions * inputs;
        self.linear_but_for_its_input(
            inputs,
            x,
            outputs,
            y,
            Released { again: false, early: 0, late: saved },
        );
    }

    /// Its input is the segment's, which goes with the last of the segment's nodes. Autocast has rounded the
    /// stream for it once more.
    fn first_linear_of_segment(&mut self, x: Side) {
        let [stream, product] = [self.stream, self.product].map(|each| each * self.positions * self.width);
        let (early, late) = if x == Side::Stream && self.autocast { (product, stream) } else { (0, product) };
        let released = Released { again: true, early, late };
        self.linear_but_for_its_input(self.width, x, self.width, Side::Product, released);
    }

    /// How a layer of a block releases what it has saved.
    fn released(&self, saved: i128) -> Released {
        match self.checkpoint.group() {
            Some(_) => Released { again: true, early: saved, late: 0 },
            None => Released { again: false, early: 0, late: saved },
        }
    }

    fn linear_but_for_its_input(
        &mut self,
        inputs: i128,
        x: Side,
        outputs: i128,
        y: Side,
        Released { again, early, late }: Released,
    ) {
        let [x_bytes, y_bytes, weight] =
            [self.positions * inputs, self.positions * outputs, inputs * outputs].map(|n| self.product * n);
        let copy = if self.autocast { weight } else { 0 };
        // The stream's gradient is needed once more, so that it is used as it is or cast.
        if y == Side::Stream && self.autocast {
            self.make(y_bytes);
        }
        self.make(x_bytes + weight);
        if again {
            self.free(copy + early);
        }
        self.make(self.product * outputs);
        self.free(late);
        if y == Side::Product || self.autocast {
            self.free(y_bytes);
        }
        if !again {
            self.free(copy);
        }
        if self.autocast {
            if x == Side::Stream {
                self.cast(self.positions * inputs);
            }
            self.cast(inputs * outputs);
            self.added(inputs * outputs);
            self.cast(outputs);
            self.added(outputs);
        } else {
            self.added(inputs * outputs + outputs);
        }
    }

    /// A parameter's gradient is its `.grad`, or is added to it and released.
    fn added(&mut self, numbers: i128) {
        if self.adds {
            self.free(self.stream * numbers);
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

    /// Attention's projection. The fused kernel has saved its output, which is the projection's input, too; but not
    /// if it is to run again.
    fn attention_to_stream(&mut self, attention: Attention) {
        let joined = self.product * self.positions * self.width;
        let shared = attention == Attention::Sdpa && self.checkpoint != Checkpoint::Selective;
        let released = self.released(if shared { 0 } else { joined });
        self.linear_but_for_its_input(self.width, Side::Product, self.width, Side::Stream, released);
    }

    fn sdpa(&mut self, heads: i128) {
        let each = self.product * self.positions * self.width;
        if self.checkpoint == Checkpoint::Selective {
            self.sdpa_again(heads);
        }
        let buffer = self.threads * flash_buffer(self.seq, self.product);
        self.make(3 * each + buffer);
        // The gradient given; q, k and v; the logsumexp; the output.
        self.free(buffer + each + 3 * each + 4 * self.positions * heads + each);
        self.make(3 * each); // q's, k's and v's gradients side by side
        self.free(3 * each);
    }

    fn math(&mut self, heads: i128) {
        let each = self.product * self.positions * self.width;
        let scores = self.scores(heads);
        self.make(each); // by head
        self.free(each);
        if self.checkpoint == Checkpoint::Selective {
            self.softmax_again(heads);
            self.free(scores);
        }
        // Uncopied q, k and v stay one block, which goes with the last of them.
        let v = self.copied();
        self.make(each + scores);
        self.free(each + v); // the gradient given, v
        self.make(scores);
        self.free(2 * scores); // the gradient given, the softmax
        self.make(scores); // masked
        self.free(scores);
        self.make(scores + 8 + self.product); // scaled, by a number on the heap
        self.free(scores + 8 + self.product);
        self.make(2 * each);
        self.free(scores + 3 * each - v); // the gradient given, q and k
        if self.checkpoint == Checkpoint::Selective {
            self.free(3 * v); // what they were copied from
        }
        self.make(3 * each); // q's, k's and v's gradients side by side
        self.free(3 * each);
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

/// What a thread of flash attention works in: a block of scores, a row's maximum and sum, and its output, in f32;
/// the scores again in a reduced type.
fn flash_forward_buffer(seq: i128, width: i128, product: i128) -> i128 {
    let (rows, columns) = flash_block(seq);
    4 * rows * (columns + 2 + width) + reduced(product) * rows * columns
}

/// What a thread of flash attention's backward works in: two blocks of scores in f32, both again in a
/// reduced type, and a row.
fn flash_buffer(seq: i128, product: i128) -> i128 {
    let (rows, columns) = flash_block(seq);
    2 * rows * columns * (4 + reduced(product)) + 4 * rows
}

/// Rows and columns of the scores that are computed at once.
fn flash_block(seq: i128) -> (i128, i128) {
    let rows = match seq {
        ..192 => 32,
        192..768 => 64,
        _ => 256,
    };
    (seq.min(rows), seq.min(512))
}

/// Bytes of a number in a type below f32, 0 for f32.
fn reduced(product: i128) -> i128 {
    if product == i128::from(Float::F32.bytes()) { 0 } else { product }
}
