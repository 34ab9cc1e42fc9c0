//! What a toy model must take, from its configuration alone: the closed forms that measurements are held
//! against. Pure.
//!
//! Theory and measurement never share a column: what comes from here is called theory wherever it is shown.
#![forbid(unsafe_code)]

mod choices;
mod shape;

pub use choices::{AdamWKind, Attention, ModelKind, Precision, StateType, ZeroGrad};
pub use shape::{Architecture, Shape, VOCABULARY};
