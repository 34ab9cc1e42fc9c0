//! `--adamw kernel` against libtorch's fused operator: the same numbers, in what time, and how near to the memory's rate.
//! On a CPU libtorch's own operators, one after the other, stand in for the kernel: a rehearsal of the comparison.

use std::time::Instant;

use stepledger::device::{Cache, Gpu, Storage, measure_bandwidth};
use stepledger::stats::median;
use stepledger::theory::{AdamWKind, Float};
use stepledger::train::{AdamW, AdamWConfig};
use tch::{Device, Kind, Tensor};

use self::rounding::NEIGHBOURS;
use super::Outcome;
use super::row::{Row, largest};

#[path = "../common/rounding.rs"]
mod rounding;

pub fn adamw(device: Device) -> Outcome<Vec<Row>> {
    let mut rows: Vec<Row> =
        Storage::ALL.iter().map(|storage| same_numbers(*storage, device)).collect::<Outcome<_>>()?;
    rows.extend(match device {
        Device::Cuda(ordinal) => speed(device, ordinal as i32)?,
        _ => vec![Row::not_run("adamw: bytes a second", "a CPU runs no CUDA kernels")],
    });
    Ok(rows)
}

/// Shapes, and whether the parameter lies an element behind a multiple of 16 bytes.
const SHAPES: [(&[i64], bool); 8] = [
    (&[7], false),
    (&[0], false),
    (&[33, 65], true),
    (&[1], true),
    (&[128, 64], false),
    (&[2049], false),
    (&[1 << 16], true),
    (&[1 << 18], false),
];
const COMPARED_STEPS: usize = 20;

/// The largest difference after some steps from the same start with the same gradients, relative to each tensor's largest
/// number: of the parameters, and of what they are updated from, their masters and states.
fn same_numbers(storage: Storage, device: Device) -> Outcome<Row> {
    let stand_in = if device == Device::Cpu { AdamWKind::Foreach } else { AdamWKind::Kernel };
    let (ours, theirs) = (trained(stand_in, storage, device)?, trained(AdamWKind::Fused, storage, device)?);
    let apart = ours.iter().zip(&theirs).map(|(ours, theirs)| apart(ours, theirs));
    let largest = largest(apart.collect::<Outcome<Vec<f64>>>()?);
    let kernel = storage.kernel();
    let check = format!("{kernel}: {stand_in} - fused, relative, after {COMPARED_STEPS} steps");
    Ok(Row::within(&check, largest, (0.0, tolerance(storage, stand_in)), ""))
}

/// f32 adds up in another order, and what is kept in bf16 may be rounded apart once. The stand-in rounds a parameter twice a
/// step, after its decay and after its update; where nothing is kept in f32 it computes in bf16, and rounds after each of a
/// dozen operations, which cost half a neighbour each.
fn tolerance(storage: Storage, stand_in: AdamWKind) -> f64 {
    match (storage, stand_in) {
        (Storage::F32, _) => 1e-5,
        (Storage::Bf16, AdamWKind::Foreach) => 8.0 * NEIGHBOURS,
        (_, AdamWKind::Foreach) => 2.0 * NEIGHBOURS,
        _ => NEIGHBOURS,
    }
}

/// Parameters, masters and states after the steps.
fn trained(kind: AdamWKind, storage: Storage, device: Device) -> Outcome<Vec<Tensor>> {
    tch::manual_seed(3);
    let half = if storage == Storage::F32 { Kind::Float } else { Kind::BFloat16 };
    let values: Vec<Tensor> = SHAPES.iter().map(|shape| normal(shape.0, device)).collect::<Outcome<_>>()?;
    let leaves = values.iter().zip(SHAPES).map(|(values, (_, skewed))| leaf(values, half, skewed));
    let parameters: Vec<Tensor> = leaves.collect::<Outcome<_>>()?;
    let config = AdamWConfig {
        kind,
        state_dtype: (storage != Storage::Bf16).then_some(Float::F32),
        master_weights: storage == Storage::Bf16Masters,
        ..AdamWConfig::default()
    };
    let copies = parameters.iter().map(Tensor::shallow_clone).collect();
    let mut optimizer = AdamW::new(config, copies, config.master_weights.then_some(values))?;
    for _ in 0..COMPARED_STEPS {
        optimizer.clear_gradients()?;
        for parameter in &parameters {
            let gradient = normal(&parameter.size(), device)?.f_to_kind(half)?;
            parameter.f_mul(&gradient)?.f_sum(half)?.f_backward()?;
        }
        optimizer.step()?;
    }
    let masters = optimizer.masters().map(|(_, master)| master.shallow_clone());
    let states = optimizer.states().map(|(_, state)| state.shallow_clone());
    Ok(parameters.into_iter().chain(masters).chain(states).collect())
}

