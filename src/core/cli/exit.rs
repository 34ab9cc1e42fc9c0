//! How commands end: exit codes, and errors told on stderr.

use std::fmt::Display;
use std::io;

use super::note::note;

/// What a command comes to: its exit code, or an error to tell.
pub type Outcome = anyhow::Result<u8>;

pub const DONE: u8 = 0;
pub const FAILED: u8 = 1;
pub const BAD_INPUT: u8 = 2;
pub const OUT_OF_MEMORY: u8 = 3;
/// Of a gate: neither held nor passed.
pub const CANNOT_TELL: u8 = 3;
pub const INTERRUPTED: u8 = 130;

/// An error that wants an exit code of its own.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Exit {
    code: u8,
    message: String,
}

impl Exit {
    /// The input or the flags were wrong.
    pub fn input(error: impl Display) -> anyhow::Error {
        Exit { code: BAD_INPUT, message: error.to_string() }.into()
    }
}

/// Tells an error on stderr, with its causes, and turns it into an exit code.
pub fn conclude(outcome: Outcome) -> u8 {
    match outcome {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => DONE,
        Err(error) => {
            note(format_args!("stepledger: {}", with_causes(&error)));
            error.downcast_ref::<Exit>().map_or(FAILED, |exit| exit.code)
        }
    }
}

/// An error and its causes; one that is quoted already is not told again.
fn with_causes(error: &anyhow::Error) -> String {
    let causes = error.chain().map(ToString::to_string);
    causes
        .reduce(|told, cause| if told.contains(&cause) { told } else { format!("{told}: {cause}") })
        .unwrap_or_default()
}

/// Whoever read our output (`head`, say) has seen enough.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
    io.is_some_and(|io| io.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StoreError;

    #[test]
    fn a_cause_is_told_once() {
        let source = io::Error::from(io::ErrorKind::PermissionDenied);
        let error = anyhow::Error::from(StoreError::Write { path: "runs".into(), source });
        assert_eq!(with_causes(&error).matches("permission denied").count(), 1);
        let error = anyhow::Error::msg("no such file").context("it cannot be read");
        assert_eq!(with_causes(&error), "it cannot be read: no such file");
    }
}
