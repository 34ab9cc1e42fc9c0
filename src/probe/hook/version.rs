//! Which libtorch this was built for, and which one runs.

use std::ffi::CStr;

use super::{HookError, ffi};

/// The version of libtorch that this was built against, such as `2.11.0`.
pub fn torch_version() -> String {
    // SAFETY: a NUL-terminated string that lives as long as the program.
    unsafe { CStr::from_ptr(ffi::sl_torch_version()) }.to_string_lossy().into_owned()
}

/// Whether the libtorch that this process has loaded is the one that this was built against.
///
/// # Errors
/// If it is another one: what is watched there is laid out otherwise.
pub fn check_libtorch() -> Result<(), HookError> {
    // SAFETY: takes nothing, and gives a number.
    compare(torch_version(), unsafe { ffi::sl_loaded_torch_version() })
}

/// `loaded` has major, minor and patch in its upper three bytes; 0 is one that does not say, from before it could.
fn compare(built: String, loaded: u64) -> Result<(), HookError> {
    let [major, minor, patch, ..] = loaded.to_be_bytes();
    let loaded = match loaded {
        0 => "of before 2.9".to_owned(),
        _ => format!("{major}.{minor}.{patch}"),
    };
    if loaded == built { Ok(()) } else { Err(HookError::OtherLibtorch { loaded, built }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_libtorch_that_was_built_for_is_the_one_that_runs() {
        check_libtorch().unwrap();
    }

    #[test]
    fn another_one_is_refused_by_both_versions() {
        let number = |major: u64, minor: u64, patch: u64| major << 56 | minor << 48 | patch << 40;
        let check = |loaded| compare("2.11.0".to_owned(), loaded).map_err(|error| error.to_string());
        assert_eq!(check(number(2, 11, 0)), Ok(()));
        for (loaded, named) in [(number(2, 11, 1), "2.11.1"), (number(2, 10, 0), "2.10.0"), (0, "before 2.9")]
        {
            let message = check(loaded).unwrap_err();
            for words in [named, "built for 2.11.0", "LD_LIBRARY_PATH"] {
                assert!(message.contains(words), "{words}: {message}");
            }
        }
    }
}
