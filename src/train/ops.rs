//! Operators with numbers among their arguments, whose failure is an error.
//!
//! tch has them, but frees the number before it reads libtorch's error, takes the error for that of the freeing,
//! and panics. Out of memory is a normal outcome here. And pinning, for which tch names a device, which is deprecated.

use std::ffi::{c_int, c_void};
use std::ptr;

use tch::{TchError, Tensor};

use super::shim::{RawTensor, checked};

unsafe extern "C" {
    fn sl_multiply(tensor: RawTensor, factor: f64, made: *mut *mut c_void) -> c_int;
    fn sl_divide(tensor: RawTensor, divisor: f64, made: *mut *mut c_void) -> c_int;
    fn sl_masked_fill(tensor: RawTensor, mask: RawTensor, value: f64, made: *mut *mut c_void) -> c_int;
    fn sl_arange(end: i64, like: RawTensor, made: *mut *mut c_void) -> c_int;
    fn sl_pin_memory(tensor: RawTensor, made: *mut *mut c_void) -> c_int;
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

/// A copy in memory that the system does not page, which the GPU can read by itself.
pub fn pin_memory(tensor: &Tensor) -> Result<Tensor, TchError> {
    // SAFETY: a live tensor, and a place for the new one.
    made(|place| unsafe { sl_pin_memory(raw(tensor), place) })
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

#[cfg(test)]
mod tests {
    use std::process::Command;

    use tch::{Device, Kind};

    use super::*;

    /// What a process says on stderr that pins a tensor in this way.
    fn said_while(pinning: &str) -> String {
        let (_, module) = module_path!().split_once("::").unwrap();
        let test = format!("{module}::pinning_warns_of_nothing");
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args([&test, "--exact", "--nocapture"]).env("STEPLEDGER_PINNING", pinning);
        let output = child.output().unwrap();
        assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("1 passed"));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// There is nothing to pin for without a GPU; the warning comes before that.
    #[test]
    fn pinning_warns_of_nothing() {
        let tensor = Tensor::zeros([4], (Kind::Float, Device::Cpu));
        match std::env::var("STEPLEDGER_PINNING").as_deref() {
            Ok("ours") => drop(pin_memory(&tensor)),
            Ok(_) => drop(tensor.f_pin_memory(Device::Cuda(0))),
            Err(_) => {
                assert!(said_while("tch's").contains("deprecated"), "what ours is there to avoid");
                assert_eq!(said_while("ours"), "");
            }
        }
    }
}
