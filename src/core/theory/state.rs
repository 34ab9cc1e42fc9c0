//! What lives as long as the training does: parameters, gradients and AdamW's states; and what one of its
//! steps needs for itself.

use std::str::FromStr;

use serde_json::{Map, Value};

use super::choices::{AdamWKind, Float, ZeroGrad};
use super::shape::{Shape, bounded};

/// How a model is trained, as far as memory goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Training {
    pub adamw: AdamWKind,
    /// Of AdamW's two states; `None`: the parameters' own, or f32 beside master weights.
    pub state: Option<Float>,
    /// An f32 copy of the parameters is what is trained.
    pub master_weights: bool,
    /// Micro-batches a step.
    pub accumulate: i64,
    pub zero_grad: ZeroGrad,
    /// Some kernels take a buffer for each.
    pub threads: i64,
}

impl Default for Training {
    fn default() -> Self {
        Training {
            adamw: AdamWKind::Fused,
            state: None,
            master_weights: false,
            accumulate: 1,
            zero_grad: ZeroGrad::None,
            threads: 1,
        }
    }
}

impl Training {
    /// What a configuration says, the default where it says nothing; `None` for what is not known here.
    pub(super) fn of(config: &Map<String, Value>) -> Option<Training> {
        let said = |name: &str| config.get(name).filter(|value| !value.is_null());
        let count = |name: &str| said(name).map_or(Some(1), Value::as_i64).filter(|&count| count > 0);
        Some(Training {
            adamw: choice(said("adamw"))?.unwrap_or(AdamWKind::Fused),
            state: choice(said("state_dtype"))?,
            master_weights: said("master_weights").map_or(Some(false), Value::as_bool)?,
            accumulate: count("accumulate")?,
            zero_grad: choice(said("zero_grad"))?.unwrap_or(ZeroGrad::None),
            threads: count("threads")?,
        })
    }

    /// Whether a forward of the step runs while all gradients are alive: that of a later micro-batch, or
    /// any if they are never dropped.
    pub const fn keeps_gradients(&self) -> bool {
        self.accumulate > 1 || matches!(self.zero_grad, ZeroGrad::Zero)
    }
}

impl Shape {
    pub fn parameter_bytes(&self) -> i64 {
        self.parameters().saturating_mul(self.precision.parameter().bytes())
    }

    /// All of them: each is as large as its parameter and of its type.
    pub fn gradient_bytes(&self) -> i64 {
        self.parameter_bytes()
    }

    /// Adam's two states, an f32 step counter for each variable, and the f32 master weights if there are.
    pub fn adam_state_bytes(&self) -> i64 {
        let scalars = self.parameters().saturating_mul(self.state_bytes_each());
        scalars.saturating_add(Float::F32.bytes() * self.variables())
    }

    /// Adam's two states and the master weight, if there is one, of one parameter.
    pub fn state_bytes_each(&self) -> i64 {
        let master = if self.training.master_weights { Float::F32.bytes() } else { 0 };
        2 * self.state_type().bytes() + master
    }

    /// Of AdamW's two states.
    pub fn state_type(&self) -> Float {
        let default = if self.training.master_weights { Float::F32 } else { self.precision.parameter() };
        self.training.state.unwrap_or(default)
    }

    /// The most that a step of AdamW needs beside what is kept, but for scalars: the fused kernel nothing;
    /// `foreach` the denominators of all parameters; `loop` two copies of the largest (√v and √v/√b₂).
    /// (PyTorch's own loop holds the last parameter's denominator besides, until Python's variable is bound
    /// anew: up to 2.8 % of the peak where two large parameters follow each other.)
    ///
    /// Where the states have another type than the parameters, gradients are copied in it, and so are parameters
    /// without master weights: `foreach` all at once, the others one parameter after the other. The gradients'
    /// copies are gone before the denominators are made.
    ///
    /// `kernel` needs nothing at all: it converts in registers, and is told where the tensors lie by its arguments.
    pub fn optimizer_temporary_bytes(&self) -> i64 {
        let state = self.state_type();
        let mixed = state != self.precision.parameter();
        let [gradient, parameter] =
            [mixed, mixed && !self.training.master_weights].map(|copied| i64::from(copied) * state.bytes());
        let (scalars, bytes) = match self.training.adamw {
            AdamWKind::Fused => (self.largest_variable(), parameter + gradient),
            AdamWKind::Foreach => (self.parameters(), parameter + state.bytes()),
            AdamWKind::Loop => (self.largest_variable(), parameter + 2 * state.bytes()),
            AdamWKind::Kernel => (0, 0),
        };
        bounded(i128::from(scalars) * i128::from(bytes))
    }
}

/// What is said, if anything; `None` for a word that is not known here.
fn choice<W: FromStr>(said: Option<&Value>) -> Option<Option<W>> {
    match said {
        None => Some(None),
        Some(value) => value.as_str()?.parse().ok().map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::super::shape::tests::{GPT, shape};

    /// Parameters, gradients and states live at the end of a step, as PyTorch 2.11 measured them.
    #[test]
    fn what_a_step_leaves_behind_is_what_was_measured() {
        for (further, measured) in [
            ("", 13_349_072),
            (r#""dtype":"bf16""#, 6_674_640),
            (r#""dtype":"bf16","state_dtype":"f32""#, 10_011_856),
            (r#""dtype":"bf16","master_weights":true"#, 13_349_072),
            (r#""dtype":"amp-bf16""#, 13_349_072),
        ] {
            let gpt = shape(GPT, further).unwrap();
            let left = gpt.parameter_bytes() + gpt.gradient_bytes() + gpt.adam_state_bytes();
            assert_eq!(left, measured, "{further}");
        }
    }

    /// Measured with PyTorch 2.11, less the 10 or 12 bytes of its scalars.
    #[test]
    fn the_optimizers_own_copies() {
        for (further, measured) in [
            ("", 0),
            (r#""dtype":"bf16","adamw":"foreach""#, 1_668_608),
            (r#""dtype":"bf16","state_dtype":"f32","adamw":"loop""#, 786_432),
            (r#""dtype":"bf16","master_weights":true,"adamw":"loop""#, 524_288),
            // Not measured: there is nothing that could take any.
            (r#""dtype":"bf16","state_dtype":"f32","adamw":"kernel""#, 0),
        ] {
            assert_eq!(shape(GPT, further).unwrap().optimizer_temporary_bytes(), measured, "{further}");
        }
    }
}