/// The same numbers on every device.
fn normal(shape: &[i64], device: Device) -> Outcome<Tensor> {
    Ok(Tensor::f_randn(shape, (Kind::Float, Device::Cpu))?.f_to_device(device)?)
}

fn leaf(values: &Tensor, kind: Kind, skewed: bool) -> Outcome<Tensor> {
    let elements = values.numel() as i64;
    let room = Tensor::f_zeros([elements + 1], (kind, values.device()))?;
    let place = room.f_narrow(0, i64::from(skewed), elements)?.f_view(values.size().as_slice())?;
    let mut place = place.f_detach()?;
    place.f_copy_(values)?;
    Ok(place.f_set_requires_grad(true)?)
}

fn apart(a: &Tensor, b: &Tensor) -> Outcome<f64> {
    if a.numel() == 0 {
        return Ok(0.0);
    }
    let [a, b] = [a, b].map(|tensor| tensor.f_detach().and_then(|tensor| tensor.f_to_kind(Kind::Double)));
    let (a, b) = (a?, b?);
    let largest = b.f_abs()?.f_max()?.f_double_value(&[])?;
    Ok(a.f_sub(&b)?.f_abs()?.f_max()?.f_double_value(&[])? / largest.max(f64::MIN_POSITIVE))
}

const TENSORS: usize = 48;
const ELEMENTS: i64 = 1 << 20;
/// An f32 update reads parameter, gradient and both states, and writes all but the gradient.
const BYTES_AN_ELEMENT: f64 = 28.0;
const ROUNDS: usize = 5;
/// So many steps are queued before the host waits, or its launches and the wait would count for a tenth of the time.
const STEPS_A_ROUND: usize = 50;

fn speed(device: Device, ordinal: i32) -> Outcome<Vec<Row>> {
    let (kernel_ms, fused_ms) = (step_ms(AdamWKind::Kernel, device)?, step_ms(AdamWKind::Fused, device)?);
    let copy = measure_bandwidth(&Gpu::open(ordinal)?, &Cache::standard(), 3 << 30)?.copy.median;
    let bytes = BYTES_AN_ELEMENT * ELEMENTS as f64 * TENSORS as f64;
    let rate = |ms: f64| 100.0 * bytes / (ms / 1e3) / 1e9 / copy;
    Ok(vec![
        Row::within("adamw: time of kernel / fused", kernel_ms / fused_ms, (0.0, 1.1), ""),
        Row::within("adamw: kernel's bytes a second / measured copy", rate(kernel_ms), (70.0, 110.0), " %"),
        Row::within("adamw: fused's bytes a second / measured copy", rate(fused_ms), (0.0, 110.0), " %"),
    ])
}

/// Milliseconds of a step of large tensors; the first round, in which the states are made, does not count.
fn step_ms(kind: AdamWKind, device: Device) -> Outcome<f64> {
    tch::manual_seed(1);
    let parameters: Vec<Tensor> = (0..TENSORS).map(|_| with_gradient(device)).collect::<Outcome<_>>()?;
    let copies = parameters.iter().map(Tensor::shallow_clone).collect();
    let mut optimizer = AdamW::new(AdamWConfig { kind, ..AdamWConfig::default() }, copies, None)?;
    let mut round = || -> Outcome<f64> {
        wait(&parameters)?;
        let begin = Instant::now();
        for _ in 0..STEPS_A_ROUND {
            optimizer.step()?;
        }
        wait(&parameters)?;
        Ok(begin.elapsed().as_secs_f64() * 1e3 / STEPS_A_ROUND as f64)
    };
    round()?;
    let times: Vec<f64> = (0..ROUNDS).map(|_| round()).collect::<Outcome<_>>()?;
    Ok(median(&times).unwrap_or(f64::NAN))
}

fn with_gradient(device: Device) -> Outcome<Tensor> {
    let normal = || Tensor::f_randn([ELEMENTS], (Kind::Float, device));
    let (parameter, gradient) = (normal()?.f_set_requires_grad(true)?, normal()?);
    parameter.f_mul(&gradient)?.f_sum(Kind::Float)?.f_backward()?;
    Ok(parameter)
}

fn wait(parameters: &[Tensor]) -> Outcome<()> {
    parameters.last().map(|last| last.f_double_value(&[0])).transpose()?;
    Ok(())
}
