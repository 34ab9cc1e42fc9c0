//! The highest point of one backward, found by walking through it: what each operation of libtorch 2.11 makes
//! and releases, in its order.

use super::choices::{Attention, Float, Precision};
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
        for _ in 0..layers {
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
        self.embeddings();
    }

    fn mlp(&mut self, layers: i64) {
        let width = self.width;
        self.loss();
        self.linear(width, Side::Product, V, Side::Product);
        for layer in (0..layers).rev() {
            self.gelu(width);
            let input = if layer == 0 { Side::Stream } else { Side::Product };
            self.linear(width, input, width, Side::Product);
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

    /// A gradient of the product's type becomes one of the stream's.
    fn cast(&mut self, numbers: i128) {
        self.make(self.stream * numbers);
        self.free(self.product * numbers);
    }

    /// `y = x·Wᵀ + b`; x is saved, and released here.
    fn linear(&mut self, inputs: i128, x: Side, outputs: i128, y: Side) {
        self.linear_but_for_its_input(inputs, x, outputs, y, self.product * self.positions * inputs);
    }

    fn linear_but_for_its_input(&mut self, inputs: i128, x: Side, outputs: i128, y: Side, released: i128) {
        let [x_bytes, y_bytes, weight] =
            [self.positions * inputs, self.positions * outputs, inputs * outputs].map(|n| self.product * n);
        // The stream's gradient is needed once more, so that it is used as it is or cast.
        if y == Side::Stream && self.autocast {
            self.make(y_bytes);
        }
        self.make(x_bytes + weight + self.product * outputs);
        self.free(released);
        if y == Side::Product || self.autocast {
            self.free(y_bytes);
        }
        if self.autocast {
            self.free(weight); // autocast's copy
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

    /// Attention's projection. The fused kernel has saved its output, which is the projection's input, too.
    fn attention_to_stream(&mut self, attention: Attention) {
        let joined = self.product * self.positions * self.width;
        let released = if attention == Attention::Sdpa { 0 } else { joined };
        self.linear_but_for_its_input(self.width, Side::Product, self.width, Side::Stream, released);
    }

    fn sdpa(&mut self, heads: i128) {
        let each = self.product * self.positions * self.width;
        let buffer = self.threads * flash_buffer(self.seq, self.product);
        self.make(3 * each + buffer);
        // The gradient given; q, k and v; the logsumexp; the output.
        self.free(buffer + each + 3 * each + 4 * self.positions * heads + each);
        self.make(3 * each); // q's, k's and v's gradients side by side
        self.free(3 * each);
    }

    fn math(&mut self, heads: i128) {
        let each = self.product * self.positions * self.width;
        let scores = self.product * self.positions * heads * self.seq;
        self.make(each); // by head
        self.free(each);
        // A single sequence needs no copies: its q, k and v stay one block, which goes with the last of them.
        let v = if self.positions == self.seq { 0 } else { each };
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

/// What a thread of flash attention's backward works in: two blocks of scores in f32, both again in a
/// reduced type, and a row.
fn flash_buffer(seq: i128, product: i128) -> i128 {
    let rows = match seq {
        ..192 => 32,
        192..768 => 64,
        _ => 256,
    };
    let (rows, columns) = (seq.min(rows), seq.min(512));
    let reduced = if product == i128::from(Float::F32.bytes()) { 0 } else { product };
    2 * rows * columns * (4 + reduced) + 4 * rows
}
