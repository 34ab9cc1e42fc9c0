//! The work that is timed, through libtorch.

use std::ffi::{c_int, c_void};
use std::time::Instant;

use tch::{Device, Kind, TchError, Tensor};

use super::error::RatesError;
use super::rounds::rate;
use crate::probe::libtorch_error;
use crate::record::MeasuredRate;

unsafe extern "C" {
    fn sl_triad(to: *mut c_void, from: *const c_void, scaled: *const c_void, factor: f64) -> c_int;
}

/// Three arrays in a CPU's memory.
pub struct Arrays {
    to: Tensor,
    from: Tensor,
    scaled: Tensor,
    bytes: u64,
}

impl Arrays {
    pub fn new(bytes: u64) -> Result<Self, RatesError> {
        let elements = (bytes / 4) as i64;
        // Written to here, so that every page of them is in memory.
        let array = || Tensor::f_ones([elements], (Kind::Float, Device::Cpu));
        Ok(Arrays { to: array()?, from: array()?, scaled: array()?, bytes })
    }

    /// GB/s, read and written bytes together. What a cache line is read for before it is written to does not count.
    pub fn copy(&mut self) -> Result<MeasuredRate, RatesError> {
        let Arrays { to, from, bytes, .. } = self;
        rate(2.0 * *bytes as f64 / 1e9, || Ok(to.f_copy_(from)?), || Ok(()))
    }

    pub fn triad(&mut self) -> Result<MeasuredRate, RatesError> {
        rate(3.0 * self.bytes as f64 / 1e9, || self.add_up(), || Ok(()))
    }

    fn add_up(&self) -> Result<(), RatesError> {
        let [to, from, scaled] = [&self.to, &self.from, &self.scaled].map(|tensor| tensor.as_ptr());
        // SAFETY: three live tensors of one size; the shim returns libtorch's errors.
        match unsafe { sl_triad(to.cast_mut().cast(), from.cast(), scaled.cast(), 3.0) } {
            0 => Ok(()),
            _ => Err(TchError::Torch(libtorch_error()).into()),
        }
    }
}

const LEAST_ROWS: i64 = 256;
/// A processor at some 100 GFLOP/s takes a fifth of this for 2048 rows, and one without instructions for bf16, at some
/// 1 GFLOP/s, a third of it for 512 and twice as long for 1024: nearer to a limit chance would decide on the size.
const LONGEST_S: f64 = 0.75;
/// How often a product is timed before one of twice the rows is given up: whatever comes between makes times longer.
const SAMPLES: usize = 5;

/// A product of two square matrices of normal numbers, into a third: `at::mm`.
pub struct Product {
    left: Tensor,
    right: Tensor,
    product: Tensor,
    rows: i64,
}

impl Product {
    pub fn new(rows: i64, kind: Kind, device: Device) -> Result<Self, RatesError> {
        // Zeros would take less power, and so let a card run faster than any model does.
        let normal = || Tensor::f_randn([rows, rows], (Kind::Float, device))?.f_to_kind(kind);
        let product = Tensor::f_zeros([rows, rows], (kind, device))?;
        Ok(Product { left: normal()?, right: normal()?, product, rows })
    }

    /// As large as `most` rows and three quarters of a second allow: a CPU without instructions for bf16 takes hundreds of
    /// times as long for it as for f32.
    pub fn fitting(most: i64, kind: Kind, device: Device) -> Result<Self, RatesError> {
        largest(most, |rows| Product::new(rows, kind, device), Product::seconds)
    }

    pub fn rows(&self) -> i64 {
        self.rows
    }

    fn seconds(&self) -> Result<f64, RatesError> {
        self.wait()?;
        let begin = Instant::now();
        self.compute()?;
        self.wait()?;
        Ok(begin.elapsed().as_secs_f64())
    }

    pub fn operations(&self) -> f64 {
        2.0 * (self.rows as f64).powi(3)
    }

    pub fn compute(&self) -> Result<(), RatesError> {
        let _ = self.left.f_mm_out(&self.product, &self.right)?;
        Ok(())
    }

