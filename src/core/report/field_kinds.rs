//! What the runs of a list have under the name of a field, and what that can be held against.

use serde_json::Value;

use super::listed_run::{FACTS, ListedRun, TIMES, VERSIONS};
use super::run_condition::{Condition, finite};
use super::run_filter::SelectionError;

/// The kinds of values that some run has of a field.
#[derive(Debug, Clone, Default)]
pub struct Kinds {
    /// Some run has a field of this name, if only an empty one.
    pub known: bool,
    number: bool,
    truth: bool,
    text: bool,
    /// A list or an object, which are told by how they are written.
    other: bool,
}

impl Kinds {
    pub fn take(&mut self, run: &ListedRun, field: &str) {
        self.known |= FACTS.contains(&field) || run.configures(field);
        match run.field(field) {
            Value::Null => {}
            Value::Number(_) => self.number = true,
            Value::Bool(_) => self.truth = true,
            Value::String(_) => self.text = true,
            Value::Array(_) | Value::Object(_) => self.other = true,
        }
    }

    /// Refuses a condition that none of these values could meet, or miss, for what it says.
    pub fn check(&self, condition: &Condition) -> Result<(), SelectionError> {
        let (field, value) = (condition.field.as_str(), condition.value.as_str());
        // Of times and versions a condition itself knows what they can be held against.
        if value == "null" || TIMES.contains(&field) || VERSIONS.contains(&field) {
            return Ok(());
        }
        let nothing = !(self.number || self.truth || self.text || self.other);
        let as_number = self.number && finite(value).is_some();
        let as_truth = self.truth && matches!(value, "true" | "false");
        let is_word = self.text || self.other;
        let (field, value) = (field.to_owned(), value.to_owned());
        match condition.asks_for_order() {
            _ if nothing || as_number => Ok(()),
            false if as_truth || is_word => Ok(()),
            true if is_word || (self.truth && !self.number) => Err(SelectionError::NoOrder { field }),
            _ if self.number => Err(SelectionError::NotANumber { field, value }),
            _ => Err(SelectionError::NotTrueOrFalse { field, value }),
        }
    }
}
