//! Records ⇄ Parquet: the dataset of one run, `<out>/<run_id>/`.
//!
//! [`DatasetWriter`] keeps a run's rows while it goes on, [`Dataset`] reads them back, [`resolve`] finds
//! the folder, [`run_folders`] all of them. The tables are declared once, in `schema.rs`; `SCHEMA.md` beside it
//! says what they mean.
//!
//! A part is written to a temporary name, synced and renamed, so whatever bears its final name is whole:
//! a killed run loses at most what was not flushed.
#![forbid(unsafe_code)]

mod baselines;
mod calibration;
mod cell;
mod decode;
mod encode;
mod error;
mod experiments;
mod file;
mod flat;
mod folders;
mod glance;
mod known;
mod liveness;
mod locate;
mod noise;
mod reader;
mod removal;
mod schema;
mod sink;
mod space;
mod sweep_removal;
mod sweeps;
mod this_machine;
mod writer;

pub use baselines::{Baseline, Baselines};
pub use calibration::{Calibrations, MachineCalibration, home};
pub use error::{Damage, StoreError};
pub use file::replace as write_whole;
pub use flat::PhaseTime;
pub use folders::{Contents, contents, is_run_folder, run_folders};
pub use glance::{Glance, StepGlance, glance};
pub use known::sides_in;
pub use liveness::{holders, is_being_written};
pub use locate::{began, exactly, find_run, is_run, newest, resolve, runs_in};
pub use noise::Noise;
pub use reader::Dataset;
pub use removal::{RemovalError, refuse_link, removable, remove};
pub use sink::RunFolder;
pub use space::free_bytes;
pub use sweep_removal::{SweepContents, is_sweep_folder, removable_sweep, remove_sweep};
pub use sweeps::{keep_sweep, read_sweep};
pub use this_machine::this_machine;
pub use writer::DatasetWriter;