    /// Reads a number of the product, which is there when everything queued before is done.
    pub fn wait(&self) -> Result<(), RatesError> {
        self.product.f_double_value(&[0, 0])?;
        Ok(())
    }
}

/// What `made` of the largest number of rows, doubled from [`LEAST_ROWS`] up to `most`, whose product fits by its `seconds`.
fn largest<P>(
    most: i64,
    made: impl Fn(i64) -> Result<P, RatesError>,
    seconds: impl Fn(&P) -> Result<f64, RatesError>,
) -> Result<P, RatesError> {
    let mut rows = LEAST_ROWS.min(most);
    let mut product = made(rows)?;
    while 2 * rows <= most && twice_the_rows_fit(|| seconds(&product))? {
        rows *= 2;
        product = made(rows)?;
    }
    Ok(product)
}

/// Whether a product of twice the rows, which is eight times the work, takes [`LONGEST_S`] at most by the shortest of some
/// times. The first does not count: it may hold the making of threads, or of a GPU's libraries and kernels, which takes
/// longer than any product that is meant here.
fn twice_the_rows_fit(mut seconds: impl FnMut() -> Result<f64, RatesError>) -> Result<bool, RatesError> {
    seconds()?;
    for _ in 0..SAMPLES {
        if 8.0 * seconds()? <= LONGEST_S {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_call_does_not_decide_on_the_size() {
        let fit = |times: &[f64]| {
            let mut times = times.iter();
            twice_the_rows_fit(|| Ok(*times.next().unwrap())).unwrap()
        };
        assert!(fit(&[0.5, 0.0004]));
        assert!(fit(&[0.5, LONGEST_S / 8.0]));
        assert!(fit(&[0.0004, 0.2, 0.3, 0.2, 0.4, 0.0004]));
        assert!(!fit(&[0.0004, 0.1, 0.1, 0.1, 0.1, 0.1]), "the first does not count");
    }

    /// The rows that are taken where a product takes its operations by this rate, and every call but each fifth three times
    /// as long, beginning with this one.
    fn rows_where_others_compute(tflop_s: f64, begin: usize) -> i64 {
        let calls = std::cell::Cell::new(begin);
        let seconds = |rows: &i64| {
            calls.set(calls.get() + 1);
            let alone = calls.get().is_multiple_of(5);
            Ok(2.0 * (*rows as f64).powi(3) / 1e12 / tflop_s * if alone { 1.0 } else { 3.0 })
        };
        largest(2048, Ok, seconds).unwrap()
    }

    #[test]
    fn the_size_is_the_same_whenever_others_compute_beside() {
        for begin in 0..5 {
            // 0.32 s for 2048 rows at 54 GFLOP/s, 1.8 s for 1024 rows at 1.2.
            let rows = [0.16, 0.054, 0.0012].map(|tflop_s| rows_where_others_compute(tflop_s, begin));
            assert_eq!(rows, [2048, 2048, 512], "{begin}");
        }
    }

    #[test]
    fn a_product_is_as_large_as_is_allowed_and_never_larger() {
        let rows = |most| Product::fitting(most, Kind::Float, Device::Cpu).unwrap().rows();
        assert_eq!([64, 256, 511].map(rows), [64, 256, 256]);
    }

    #[test]
    fn triad_adds_a_scaled_array() {
        let arrays = Arrays::new(4096).unwrap();
        arrays.add_up().unwrap();
        assert_eq!(arrays.to.f_sum(Kind::Double).unwrap().f_double_value(&[]).unwrap(), 4.0 * 1024.0);
    }

    #[test]
    fn copy_moves_two_arrays() {
        let mut arrays = Arrays::new(4 << 20).unwrap();
        arrays.add_up().unwrap();
        assert!(arrays.copy().unwrap().median > 0.0);
        assert_eq!(arrays.to.double_value(&[0]), 1.0);
    }

    #[test]
    fn what_libtorch_refuses_is_an_error() {
        let mut arrays = Arrays::new(4096).unwrap();
        arrays.scaled = Tensor::ones([3], (Kind::Float, Device::Cpu));
        let error = arrays.triad().unwrap_err().to_string();
        assert!(error.contains("libtorch") && error.contains("size"), "{error}");
    }
}
