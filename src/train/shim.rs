//! Calls into the C++ files of this module: tensors go in as pointers, an error comes back as libtorch's message.

use std::ffi::{c_int, c_void};

use tch::{TchError, Tensor};

use crate::probe::libtorch_error;

/// An `at::Tensor*`.
pub type RawTensor = *mut c_void;

/// The tensors' pointers, good while the tensors live.
pub fn raw(tensors: &[Tensor]) -> Vec<RawTensor> {
    tensors.iter().map(|tensor| tensor.as_ptr() as RawTensor).collect()
}

/// What a call came to: 0, or else the message is there.
pub fn checked(code: c_int) -> Result<(), TchError> {
    match code {
        0 => Ok(()),
        _ => Err(TchError::Torch(libtorch_error())),
    }
}
