//! What can go wrong with the driver: there is none, or a call of it fails.

use std::ffi::{CStr, c_char};
use std::fmt;

use super::calls::{Code, Function, GET_ERROR_NAME, GET_ERROR_STRING};

/// Why there is no driver to call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoDriver {
    NotFound,
    /// It is there and cannot be loaded.
    Broken {
        reasons: String,
    },
    /// What is there lacks a function that every driver of the last years has.
    Lacks {
        /// Its path.
        library: String,
        function: &'static str,
    },
}

impl NoDriver {
    /// What was found instead of one.
    pub fn found(&self) -> String {
        match self {
            NoDriver::NotFound => "the CUDA driver library (libcuda.so.1) was not found".to_owned(),
            NoDriver::Broken { reasons } => {
                format!("the CUDA driver library (libcuda.so.1) is there and cannot be loaded: {reasons}")
            }
            NoDriver::Lacks { library, function } => format!(
                "{library}, which is loaded as the CUDA driver library, has no {function}: it is none, or too old"
            ),
        }
    }

    pub const fn way_out(&self) -> &'static str {
        match self {
            NoDriver::NotFound => "install NVIDIA's driver",
            NoDriver::Broken { .. } => "install NVIDIA's driver again",
            NoDriver::Lacks { .. } => {
                "take its folder out of LD_LIBRARY_PATH where NVIDIA's driver is installed, install that driver where it is not"
            }
        }
    }
}

impl fmt::Display for NoDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}, or use --device cpu", self.found(), self.way_out())
    }
}

impl std::error::Error for NoDriver {}

/// A call that failed. Codes are the driver's own, which may be newer than all that is known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallFailed {
    pub call: &'static str,
    pub code: i32,
}

/// In the driver's own words, where it has any.
impl fmt::Display for CallFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CallFailed { call, code } = self;
        match told(&GET_ERROR_NAME, *code).zip(told(&GET_ERROR_STRING, *code)) {
            Some((name, text)) => write!(f, "{call}: {text} ({name}, code {code})"),
            None => write!(f, "{call}: code {code}, which this driver does not explain"),
        }
    }
}

impl std::error::Error for CallFailed {}

type Tell = unsafe extern "C" fn(Code, *mut *const c_char) -> Code;

fn told(function: &Function<Tell>, code: Code) -> Option<String> {
    let mut text = std::ptr::null();
    // SAFETY: takes any code, and writes one pointer to a place of ours.
    function.call(|tell| unsafe { tell(code, &raw mut text) }).ok()?;
    // SAFETY: a text of the driver's, which is never unloaded.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// Why the driver did not do what it was asked to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DriverError {
    #[error(transparent)]
    None(#[from] NoDriver),
    #[error("CUDA driver, {0}")]
    Call(#[from] CallFailed),
}

impl DriverError {
    /// What the driver has returned, if it was called.
    pub fn code(&self) -> Option<i32> {
        match self {
            DriverError::None(_) => None,
            DriverError::Call(failed) => Some(failed.code),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_driver_is_told_with_the_way_out() {
        let lacks = NoDriver::Lacks { library: "/opt/x/libcuda.so".to_owned(), function: "cuInit" };
        let broken = NoDriver::Broken { reasons: "file too short".to_owned() };
        for (error, words) in [
            (&NoDriver::NotFound, ["libcuda.so.1", "was not found", "install NVIDIA's driver"]),
            (&broken, ["cannot be loaded", "file too short", "again"]),
            (&lacks, ["/opt/x/libcuda.so", "has no cuInit", "LD_LIBRARY_PATH"]),
        ] {
            let message = error.to_string();
            assert!(words.iter().all(|words| message.contains(words)), "{message}");
            assert!(message.ends_with("or use --device cpu"), "{message}");
        }
    }
}
