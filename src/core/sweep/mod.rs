//! Runs over a grid of settings, each in a process of its own.
#![forbid(unsafe_code)]

mod error;
mod grid;
mod order;
mod program;

pub use error::SweepError;
pub use grid::{AXES, Axis, Cell, Grid, GridError, MOST_CELLS};
pub use order::{Turn, order};
pub use program::{Program, Ran};
