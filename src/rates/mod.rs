//! What a device can do at most, measured: how many bytes its memory moves a second, how fast libtorch multiplies
//! matrices on it.
//!
//! On a CPU all of it goes through libtorch, with the threads that a run would use. On a GPU memory and multiply-adds
//! are measured by kernels of our own (`device`), products by libtorch; that part has never run on a card.

mod caches;
mod computing;
mod error;
mod rounds;
mod work;

pub use computing::computes;
pub use error::RatesError;

use std::sync::Arc;

use chrono::Utc;
use tch::{Device, Kind};

use crate::device::{Cache, Gpu, Rate, cards, measure_bandwidth, measure_fma};
use crate::probe::torch_version;
use crate::record::{DeviceRates, MeasuredRate};
use rounds::rate;
use work::{Arrays, Product};

/// Rows of the matrices at most: a CPU's caches are long full then, and any card has work for all of it.
const CPU_ROWS: i64 = 2048;
const GPU_ROWS: i64 = 8192;
/// Of a card's memory, in three arrays: many times the largest cache of any card.
const GPU_BYTES: u64 = 3 << 30;

/// Measures a device: memory by STREAM's copy and triad (McCalpin 1995), products of square matrices in f32 and bf16 (2n³
/// operations), and on a GPU fused multiply-adds. Each is the median of five rounds of at least 0.1 s
/// after some work that is not counted; where a kernel of our own measures (copy, triad and multiply-adds on a GPU), of 20
/// single launches after 0.2 s that are not.
///
/// f32 products on a GPU are computed in f32, not in TF32, as libtorch does unless it is told otherwise.
///
/// # Errors
/// What libtorch, the driver or its compiler refuse: memory that is not there, above all.
pub fn measure(device: Device, host: Host) -> Result<DeviceRates, RatesError> {
    match device {
        Device::Cuda(ordinal) => measure_gpu(device, ordinal as i32),
        _ => measure_cpu(host),
    }
}

/// What a CPU is measured with.
#[derive(Debug, Clone, Copy)]
pub struct Host {
    /// That libtorch computes with.
    pub threads: i32,
    /// The memory that there is for it, where that is known.
    pub memory_bytes: Option<u64>,
}

fn measure_cpu(Host { threads, memory_bytes }: Host) -> Result<DeviceRates, RatesError> {
    tch::set_num_threads(threads);
    let caches_bytes = caches::bytes();
    let array_bytes = caches::array_bytes(caches_bytes, memory_bytes);
    let (copy_gb_s, triad_gb_s) = {
        let mut arrays = Arrays::new(array_bytes)?;
        (arrays.copy()?, arrays.triad()?)
    };
    let [f32, bf16] = products(CPU_ROWS, Device::Cpu)?;
    Ok(DeviceRates {
        device: "cpu".to_owned(),
        card: None,
        threads: Some(i64::from(threads)),
        measured_at: Utc::now(),
        stepledger: env!("CARGO_PKG_VERSION").to_owned(),
        torch: torch_version(),
        array_bytes: Some(array_bytes),
        caches_bytes,
        copy_gb_s,
        triad_gb_s,
        matmul_f32_tflop_s: f32.rate,
        matmul_bf16_tflop_s: bf16.rate,
        matmul_f32_rows: Some(f32.rows),
        matmul_bf16_rows: Some(bf16.rows),
        fma_f32_tflop_s: None,
    })
}

fn measure_gpu(device: Device, ordinal: i32) -> Result<DeviceRates, RatesError> {
    let card = cards()?.into_iter().find(|card| card.ordinal == ordinal);
    let memory_bytes = card.as_ref().map_or(GPU_BYTES, |card| card.memory_bytes);
    let gpu: Arc<Gpu> = Gpu::open(ordinal)?;
    let cache = Cache::standard();
    let memory = measure_bandwidth(&gpu, &cache, GPU_BYTES.min(memory_bytes / 4) as usize)?;
    let [f32, bf16] = products(GPU_ROWS, device)?;
    Ok(DeviceRates {
        device: format!("cuda:{ordinal}"),
        card: card.map(|card| card.name),
        threads: None,
        measured_at: Utc::now(),
        stepledger: env!("CARGO_PKG_VERSION").to_owned(),
        torch: torch_version(),
        array_bytes: None,
        caches_bytes: None,
        copy_gb_s: measured(memory.copy),
        triad_gb_s: measured(memory.triad),
        matmul_f32_tflop_s: f32.rate,
        matmul_bf16_tflop_s: bf16.rate,
        matmul_f32_rows: Some(f32.rows),
        matmul_bf16_rows: Some(bf16.rows),
        fma_f32_tflop_s: Some(measured(measure_fma(&gpu, &cache)?)),
    })
}

fn measured(rate: Rate) -> MeasuredRate {
    let Rate { median, q1, q3, rounds } = rate;
    MeasuredRate { median, q1, q3, rounds }
}

/// How fast a product is, in TFLOP/s, and of how many rows it was.
struct ProductRate {
    rate: MeasuredRate,
    rows: i64,
}

/// In f32 and in bf16, of two matrices of at most so many rows.
fn products(most: i64, device: Device) -> Result<[ProductRate; 2], RatesError> {
    Ok([product(most, Kind::Float, device)?, product(most, Kind::BFloat16, device)?])
}

fn product(most: i64, kind: Kind, device: Device) -> Result<ProductRate, RatesError> {
    let product = Product::fitting(most, kind, device)?;
    let rate = rate(product.operations() / 1e12, || product.compute(), || product.wait())?;
    Ok(ProductRate { rate, rows: product.rows() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_of_the_driver_is_a_rate_of_ours() {
        let rate = measured(Rate { median: 3.0, q1: 2.0, q3: 4.0, rounds: 20 });
        assert_eq!(rate, MeasuredRate { median: 3.0, q1: 2.0, q3: 4.0, rounds: 20 });
    }

    #[test]
    fn a_product_takes_time_on_a_cpu() {
        for kind in [Kind::Float, Kind::BFloat16] {
            let ProductRate { rate, rows } = product(64, kind, Device::Cpu).unwrap();
            assert_eq!((rate.rounds, rows), (5, 64));
            assert!(rate.q1 <= rate.median && rate.median <= rate.q3 && rate.q1 > 0.0, "{rate:?}");
        }
    }
}
