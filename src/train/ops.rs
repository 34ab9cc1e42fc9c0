//! Operators with numbers among their arguments, whose failure is an error.
//!
//! tch has them, but frees the number before it reads libtorch's error, takes the error for that of the freeing,
//! and panics. Out of memory is a normal outcome here.

use std::ffi::{c_int, c_void};
use std::ptr;

use tch::{TchError, Tensor};

use super::shim::{RawTensor, checked};

unsafe extern "C" {
    fn sl_multiply(tensor: RawTensor, factor: f64, made: *mut *mut c_void) -> c_int;
    fn sl_divide(tensor: RawTensor, divisor: f64, made: *mut *mut c_void) -> c_int;
    fn sl_masked_fill(tensor: RawTensor, mask: RawTensor, value: f64, made: *mut *mut c_void) -> c_int;
    fn sl_arange(end: i64, like: RawTensor, made: *mut *mut c_void) -> c_int;
}

pub fn multiply(tensor: &Tensor, factor: f64) -> Result<Tensor, TchError> {
    // SAFETY: a live tensor, and a place for the new one.
    made(|place| unsafe { sl_multiply(raw(tensor), factor, place) })
}

pub fn divide(tensor: &Tensor, divisor: f64) -> Result<Tensor, TchError> {
    // SAFETY: a live tensor, and a place for the new one.
    made(|place| unsafe { sl_divide(raw(tensor), divisor, place) })
}

/// `value` where `mask` is true.
pub fn masked_fill(tensor: &Tensor, mask: &Tensor, value: f64) -> Result<Tensor, TchError> {
    // SAFETY: two live tensors, and a place for the new one.
    made(|place| unsafe { sl_masked_fill(raw(tensor), raw(mask), value, place) })
}

/// 0 to `end` − 1, int64, on the device of `like`.
pub fn arange(end: i64, like: &Tensor) -> Result<Tensor, TchError> {
    // SAFETY: a live tensor, and a place for the new one.
    made(|place| unsafe { sl_arange(end, raw(like), place) })
}

fn raw(tensor: &Tensor) -> RawTensor {
    tensor.as_ptr() as RawTensor
}

fn made(make: impl FnOnce(*mut *mut c_void) -> c_int) -> Result<Tensor, TchError> {
    let mut place = ptr::null_mut();
    checked(make(&raw mut place))?;
    // SAFETY: the shim has put a new `at::Tensor` there, which is ours alone.
    Ok(unsafe { Tensor::from_ptr(place.cast()) })
}
