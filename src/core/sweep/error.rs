//! What keeps a sweep from being made.

use std::io;
use std::path::PathBuf;

/// Why there is no sweep. That one of its runs fails is none: that is a result.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    #[error("this program's own path is not known: {0}")]
    NoProgram(io::Error),
    #[error("{program} cannot be run: {source}")]
    Start { program: PathBuf, source: io::Error },
}
