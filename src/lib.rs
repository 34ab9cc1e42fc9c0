//! Puts a training step under instruments.
pub mod record;
pub mod rules;
