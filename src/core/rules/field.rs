//! The keys of a rule's input: the table that the reader obeys, the checks use and the list prints.

use std::fmt;

use serde::{Serialize, Serializer};

use super::RuleError;

/// One key of a rule's input.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Field {
    pub name: &'static str,
    /// The unit of a number; empty where it has none.
    pub unit: &'static str,
    /// What the key may hold.
    #[serde(rename = "allowed")]
    pub kind: Kind,
    /// What stands in for it when it is left out. `None` for a key that must be given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<&'static str>,
}

/// What a key may hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    Number(Range),
    /// A number without a fraction, as written or as a value (`2.0` is one).
    Whole(Range),
    Flag,
    Text,
    Word(&'static [&'static str]),
    /// An object with these keys and no others.
    Object(&'static [Field]),
    /// An object with these keys; any others are kept as they are.
    Open(&'static [Field]),
    /// A list of open objects.
    List(&'static [Field]),
}

/// The values a number may have. None of them includes what is not finite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Range {
    Any,
    Above(f64),
    AtLeast(f64),
    Between(f64, f64),
    /// Above the first, at most the second.
    AboveUpTo(f64, f64),
}

impl Field {
    pub(super) const fn new(name: &'static str, unit: &'static str, kind: Kind) -> Self {
        Self { name, unit, kind, default: None }
    }

    pub(super) const fn or(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }

    /// A key that another rule's answer has: its value must be of its kind, and is not used.
    pub(super) const fn unread(self) -> Self {
        self.or("none, it is not used")
    }

    /// `value`, if this field may have it.
    pub(super) fn check(&self, value: f64) -> Result<f64, RuleError> {
        match self.kind {
            Kind::Number(range) | Kind::Whole(range) if range.contains(value) => Ok(value),
            _ => Err(RuleError::new(self.name, self.kind.refusal(&shown(value)))),
        }
    }

    pub(super) fn missing(&self) -> RuleError {
        RuleError::new(self.name, format!("is missing; it must be {}", self.kind))
    }
}

impl Kind {
    /// The problem with `got` in this place.
    pub(super) fn refusal(&self, got: &str) -> String {
        format!("is {got}, but must be {self}")
    }
}

impl Range {
    fn contains(self, value: f64) -> bool {
        value.is_finite()
            && match self {
                Range::Any => true,
                Range::Above(low) => value > low,
                Range::AtLeast(low) => value >= low,
                Range::Between(low, high) => (low..=high).contains(&value),
                Range::AboveUpTo(low, high) => value > low && value <= high,
            }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Number(range) => write!(f, "a finite number{range}"),
            Kind::Whole(range) => write!(f, "a whole number{range}"),
            Kind::Flag => f.write_str("true or false"),
            Kind::Text => f.write_str("a string"),
            Kind::Word([word]) => write!(f, "{word:?}"),
            Kind::Word(words) => write!(f, "one of: {}", words.join(", ")),
            Kind::Object(_) | Kind::Open(_) => f.write_str("an object"),
            Kind::List(_) => f.write_str("an array of objects"),
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Range::Any => Ok(()),
            Range::Above(low) => write!(f, " above {low}"),
            Range::AtLeast(low) => write!(f, ", {low} or more"),
            Range::Between(low, high) => write!(f, " from {low} to {high}"),
            Range::AboveUpTo(low, high) => write!(f, " above {low}, {high} at most"),
        }
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Kind::Object(fields) | Kind::Open(fields) | Kind::List(fields) => fields.serialize(serializer),
            simple => serializer.collect_str(simple),
        }
    }
}

/// A number as a message shows it: plainly, but never as hundreds of digits.
pub(super) fn shown(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude == 0.0 || (1e-5..1e16).contains(&magnitude) {
        value.to_string()
    } else {
        format!("{value:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(range: Range, allowed: &[f64], refused: &[f64]) {
        let field = Field::new("x", "ms", Kind::Number(range));
        for &value in allowed {
            assert_eq!(field.check(value), Ok(value), "{range:?}");
        }
        for &value in refused.iter().chain(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY]) {
            assert!(field.check(value).is_err(), "{range:?} {value}");
        }
    }

    #[test]
    fn ranges_end_where_they_say() {
        check(Range::Any, &[-1e308, 0.0, 1e308], &[]);
        check(Range::Above(0.0), &[f64::MIN_POSITIVE, 1e308], &[0.0, -0.0, -1.0]);
        check(Range::AtLeast(0.0), &[0.0, -0.0, 1.0], &[-f64::MIN_POSITIVE]);
        check(Range::Between(0.0, 100.0), &[0.0, 100.0], &[-0.001, 100.001]);
        check(Range::AboveUpTo(0.0, 1.0), &[0.001, 1.0], &[0.0, 1.001]);
    }

    #[test]
    fn a_refusal_names_field_value_and_range() {
        let field = Field::new("busy_pct", "%", Kind::Number(Range::Between(0.0, 100.0)));
        let message = field.check(-2.0).unwrap_err().to_string();
        assert_eq!(message, "busy_pct is -2, but must be a finite number from 0 to 100");
        assert!(field.check(1e300).unwrap_err().to_string().contains("1e300"));
    }
}
