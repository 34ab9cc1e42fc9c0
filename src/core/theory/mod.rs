//! What a toy model must take, from its configuration alone: the closed forms that measurements are held
//! against. Pure.
//!
//! Theory and measurement never share a column: what comes from here is called theory wherever it is shown.
#![forbid(unsafe_code)]

mod activations;
mod backward;
mod peak;
mod precision;
mod shape;
mod state;

pub use precision::{Float, Precision};
pub use shape::{Architecture, Attention, Shape, VOCABULARY};
pub use state::{AdamWLoop, Training, ZeroGrad};
