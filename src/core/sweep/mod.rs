//! Runs over a grid of settings, each in a process of its own: which setting is fastest in the memory there is?
//!
//! A [`Spec`] says what to run, a [`Folder`] keeps it, [`sweep`] makes the runs through a [`Program`] and sums them up
//! as a [`Sweep`].
//!
//! ```no_run
//! use std::path::Path;
//!
//! use stepledger_core::sweep::{Axis, Folder, Grid, Program, Spec, SweepError, sweep};
//!
//! fn best_batch() -> Result<Option<String>, SweepError> {
//!     let grid = Grid::new(vec![Axis::parse("batch", "4,8,16")?, Axis::parse("checkpoint", "none,full")?])?;
//!     let base = ["--steps", "60", "--trace", "phases"].map(str::to_owned).to_vec();
//!     let folder = Folder::create(Path::new("runs"), Spec::new("by-hand", grid, base, 5))?;
//!     // In a program of your own, which is not `stepledger` itself, the program that trains is named.
//!     let program = Program::at("stepledger");
//!     let made = sweep(&folder, &program, &mut |progress| println!("{} of {}", progress.done, progress.total), &|| false)?;
//!     Ok(made.answer.best.map(|_| made.answer.sentences.join(" ")))
//! }
//! ```
#![forbid(unsafe_code)]

mod alike;
mod answer;
mod attempts;
mod cell;
mod duel;
mod error;
mod folder;
mod gather;
mod grid;
mod measure;
mod nothing;
mod order;
mod parent;
mod program;
mod result;
mod run;
mod spec;
mod standing;
mod tried;
mod workload;

pub use answer::Answer;
pub use cell::CellResult;
pub use error::SweepError;
pub use folder::Folder;
pub use gather::SetAside;
pub use grid::{AXES, Axis, Cell, Grid, GridError, MOST_CELLS};
pub use order::{Turn, order};
pub use parent::{follow, lead};
pub use program::{Program, Ran};
pub use result::Sweep;
#[cfg(test)]
pub use result::made_up;
pub use run::{Progress, sweep};
pub use spec::{MOST_REPEATS, SWEEP_VERSION, Spec};
pub use workload::Workload;
