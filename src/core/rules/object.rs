//! An object as it was read: a value, or none, for each key of the table, from which a rule takes its input.

use serde_json::value::RawValue;

use super::RuleError;
use super::field::Field;

/// A value of one of the kinds of [`Kind`](super::Kind).
pub(super) enum Value {
    Number(f64),
    Whole(i64),
    Flag(bool),
    Text(String),
    Object(Object),
    List(Vec<Object>),
}

/// One object.
pub(super) struct Object {
    pub fields: &'static [Field],
    /// In the order of `fields`.
    pub values: Vec<Option<Value>>,
    /// The other keys of an open object with the text of their values, in the order given.
    pub kept: Vec<(String, Box<RawValue>)>,
}

impl Object {
    pub fn new(fields: &'static [Field]) -> Self {
        Self { fields, values: fields.iter().map(|_| None).collect(), kept: Vec::new() }
    }

    /// Takes the value of key `name` out, or says that it is missing.
    pub fn take<T: FromValue>(&mut self, name: &'static str) -> Result<T, RuleError> {
        self.take_optional(name).ok_or_else(|| match self.fields.iter().find(|field| field.name == name) {
            Some(field) => field.missing(),
            None => RuleError::new(name, "is not a key of this rule"),
        })
    }

    pub fn take_optional<T: FromValue>(&mut self, name: &str) -> Option<T> {
        let at = self.fields.iter().position(|field| field.name == name)?;
        self.values[at].take().and_then(T::from_value)
    }

    /// Takes the object under key `name` and reads it with `read`, whose errors then carry the full path.
    pub fn take_object<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Object) -> Result<T, RuleError>,
    ) -> Result<T, RuleError> {
        read(self.take::<Object>(name)?).map_err(|error| error.within(name))
    }
}

/// What a [`Value`] of the fitting kind holds. The reader has already seen to the kind.
pub(super) trait FromValue: Sized {
    fn from_value(value: Value) -> Option<Self>;
}

macro_rules! from_value {
    ($($variant:ident => $type:ty,)+) => { $(
        impl FromValue for $type {
            fn from_value(value: Value) -> Option<Self> {
                if let Value::$variant(held) = value { Some(held) } else { None }
            }
        }
    )+ };
}

from_value! {
    Number => f64,
    Whole => i64,
    Flag => bool,
    Text => String,
    Object => Object,
    List => Vec<Object>,
}
