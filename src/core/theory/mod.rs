//! What a toy model must take, from its configuration alone: the closed forms that measurements are held
//! against. Pure.
//!
//! Theory and measurement never share a column: what comes from here is called theory wherever it is shown.
#![forbid(unsafe_code)]

mod activations;
mod alternatives;
mod backward;
mod choices;
mod datasheet;
mod peak;
mod products;
mod products_at_most;
mod recompute;
mod setup;
mod shape;
mod state;

pub use alternatives::Alternative;
pub use choices::{AdamWKind, Attention, Checkpoint, Float, ModelKind, Precision, ZeroGrad};
pub use datasheet::{datasheet, datasheets};
pub use products_at_most::ProductsAtMost;
pub use setup::{MAX_BATCH, Setup, SetupError};
pub use shape::{Architecture, Shape, VOCABULARY};
pub use state::Training;
