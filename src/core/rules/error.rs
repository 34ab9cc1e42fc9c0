//! Why a rule gave no answer.

use serde::ser::{Serialize, SerializeStruct, Serializer};

/// An input a rule refuses, or a result it cannot give: the field, and what is wrong with it.
///
/// Its message names the field, the value it had, and what is allowed there. In JSON it is
/// `{"field", "message"}`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {problem}")]
pub struct RuleError {
    /// Where, as a path: `step_ms`, `record.flops`, `events[2].calls`, or `input` for the whole text.
    pub field: String,
    /// What is wrong, as the rest of a sentence that begins with the field.
    pub problem: String,
}

impl RuleError {
    pub(super) fn new(field: &str, problem: impl Into<String>) -> Self {
        Self { field: field.to_owned(), problem: problem.into() }
    }

    /// The same error, seen from the object or list that holds the field under the name `outer`.
    pub(super) fn within(mut self, outer: &str) -> Self {
        let dot = if self.field.is_empty() || self.field.starts_with('[') { "" } else { "." };
        self.field = format!("{outer}{dot}{}", self.field);
        self
    }
}

impl Serialize for RuleError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut error = serializer.serialize_struct("RuleError", 2)?;
        error.serialize_field("field", &self.field)?;
        error.serialize_field("message", &self.to_string())?;
        error.end()
    }
}

/// `value`, or the error that says that the result called `field` has no finite value.
pub(super) fn finite(field: &str, value: f64) -> Result<f64, RuleError> {
    if value.is_finite() {
        return Ok(value);
    }
    Err(RuleError::new(
        field,
        format!(
            "would be {value}, but must be a finite number: the inputs are too large or too small for it"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_grow_outwards() {
        let error = RuleError::new("", "is null").within("calls").within("[2]").within("events");
        assert_eq!(error.to_string(), "events[2].calls is null");
    }

    #[test]
    fn in_json_it_is_a_field_and_a_message() {
        let json = serde_json::to_string(&RuleError::new("step_ms", "is -4")).unwrap();
        assert_eq!(json, r#"{"field":"step_ms","message":"step_ms is -4"}"#);
    }

    #[test]
    fn what_overflows_is_named() {
        assert_eq!(finite("total_ms", 2.5), Ok(2.5));
        assert_eq!(finite("total_ms", f64::INFINITY).unwrap_err().field, "total_ms");
    }
}
