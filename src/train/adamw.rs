//! AdamW as libtorch's own operators compute it, or a kernel of ours, with its states as tensors of ours.

use std::ffi::c_int;

use tch::{Kind, TchError, Tensor};

use super::config::AdamWConfig;
use super::error::TrainError;
use super::kernel::{KernelAdamW, Lists};
use super::shim::{RawTensor, checked, raw};
use crate::theory::{AdamWKind, Float};

/// The same in adamw.cpp.
#[repr(C)]
#[derive(Debug)]
struct Numbers {
    lr: f64,
    beta1: f64,
    beta2: f64,
    eps: f64,
    weight_decay: f64,
}

unsafe extern "C" {
    #[allow(clippy::too_many_arguments)]
    fn sl_adamw(
        way: c_int,
        parameters: *const RawTensor,
        masters: *const RawTensor,
        exp_avgs: *const RawTensor,
        exp_avg_sqs: *const RawTensor,
        steps: *const RawTensor,
        count: usize,
        numbers: *const Numbers,
    ) -> c_int;
    fn sl_clear_gradients(tensors: *const RawTensor, count: usize) -> c_int;
    fn sl_zero_gradients(tensors: *const RawTensor, count: usize) -> c_int;
}

/// Adam with decoupled weight decay (Loshchilov & Hutter 2019), all parameters alike.
///
/// The states have the type that the configuration says. Where it is not that of the parameters, the update is
/// computed in the states' type and rounded once, as the parameters are written.
#[derive(Debug)]
pub struct AdamW {
    config: AdamWConfig,
    parameters: Vec<Tensor>,
    /// f32 copies of the parameters, which are updated in their place.
    masters: Option<Vec<Tensor>>,
    states: Option<States>,
    way: Way,
}

/// What computes the update.
#[derive(Debug)]
enum Way {
    /// libtorch's operators; the number is that of the way in adamw.cpp.
    Operators(c_int),
    Kernel(KernelAdamW),
}

/// One tensor a parameter in each list; the step counters are f32 scalars.
#[derive(Debug)]
struct States {
    exp_avgs: Vec<Tensor>,
    exp_avg_sqs: Vec<Tensor>,
    steps: Vec<Tensor>,
}

impl AdamW {
    /// `masters` are f32 copies of the parameters, in their order, if the configuration wants them.
    ///
    /// # Errors
    /// A kernel that cannot be had: on a CPU, without CUDA's compiler, for types that it does not know.
    pub fn new(
        config: AdamWConfig,
        parameters: Vec<Tensor>,
        masters: Option<Vec<Tensor>>,
    ) -> Result<Self, TrainError> {
        let updated = masters.as_ref().unwrap_or(&parameters).first();
        let way = match (config.kind, parameters.first().zip(updated)) {
            (AdamWKind::Kernel, Some((parameter, updated))) => {
                Way::Kernel(KernelAdamW::load(&config, parameter, state_kind(updated, &config))?)
            }
            // A kernel for nothing does nothing, as any other way.
            (AdamWKind::Fused | AdamWKind::Kernel, _) => Way::Operators(0),
            (AdamWKind::Foreach, _) => Way::Operators(1),
            (AdamWKind::Loop, _) => Way::Operators(2),
        };
        Ok(AdamW { config, parameters, masters, states: None, way })
    }

    /// Applies the gradients, each of which must exist. The first call makes the states, as PyTorch does.
    pub fn step(&mut self) -> Result<(), TrainError> {
        let states = match self.states.take() {
            Some(states) => states,
            None => States::new(self.updated(), &self.config)?,
        };
        let states = self.states.insert(states);
        let lists = Lists {
            parameters: raw(&self.parameters),
            masters: self.masters.as_deref().map(raw),
            exp_avgs: raw(&states.exp_avgs),
            exp_avg_sqs: raw(&states.exp_avg_sqs),
            steps: raw(&states.steps),
        };
        match &mut self.way {
            Way::Operators(way) => Ok(step_by_operators(*way, &lists, &self.config)?),
            Way::Kernel(kernel) => kernel.step(&lists),
        }
    }

    /// Its two states and its counter for each parameter, by the parameter's place; empty before the first step.
    pub fn states(&self) -> impl Iterator<Item = (usize, &Tensor)> {
        let lists =
            self.states.iter().flat_map(|states| [&states.exp_avgs, &states.exp_avg_sqs, &states.steps]);
        lists.flat_map(|list| list.iter().enumerate())
    }

    /// The f32 copies of half-precision parameters, by the parameter's place.
    pub fn masters(&self) -> impl Iterator<Item = (usize, &Tensor)> {
        self.masters.iter().flatten().enumerate()
    }

    /// Sets all gradients to none, which frees them.
    pub fn clear_gradients(&self) -> Result<(), TrainError> {
        let parameters = raw(&self.parameters);
        // SAFETY: the list holds `parameters.len()` pointers to live tensors.
        Ok(checked(unsafe { sl_clear_gradients(parameters.as_ptr(), parameters.len()) })?)
    }

    /// Sets all gradients to zero, which keeps them.
    pub fn zero_gradients(&self) -> Result<(), TrainError> {
        let parameters = raw(&self.parameters);
        // SAFETY: the list holds `parameters.len()` pointers to live tensors.
        Ok(checked(unsafe { sl_zero_gradients(parameters.as_ptr(), parameters.len()) })?)
    }

    fn updated(&self) -> &[Tensor] {
        self.masters.as_deref().unwrap_or(&self.parameters)
    }
}

impl States {
    fn new(updated: &[Tensor], config: &AdamWConfig) -> Result<Self, TchError> {
        let zero =
            |tensor: &Tensor| Tensor::f_zeros(tensor.size(), (state_kind(tensor, config), tensor.device()));
        let zeros = || -> Result<Vec<Tensor>, TchError> { updated.iter().map(zero).collect() };
        let counter = |tensor: &Tensor| Tensor::f_zeros([], (Kind::Float, tensor.device()));
        Ok(States {
            exp_avgs: zeros()?,
            exp_avg_sqs: zeros()?,
            steps: updated.iter().map(counter).collect::<Result<_, _>>()?,
        })
    }
}

/// The type of the two states of what is updated.
fn state_kind(updated: &Tensor, config: &AdamWConfig) -> Kind {
    match config.state_dtype {
        None => updated.kind(),
        Some(Float::F32) => Kind::Float,
        Some(Float::Bf16) => Kind::BFloat16,
    }
}

fn step_by_operators(way: c_int, lists: &Lists, config: &AdamWConfig) -> Result<(), TchError> {
    let AdamWConfig { lr, betas: (beta1, beta2), eps, weight_decay, .. } = *config;
    let numbers = Numbers { lr, beta1, beta2, eps, weight_decay };
    // SAFETY: all lists hold as many pointers to tensors that live until the end of the caller (or, for masters, the
    // list is null); the shim returns libtorch's errors.
    checked(unsafe {
        sl_adamw(
            way,
            lists.parameters.as_ptr(),
            lists.masters(),
            lists.exp_avgs.as_ptr(),
            lists.exp_avg_sqs.as_ptr(),
            lists.steps.as_ptr(),
            lists.parameters.len(),
            &raw const numbers,
        )
    })
}
