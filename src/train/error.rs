//! What can go wrong while a toy model is trained.

use std::fmt::Display;
use std::path::PathBuf;

use tch::TchError;

use crate::device::DeviceError;
use crate::probe::ProbeError;
use crate::theory::SetupError;

/// Why a run could not be made, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error("--data {}: {reason}", path.display())]
    Data { path: PathBuf, reason: String },
    #[error("{flag} {}: {reason}", path.display())]
    Weights { flag: &'static str, path: PathBuf, reason: String },
    #[error("--device {device}: {reason}")]
    Device { device: String, reason: String },
    #[error("libtorch: {0}")]
    Torch(String),
    #[error("not enough memory: {0}")]
    OutOfMemory(String),
    #[error("the loader thread ended early")]
    LoaderGone,
    #[error(transparent)]
    Probe(#[from] ProbeError),
    #[error(transparent)]
    Kernel(#[from] DeviceError),
}

impl TrainError {
    pub(super) fn flag(flag: &'static str, value: impl Display, allowed: String) -> Self {
        SetupError::flag(flag, value, allowed).into()
    }

    /// Whether the input was wrong, rather than the work.
    pub fn is_input(&self) -> bool {
        matches!(
            self,
            TrainError::Setup(_)
                | TrainError::Data { .. }
                | TrainError::Weights { .. }
                | TrainError::Device { .. }
                | TrainError::Probe(ProbeError::Open(_))
        )
    }
}

impl From<TchError> for TrainError {
    fn from(error: TchError) -> Self {
        let message = first_part(&error.to_string());
        match SHORT_OF_MEMORY.iter().any(|words| message.contains(words)) {
            true => TrainError::OutOfMemory(message),
            false => TrainError::Torch(message),
        }
    }
}

/// How libtorch's allocators and C++ say it; tch passes on nothing but the message.
const SHORT_OF_MEMORY: [&str; 4] =
    ["not enough memory", "out of memory", "can't allocate memory", "std::bad_alloc"];

/// tch says whose error it is, and libtorch appends the C++ stack; people need the part between.
pub(super) fn first_part(message: &str) -> String {
    let message = message.strip_prefix("Internal torch error: ").unwrap_or(message);
    let stack = ["\nException raised from", "\nframe #"].iter().filter_map(|begin| message.find(begin)).min();
    message[..stack.unwrap_or(message.len())].trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stack_is_cut_off() {
        assert_eq!(first_part("bad shape\nException raised from f at g.cpp:1\nframe #0"), "bad shape");
        assert_eq!(first_part("no room\nframe #0: c10::ThrowEnforceNotMet"), "no room");
        assert_eq!(first_part("Internal torch error:  plain "), "plain");
    }
}
