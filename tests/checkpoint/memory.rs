//! What is alive at the end of forward and at the peak, by the probe's own account and beside PyTorch's.

use stepledger::probe::{Options, Probe};
use stepledger::record::{Category, LedgerMoment, Moment, Trace};
use stepledger::store::Dataset;
use stepledger::train::{Checkpoint, checkpoint_one};
use tch::{Kind, TchError, Tensor, kind::FLOAT_CPU};

use crate::common::{MemorySink, turn};
use crate::program::{Runs, python};
use crate::{Stack, example, leaf, loss};

const BLOCKS: i64 = 4;
const ROWS: i64 = 512;
const WIDTH: i64 = 32;
/// Bytes of one activation of `WIDTH`.
const WHOLE: i64 = 4 * ROWS * WIDTH;

/// The ledger of one step.
struct Ledger(Vec<LedgerMoment>);

impl Ledger {
    /// Makes a model with `make`, runs `forward` on it and backward from what that gives.
    fn of<M>(make: impl Fn() -> M, forward: impl Fn(&M) -> Result<Tensor, TchError>) -> Self {
        Ledger::traced(Trace::Allocations, make, forward)
    }

    fn traced<M>(
        trace: Trace,
        make: impl Fn() -> M,
        forward: impl Fn(&M) -> Result<Tensor, TchError>,
    ) -> Self {
        let _turn = turn();
        let sink = MemorySink::default();
        let mut probe = Probe::start(Options::new("by_hand").trace(trace), sink.clone()).unwrap();
        let model = make();
        let mut step = probe.step();
        let loss = step.forward(|| forward(&model)).unwrap();
        step.backward(|| loss.f_backward()).unwrap();
        step.finish(loss.double_value(&[]), None).unwrap();
        probe.finish().unwrap();
        let kept = sink.0.borrow();
        assert_eq!(kept.steps[0].step.difference_bytes, Some(0));
        let unattributed = kept.steps[0].moments.iter().map(|row| row.bytes[Category::Unattributed]);
        assert_eq!(unattributed.sum::<i64>(), 0);
        Ledger(kept.steps[0].moments.clone())
    }

    fn at(&self, moment: Moment) -> &LedgerMoment {
        self.0.iter().find(|row| row.moment == moment).unwrap()
    }

    fn activation(&self) -> i64 {
        self.at(Moment::ForwardEnd).bytes[Category::Activation]
    }

    fn peak(&self) -> i64 {
        self.at(Moment::Peak).allocator_bytes
    }
}

fn checkpointed(x: &Tensor) -> Result<Tensor, TchError> {
    checkpoint_one("loss", x.shallow_clone(), loss)
}

fn stack(dropout: f64) -> Ledger {
    let make = || Stack::new(BLOCKS, ROWS, WIDTH, dropout);
    Ledger::of(make, |stack| checkpointed(&stack.output(true)?))
}

/// All that lives on is what the segments were given; that of the first is there before the step.
#[test]
fn activations_are_the_segments_inputs() {
    assert_eq!(stack(0.1).activation(), BLOCKS * WHOLE);
    assert_eq!(stack(0.0).activation(), BLOCKS * WHOLE);
}

fn nested(stack: &Stack) -> Result<Tensor, TchError> {
    let mut hidden = stack.x.shallow_clone();
    for pair in stack.blocks.chunks(2) {
        let pair = pair.to_vec();
        hidden = checkpoint_one("outer", hidden, move |mut x| {
            for block in pair.clone() {
                x = checkpoint_one("inner", x, move |x| block.forward(x))?;
            }
            Ok(x)
        })?;
    }
    checkpointed(&hidden)
}

/// An outer segment keeps its input and nothing of the segments inside it.
#[test]
fn of_nested_segments_only_the_outer_ones_inputs() {
    let ours = Ledger::of(|| Stack::new(BLOCKS, ROWS, WIDTH, 0.1), nested);
    assert_eq!(ours.activation(), BLOCKS / 2 * WHOLE);
    assert!(ours.peak() < stack(0.1).peak());
    let theirs = pytorch("nested")["peak"].as_i64().unwrap();
    println!("nested: peak {} bytes, in PyTorch {theirs}", ours.peak());
    assert!(ours.peak() * 100 <= theirs * 101, "{} bytes, in PyTorch {theirs}", ours.peak());
}

/// Operators inside operators, and recomputations left by an exception, are seen to their ends.
#[test]
fn the_ledger_is_the_same_where_operators_are_traced() {
    let make = || Stack::new(BLOCKS, ROWS, WIDTH, 0.1);
    let traced = Ledger::traced(Trace::Ops, make, nested);
    assert_eq!(traced.peak(), Ledger::of(make, nested).peak());
    let early = |model: &Widening| model.loss(true);
    let traced = Ledger::traced(Trace::Ops, Widening::new, early);
    assert_eq!(traced.peak(), Ledger::of(Widening::new, early).peak());
}

