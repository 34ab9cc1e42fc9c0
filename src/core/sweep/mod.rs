//! Runs over a grid of settings, each in a process of its own: which setting is fastest in the memory there is?
//!
//! A [`Spec`] says what to run, a [`Folder`] keeps it, [`sweep`] makes the runs through a [`Program`] and sums them up
//! as a [`Sweep`].
#![forbid(unsafe_code)]

mod answer;
mod cell;
mod duel;
mod error;
mod folder;
mod grid;
mod measure;
mod order;
mod parent;
mod program;
mod result;
mod run;
mod spec;
mod tried;

pub use answer::Answer;
pub use cell::CellResult;
pub use error::SweepError;
pub use folder::Folder;
pub use grid::{AXES, Axis, Cell, Grid, GridError, MOST_CELLS};
pub use order::{Turn, order};
pub use parent::follow;
pub use program::{Program, Ran};
pub use result::Sweep;
pub use run::{Progress, sweep};
pub use spec::{SWEEP_VERSION, Spec};
