//! What a segment under checkpointing makes as backward runs it again.

use super::Walk;
use super::attention::flash_forward_buffer;
use super::linear::Side;
use crate::theory::choices::Attention;

impl Walk {
    /// The first block of the segment whose last one this is.
    pub(super) fn segment_ending_in(&self, block: i64, blocks: i64) -> Option<i64> {
        let group = self.checkpoint.group()?;
        let last = block + 1 == blocks || (block + 1) % group == 0;
        last.then_some(block / group * group)
    }

    /// A block's forward once more; nothing is run after the last linear layer of a segment has saved its input.
    pub(super) fn block_again(&mut self, heads: i128, attention: Attention, last: bool) {
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
    pub(super) fn layer_again(&mut self, first: bool, last: bool) {
        let each = self.product * self.positions * self.width;
        self.linear_again(self.width, self.width, if first { Side::Stream } else { Side::Product });
        self.make(each);
        if !last {
            self.make(each);
        }
    }

    /// Autocast's cache of biases goes when a segment has been computed again.
    pub(super) fn end_of_autocast(&mut self, biases: i128) {
        if self.autocast {
            self.free(self.product * biases);
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

    pub(super) fn sdpa_again(&mut self, heads: i128) {
        let buffer = self.threads * flash_forward_buffer(self.seq, self.width / heads, self.product);
        self.make(self.product * self.positions * self.width + 4 * self.positions * heads + buffer);
        self.free(buffer);
    }

    /// Copies of q, k and v, and the softmax; the scaled scores are still there.
    pub(super) fn softmax_again(&mut self, heads: i128) {
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
}
