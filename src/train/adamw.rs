//! AdamW through libtorch's fused op, with its states as tensors of ours.

use std::ffi::{c_int, c_void};

use tch::{Kind, TchError, Tensor};

use super::config::AdamWConfig;
use super::error::TrainError;
use crate::probe::libtorch_error;

type RawTensor = *mut c_void;

unsafe extern "C" {
    #[allow(clippy::too_many_arguments)]
    fn sl_fused_adamw(
        parameters: *const RawTensor,
        exp_avgs: *const RawTensor,
        exp_avg_sqs: *const RawTensor,
        steps: *const RawTensor,
        count: usize,
        lr: f64,
        beta1: f64,
        beta2: f64,
        eps: f64,
        weight_decay: f64,
    ) -> c_int;
    fn sl_clear_gradients(tensors: *const RawTensor, count: usize) -> c_int;
}

/// Adam with decoupled weight decay (Loshchilov & Hutter 2019), all parameters alike.
#[derive(Debug)]
pub struct AdamW {
    config: AdamWConfig,
    parameters: Vec<Tensor>,
    states: Option<States>,
}

/// One tensor a parameter in each list; the step counters are f32 scalars.
#[derive(Debug)]
struct States {
    exp_avgs: Vec<Tensor>,
    exp_avg_sqs: Vec<Tensor>,
    steps: Vec<Tensor>,
}

impl AdamW {
    pub fn new(config: AdamWConfig, parameters: Vec<Tensor>) -> Self {
        AdamW { config, parameters, states: None }
    }

    /// Applies the gradients, each of which must exist. The first call makes the states, as PyTorch does.
    pub fn step(&mut self) -> Result<(), TrainError> {
        let states = match self.states.take() {
            Some(states) => states,
            None => States::new(&self.parameters)?,
        };
        let states = self.states.insert(states);
        let AdamWConfig { lr, betas, eps, weight_decay } = self.config;
        let parameters = raw(&self.parameters);
        let (exp_avgs, exp_avg_sqs, steps) =
            (raw(&states.exp_avgs), raw(&states.exp_avg_sqs), raw(&states.steps));
        // SAFETY: all four lists hold `parameters.len()` pointers to tensors that live until the end of
        // this function; the shim checks nothing but what libtorch checks, and returns its errors.
        check(unsafe {
            sl_fused_adamw(
                parameters.as_ptr(),
                exp_avgs.as_ptr(),
                exp_avg_sqs.as_ptr(),
                steps.as_ptr(),
                parameters.len(),
                lr,
                betas.0,
                betas.1,
                eps,
                weight_decay,
            )
        })
    }

    /// Sets all gradients to none, which frees them.
    pub fn zero_grad(&self) -> Result<(), TrainError> {
        let parameters = raw(&self.parameters);
        // SAFETY: the list holds `parameters.len()` pointers to live tensors.
        check(unsafe { sl_clear_gradients(parameters.as_ptr(), parameters.len()) })
    }
}

impl States {
    fn new(parameters: &[Tensor]) -> Result<Self, TchError> {
        let zeros = || -> Result<Vec<Tensor>, TchError> {
            parameters.iter().map(|parameter| parameter.detach().f_zeros_like()).collect()
        };
        let counter = |parameter: &Tensor| Tensor::f_zeros([], (Kind::Float, parameter.device()));
        Ok(States {
            exp_avgs: zeros()?,
            exp_avg_sqs: zeros()?,
            steps: parameters.iter().map(counter).collect::<Result<_, _>>()?,
        })
    }
}

fn raw(tensors: &[Tensor]) -> Vec<RawTensor> {
    tensors.iter().map(|tensor| tensor.as_ptr() as RawTensor).collect()
}

fn check(code: c_int) -> Result<(), TrainError> {
    if code == 0 {
        return Ok(());
    }
    Err(TchError::Torch(libtorch_error()).into())
}
