//! The commands a plan tells to run.

use serde_json::{Map, Value};

use super::flags::run_flags;
use super::making::Base;
use crate::record::{Trace, shell_word};

/// Writes commands for one setting.
pub struct Commands<'a> {
    base: &'a Base,
    defaults: &'a Map<String, Value>,
}

impl<'a> Commands<'a> {
    pub fn new(base: &'a Base, defaults: &'a Map<String, Value>) -> Self {
        Commands { base, defaults }
    }

    /// The batch of the setting itself.
    pub fn usual_batch(&self) -> i64 {
        self.base.config.get("batch").and_then(Value::as_i64).unwrap_or(1)
    }

    /// What to run for this batch and policy; of a program of the reader's own, in words.
    pub fn run(&self, batch: i64, checkpoint: Option<&str>) -> String {
        match &self.base.program {
            Some(program) if !self.base.is_toy() => {
                let policy = checkpoint.map(|policy| format!(", checkpoint {policy}")).unwrap_or_default();
                format!("{program} again, with batch {batch}{policy}")
            }
            _ => format!("stepledger run {}", self.flags(batch, checkpoint).join(" ")),
        }
    }

    /// The flags alone.
    pub fn flags(&self, batch: i64, checkpoint: Option<&str>) -> Vec<String> {
        let mut flags = run_flags(&self.base.config, self.defaults, batch, checkpoint);
        if self.base.device != "cpu" {
            flags.extend(["--device".to_owned(), self.base.device.clone()]);
        }
        // Runs of another depth could not be planned from together with these.
        if let Some(trace) = self.base.trace.filter(|&trace| trace != Trace::Allocations) {
            flags.extend(["--trace".to_owned(), trace.to_string()]);
        }
        flags.iter().map(|flag| shell_word(flag)).collect()
    }
}
