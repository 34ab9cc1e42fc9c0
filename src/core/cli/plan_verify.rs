//! `stepledger plan --verify`: the plan put to the test.

use std::path::Path;

use serde_json::{Map, Value};

use crate::plan::{Plan, Verified};

/// Runs the best setting and the first batch of it that is predicted not to fit.
pub fn verify(_plan: &Plan, _defaults: &Map<String, Value>, _out: &Path) -> anyhow::Result<Vec<Verified>> {
    anyhow::bail!("--verify waits for the program")
}
