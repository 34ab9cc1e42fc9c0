//! Puts a training step under instruments.
pub mod cli;
pub mod record;
pub mod rules;
