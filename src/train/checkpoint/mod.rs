//! Activation checkpointing: segments of a model whose activations are not kept for backward but computed again.
//!
//! # How it works, and why so
//!
//! libtorch asks its autograd engine for a pair of hooks whenever an operator saves a tensor for backward. While a
//! segment runs for the first time, our hooks (`hooks.cpp`) put a promise into the graph in the tensor's place. The
//! first promise that backward calls in runs the segment again (`frame.cpp`), with the n-th saved tensor for the n-th
//! promise; the graph that this makes is thrown away, and each tensor goes as soon as its node has run. It is what
//! `torch.utils.checkpoint(use_reentrant=False)` does.
//!
//! The other way is a `torch::autograd::Function` that runs the segment without gradients and, in its backward, again
//! with them, and then a backward inside backward. It keeps the gradient of its output (a batch of activations)
//! through all of that, needs a dummy input where only parameters want gradients, is no use to `autograd::grad`, and
//! hides the segment's nodes from whoever watches forward. With hooks the graph is the one of the segment without
//! checkpointing: gradients flow and add up in the same order, bit for bit, and each node still knows the scope it
//! was made in.
//!
//! PyTorch ends the recomputation at the last tensor saved. Here that is a choice ([`Checkpoint::stop_early`]), since
//! the only way out of the middle of a segment is an error of the operator, and tch turns errors into panics unless a
//! model asks it not to. A recomputation to the end can compare the outputs too. It computes the segment's last
//! operators for nothing, and what these allocate counts into the peak where backward's first needs less: in a
//! segment that ends in a layer much wider than what goes in.

mod ffi;
mod segment;

use tch::{TchError, Tensor};

use ffi::FirstRun;
use segment::Segment;

/// Runs `segment` on `inputs` and keeps nothing of it for backward but the inputs: backward runs it again.
///
/// Inputs and outputs may be any number, and of any type; masks and tokens pass through as inputs. Parameters are
/// what the closure captures (as shallow clones), and may be shared with other segments. Segments may be nested. With
/// gradients switched off (`tch::no_grad`) this only runs the segment.
///
/// The recomputation has the random state and the autocast state of the first run, for the CPU and for the CUDA
/// devices that inputs lie on; both are afterwards as if it had not been. `backward` may be called twice where
/// the graph is retained (each time costs a recomputation), and gradients of gradients can be taken.
///
/// The closure must be `Send`: backward runs it on the thread that calls `backward` where its operators ran on the
/// CPU, but on a thread of libtorch's where they ran on a GPU, and the last holder of the graph drops it. Never do two
/// threads run it at once. Tensors are `Send`; a module that cannot be cloned goes into an `Arc<Mutex<_>>`.
///
/// What else the segment does, it does twice: batch norm, for example, adds to its running statistics in
/// recomputation too.
///
/// ```
/// use stepledger::train::checkpoint;
/// use tch::{Kind, Tensor, kind::FLOAT_CPU};
///
/// let weight = Tensor::randn([8, 8], FLOAT_CPU).set_requires_grad(true);
/// let x = Tensor::randn([4, 8], FLOAT_CPU);
/// let mask = x.gt(0.0);
/// let captured = weight.shallow_clone();
/// let outputs = checkpoint("gate", vec![x, mask], move |inputs| {
///     let wide = inputs[0].f_linear(&captured, None::<&Tensor>)?.f_gelu("none")?;
///     Ok(vec![wide.f_masked_fill(&inputs[1], 0.0)?, wide.f_square()?])
/// })?;
/// (&outputs[0] + &outputs[1]).sum(Kind::Float).backward(); // runs the segment again
/// assert_eq!(weight.grad().size(), [8, 8]);
/// # Ok::<(), tch::TchError>(())
/// ```
///
/// # Errors
/// With the segment's error, or its panic as one, under its `name`; and when the segment modifies an input in place
/// or returns one itself (clone it), because then no recomputation could be right.
///
/// Backward fails, with the name too, when the recomputation fails; when it does not give as many outputs of the same
/// shapes, types and devices as the first run, or its operators do not save such tensors; and when an input, a
/// parameter or anything else that backward needs has been modified in place in between. Of an operator on another
/// thread than the segment's this knows nothing: it keeps what it saves.
pub fn checkpoint<S>(name: &str, inputs: Vec<Tensor>, segment: S) -> Result<Vec<Tensor>, TchError>
where
    S: Fn(Vec<Tensor>) -> Result<Vec<Tensor>, TchError> + Send + 'static,
{
    Checkpoint::new(name).run(inputs, segment)
}

