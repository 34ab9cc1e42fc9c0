//! Attention's backward: the fused kernel's, and that of single products and a softmax.

use super::Walk;
use super::linear::Side;
use crate::theory::choices::{Attention, Checkpoint, Float};

impl Walk {
    /// Attention's projection. The fused kernel has saved its output, which is the projection's input, too; but not
    /// if it is to run again.
    pub(super) fn attention_to_stream(&mut self, attention: Attention) {
        let joined = self.product * self.positions * self.width;
        let shared = attention == Attention::Sdpa && self.checkpoint != Checkpoint::Selective;
        let released = self.released(if shared { 0 } else { joined });
        self.linear_but_for_its_input(self.width, Side::Product, self.width, Side::Stream, released);
    }

    pub(super) fn sdpa(&mut self, heads: i128) {
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

    pub(super) fn math(&mut self, heads: i128) {
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

    pub(super) fn scores(&self, heads: i128) -> i128 {
        self.product * self.positions * heads * self.seq
    }

    /// Of q, k or v, side by side for each head: a single sequence needs no copies.
    pub(super) fn copied(&self) -> i128 {
        if self.positions == self.seq { 0 } else { self.product * self.positions * self.width }
    }
}

/// What a thread of flash attention works in: a block of scores, a row's maximum and sum, and its output, in f32;
/// the scores again in a reduced type.
pub(super) fn flash_forward_buffer(seq: i128, width: i128, product: i128) -> i128 {
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
