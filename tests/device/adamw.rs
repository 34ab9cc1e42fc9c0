//! `--adamw kernel` against libtorch's fused operator: the same numbers, in what time, and how near to the memory's rate.

use std::time::Instant;

use stepledger::device::{Cache, Gpu, measure_bandwidth};
use stepledger::stats::median;
use stepledger::theory::AdamWKind;
use stepledger::train::{AdamW, AdamWConfig};
use tch::{Device, Kind, Tensor};

use super::Outcome;
use super::row::Row;

const TENSORS: usize = 48;
const ELEMENTS: i64 = 1 << 20;
const STEPS: usize = 20;
/// An f32 update reads parameter, gradient and both states, and writes all but the gradient.
const BYTES_AN_ELEMENT: f64 = 28.0;

pub fn adamw(device: Device) -> Outcome<Vec<Row>> {
    let Device::Cuda(ordinal) = device else {
        return Ok(vec![Row::not_run("adamw", "a CPU runs no CUDA kernels")]);
    };
    let (kernel, kernel_ms) = updated(AdamWKind::Kernel, device)?;
    let (fused, fused_ms) = updated(AdamWKind::Fused, device)?;
    let apart = largest_difference(&kernel, &fused)?;
    let copy = measure_bandwidth(&Gpu::open(ordinal as i32)?, &Cache::standard(), 3 << 30)?.copy.median;
    let bytes = BYTES_AN_ELEMENT * ELEMENTS as f64 * TENSORS as f64;
    let rate = |ms: f64| 100.0 * bytes / (ms / 1e3) / 1e9 / copy;
    Ok(vec![
        Row::within("adamw: kernel − fused, largest after 20 steps", apart, (0.0, 1e-5), ""),
        Row::within("adamw: time of kernel / fused", kernel_ms / fused_ms, (0.0, 1.1), ""),
        Row::within("adamw: kernel's bytes a second / measured copy", rate(kernel_ms), (70.0, 110.0), " %"),
        Row::within("adamw: fused's bytes a second / measured copy", rate(fused_ms), (0.0, 110.0), " %"),
    ])
}

/// Parameters after some steps, and the milliseconds that a step takes.
fn updated(kind: AdamWKind, device: Device) -> Outcome<(Vec<Tensor>, f64)> {
    let parameters = parameters(device)?;
    let copies: Vec<Tensor> = parameters.iter().map(Tensor::shallow_clone).collect();
    let mut optimizer = AdamW::new(AdamWConfig { kind, ..AdamWConfig::default() }, copies, None)?;
    let mut times = Vec::new();
    for _ in 0..STEPS {
        wait(&parameters)?;
        let begin = Instant::now();
        optimizer.step()?;
        wait(&parameters)?;
        times.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    Ok((parameters, median(&times).unwrap_or(f64::NAN)))
}

/// The same for every call: normal numbers with normal gradients.
fn parameters(device: Device) -> Outcome<Vec<Tensor>> {
    tch::manual_seed(1);
    let one = || -> Outcome<Tensor> {
        let normal = || Tensor::f_randn([ELEMENTS], (Kind::Float, device));
        let (parameter, gradient) = (normal()?.f_set_requires_grad(true)?, normal()?);
        parameter.f_mul(&gradient)?.f_sum(Kind::Float)?.f_backward()?;
        Ok(parameter)
    };
    (0..TENSORS).map(|_| one()).collect()
}

fn wait(parameters: &[Tensor]) -> Outcome<()> {
    parameters.last().map(|last| last.f_double_value(&[0])).transpose()?;
    Ok(())
}

fn largest_difference(a: &[Tensor], b: &[Tensor]) -> Outcome<f64> {
    let mut largest = 0.0_f64;
    for (a, b) in a.iter().zip(b) {
        let apart = a.f_sub(b)?.f_abs()?.f_max()?.f_double_value(&[])?;
        // `max` would pass over what is no number.
        largest = if apart.is_nan() { f64::NAN } else { largest.max(apart) };
    }
    Ok(largest)
}