/// [`checkpoint`] for a segment of one input and one output.
///
/// ```
/// use stepledger::train::checkpoint_one;
/// use tch::{Kind, Tensor, kind::FLOAT_CPU};
///
/// let mut hidden = Tensor::randn([4, 8], FLOAT_CPU).set_requires_grad(true);
/// let leaf = hidden.shallow_clone();
/// for layer in 0..3 {
///     hidden = checkpoint_one(&format!("h.{layer}"), hidden, |x| x.f_gelu("none")?.f_add(&x))?;
/// }
/// hidden.sum(Kind::Float).backward();
/// assert!(leaf.grad().defined());
/// # Ok::<(), tch::TchError>(())
/// ```
///
/// # Errors
/// As [`checkpoint`].
pub fn checkpoint_one<S>(name: &str, input: Tensor, segment: S) -> Result<Tensor, TchError>
where
    S: Fn(Tensor) -> Result<Tensor, TchError> + Send + 'static,
{
    Checkpoint::new(name).run_one(input, segment)
}

/// [`checkpoint`] and [`checkpoint_one`] with a choice.
#[derive(Debug, Clone, Copy)]
#[must_use = "this runs nothing yet"]
pub struct Checkpoint<'a> {
    name: &'a str,
    stop_early: bool,
}

impl<'a> Checkpoint<'a> {
    /// A segment of this name.
    pub fn new(name: &'a str) -> Self {
        Checkpoint { name, stop_early: false }
    }

    /// Ends the recomputation at the last tensor that backward needs, as PyTorch does: it saves the time and the
    /// memory of the operators after it (the last product of an MLP, say), and compares no outputs.
    ///
    /// Only for segments that hand libtorch's errors on (`f_linear(…)?` and not `linear(…)`): the operator which
    /// saves that tensor returns an error, and the segment must return it. A panic there would do, but be printed,
    /// and poison what locks are held.
    pub fn stop_early(self) -> Self {
        Checkpoint { stop_early: true, ..self }
    }

    /// As [`checkpoint`].
    ///
    /// # Errors
    /// As [`checkpoint`].
    pub fn run<S>(self, inputs: Vec<Tensor>, segment: S) -> Result<Vec<Tensor>, TchError>
    where
        S: Fn(Vec<Tensor>) -> Result<Vec<Tensor>, TchError> + Send + 'static,
    {
        let segment = Segment::new(self.name, Box::new(segment));
        if !ffi::grad_enabled() {
            return segment.run(inputs).map_err(|error| segment.named(&error));
        }
        let first = FirstRun::enter(segment, &inputs, self.stop_early)?;
        let segment = first.segment();
        let outputs = segment.first_run(inputs).map_err(|error| segment.named(&error))?;
        first.finish(&outputs)?;
        Ok(outputs)
    }

    /// As [`checkpoint_one`].
    ///
    /// # Errors
    /// As [`checkpoint`].
    pub fn run_one<S>(self, input: Tensor, segment: S) -> Result<Tensor, TchError>
    where
        S: Fn(Tensor) -> Result<Tensor, TchError> + Send + 'static,
    {
        let outputs = self.run(vec![input], move |mut inputs| Ok(vec![segment(inputs.remove(0))?]))?;
        Ok(outputs.into_iter().next().expect("the closure above gives one output"))
    }
}
