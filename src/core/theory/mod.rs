//! What a toy model must take, from its configuration alone: the closed forms that measurements are held
//! against. Pure.
//!
//! Theory and measurement never share a column: what comes from here is called theory wherever it is shown.
#![forbid(unsafe_code)]

mod shape;

pub use shape::{Architecture, Attention, Shape, VOCABULARY};