#[test]
fn the_example_takes_less_for_the_same_loss() {
    let _turn = turn();
    let runs = Runs::new();
    let out = runs.file("runs");
    let account = |checkpointed| {
        let (run_id, loss) = example::train(&out.to_string_lossy(), checkpointed).unwrap();
        let steps = Dataset::open(&out.join(run_id)).unwrap().steps().unwrap();
        (steps.last().unwrap().peak_bytes.unwrap(), loss)
    };
    let ((plain, loss), (less, same)) = (account(false), account(true));
    assert_eq!(loss, same);
    assert!(2 * less < plain, "{less} of {plain} bytes");
}

/// Linear to four times the width, GELU, Linear back.
#[derive(Debug)]
struct Plain {
    weights: Vec<[Tensor; 2]>,
    x: Tensor,
}

impl Plain {
    fn new() -> Self {
        let weights = |_| [leaf(&[4 * WIDTH, WIDTH]), leaf(&[WIDTH, 4 * WIDTH])];
        let x = Tensor::randn([ROWS, WIDTH], FLOAT_CPU);
        Plain { weights: (0..BLOCKS).map(weights).collect(), x }
    }

    fn loss(&self) -> Result<Tensor, TchError> {
        let mut hidden = self.x.shallow_clone();
        for weights in &self.weights {
            let [fc, proj] = weights.each_ref().map(Tensor::shallow_clone);
            hidden = checkpoint_one("plain", hidden, move |x| {
                let mut hidden = x.f_linear(&fc, None::<&Tensor>)?;
                hidden = hidden.f_gelu("none")?;
                hidden.f_linear(&proj, None::<&Tensor>)
            })?;
        }
        checkpointed(&hidden)
    }
}

/// The peak is in the last block's backward, at its second Linear: all segments' inputs, the activations of one
/// segment, and the gradients of that Linear's output, input and weight. The segment's recomputed output is gone.
#[test]
fn the_peak_has_a_closed_form() {
    let ledger = Ledger::of(Plain::new, Plain::loss);
    let weight = 4 * 4 * WIDTH * WIDTH;
    let parameters = BLOCKS * 2 * weight;
    // The first segment's lies outside of the step; that of the loss is gone.
    let inputs = BLOCKS * WHOLE;
    let recomputed = 4 * WHOLE + 4 * WHOLE;
    let gradients = WHOLE + 4 * WHOLE + weight;
    // The loss, and the one that backward begins with.
    let scalars = 4 + 4;
    assert_eq!(ledger.peak(), parameters + inputs + recomputed + gradients + scalars);
    assert_eq!(ledger.activation(), BLOCKS * WHOLE);
}

fn pytorch(kind: &str) -> serde_json::Value {
    let numbers = [BLOCKS, ROWS, WIDTH].map(|number| number.to_string());
    python("tests/python/checkpoint.py", &[kind, &numbers[0], &numbers[1], &numbers[2]])
}

/// Its states of the random generator lie in tensors, ours do not.
#[test]
fn the_peak_is_no_higher_than_pytorchs() {
    let theirs = pytorch("block");
    let (ours, peak) = (stack(0.1), theirs["peak"].as_i64().unwrap());
    println!("peak {} bytes, in PyTorch {peak}", ours.peak());
    assert!(ours.peak() * 100 <= peak * 101, "{} bytes, in PyTorch {peak}", ours.peak());
    assert!(ours.at(Moment::ForwardEnd).allocator_bytes <= theirs["forward_end"].as_i64().unwrap());
}

/// Linear to four times the width, the sum over the four quarters: what comes last is the widest.
#[derive(Debug)]
struct Widening {
    layers: Vec<[Tensor; 2]>,
    x: Tensor,
}

impl Widening {
    fn new() -> Self {
        let layer = |_| [leaf(&[4 * WIDTH, WIDTH]), leaf(&[4 * WIDTH])];
        Widening { layers: (0..BLOCKS).map(layer).collect(), x: Tensor::randn([ROWS, WIDTH], FLOAT_CPU) }
    }

    fn loss(&self, stop_early: bool) -> Result<Tensor, TchError> {
        let mut hidden = self.x.shallow_clone();
        for layer in &self.layers {
            let [weight, bias] = layer.each_ref().map(Tensor::shallow_clone);
            let checkpoint = Checkpoint::new("wide");
            let checkpoint = if stop_early { checkpoint.stop_early() } else { checkpoint };
            hidden = checkpoint.run_one(hidden, move |x| {
                let wide = x.f_linear(&weight, Some(&bias))?.f_view([ROWS, 4, -1])?;
                wide.f_sum_dim_intlist(1i64, false, Kind::Float)
            })?;
        }
        checkpointed(&hidden)
    }
}

/// Where the end of a segment takes most, only a recomputation that is left early takes as little as PyTorch's.
#[test]
fn an_end_that_is_not_recomputed_takes_nothing() {
    let theirs = pytorch("widening")["peak"].as_i64().unwrap();
    let early = Ledger::of(Widening::new, |model| model.loss(true)).peak();
    let whole = Ledger::of(Widening::new, |model| model.loss(false)).peak();
    println!("peak {early} bytes, {whole} when recomputed to the end, in PyTorch {theirs}");
    assert!(early * 100 <= theirs * 101, "{early} bytes, in PyTorch {theirs}");
    // The Linear's output, beside which there is no gradient of its input or its weight yet.
    assert!(early < whole && whole < early + 4 * WHOLE);
}
