//! Toy models to train under the instruments: a GPT in GPT-2's layout, and a plain MLP.

mod adamw;
mod autocast;
mod checkpoint;
mod config;
mod data;
mod device_name;
mod error;
mod gpt;
mod kernel;
mod layers;
mod mlp;
mod model;
mod ops;
mod segments;
mod session;
mod shim;
mod weights;

pub use adamw::AdamW;
pub use autocast::autocast;
pub use checkpoint::{Checkpoint, checkpoint, checkpoint_one};
pub use config::{AdamWConfig, Config, CopyConfig, Files};
pub use data::{Batch, Loader, read_text};
pub use device_name::device;
pub use error::TrainError;
pub use model::{Model, build};
pub use session::train;

pub use crate::theory::{
    AdamWKind, Attention, Checkpoint as CheckpointPolicy, Float, ModelKind, Precision, ZeroGrad,
};
