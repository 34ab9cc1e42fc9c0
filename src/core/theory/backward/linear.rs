//! A linear layer's backward, and where its gradients go.

use super::Walk;

/// On one side of a linear layer: the stream, to and from whose type autocast casts, or another product.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Stream,
    Product,
}

/// What a linear layer releases of its input before the gradient of its bias is made, and after; whether it has been
/// computed again.
pub(super) struct Released {
    again: bool,
    early: i128,
    late: i128,
}

impl Walk {
    /// `y = x·Wᵀ + b`; x is saved, and released here.
    pub(super) fn linear(&mut self, inputs: i128, x: Side, outputs: i128, y: Side) {
        let saved = self.product * self.positions * inputs;
        self.linear_but_for_its_input(inputs, x, outputs, y, self.released(saved));
    }

    pub(super) fn linear_unsegmented(&mut self, inputs: i128, x: Side, outputs: i128, y: Side) {
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
    pub(super) fn first_linear_of_segment(&mut self, x: Side) {
        let [stream, product] = [self.stream, self.product].map(|each| each * self.positions * self.width);
        let (early, late) = if x == Side::Stream && self.autocast { (product, stream) } else { (0, product) };
        let released = Released { again: true, early, late };
        self.linear_but_for_its_input(self.width, x, self.width, Side::Product, released);
    }

    /// How a layer of a block releases what it has saved.
    pub(super) fn released(&self, saved: i128) -> Released {
        match self.checkpoint.group() {
            Some(_) => Released { again: true, early: saved, late: 0 },
            None => Released { again: false, early: 0, late: saved },
        }
    }

    pub(super) fn linear_but_for_its_input(
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

    /// A gradient of the product's type becomes one of the stream's.
    pub(super) fn cast(&mut self, numbers: i128) {
        self.make(self.stream * numbers);
        self.free(self.product * numbers);
    }

    /// A parameter's gradient is its `.grad`, or is added to it and released.
    pub(super) fn added(&mut self, numbers: i128) {
        if self.adds {
            self.free(self.stream * numbers);
        }
    }
}
