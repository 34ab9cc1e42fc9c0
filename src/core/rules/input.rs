//! Strict reading of a rule's input: one JSON object, in one pass, against the table of its keys.
//!
//! JSON readers commonly forgive what a rule must not: a key given twice (the last wins), a key nobody
//! knows (ignored), `true` where a number belongs. Here each is an error that names the field.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::RuleError;
use super::field::{Field, Kind, shown};
use super::object::{Object, Value};
use super::unreadable::{cut, unreadable};

/// Reads `text` as one object with the keys of `fields`.
pub(super) fn read(text: &str, fields: &'static [Field]) -> Result<Object, RuleError> {
    if text.trim_ascii().is_empty() {
        return Err(RuleError::new("input", "is empty, but must be an object"));
    }
    let reading = Reading::default();
    let mut json = serde_json::Deserializer::from_str(text);
    let value = Place { kind: Kind::Object(fields), reading: &reading }.deserialize(&mut json);
    match value.and_then(|value| json.end().map(|()| value)) {
        Ok(Value::Object(record)) => Ok(record),
        Ok(_) => Err(RuleError::new("input", "must be an object")),
        Err(error) => Err(reading.explain(text, &error)),
    }
}

/// What went wrong, noted where it happened: serde's own errors carry no path and no kind.
#[derive(Default)]
struct Reading {
    failure: Cell<Option<RuleError>>,
    /// What was expected where the text stopped being JSON.
    unreadable: Cell<Option<Kind>>,
}

impl Reading {
    fn fail<E: serde::de::Error>(&self, field: &str, problem: String) -> E {
        self.failure.set(Some(RuleError::new(field, problem)));
        E::custom("refused")
    }

    /// Lengthens the path of the failure, which came up through the value called `name`.
    fn passed(&self, name: &str, kind: Kind) {
        let failure = self.failure.take().unwrap_or_else(|| {
            self.unreadable.set(Some(kind));
            RuleError::new("", "")
        });
        self.failure.set(Some(failure.within(name)));
    }

    fn explain(&self, text: &str, error: &serde_json::Error) -> RuleError {
        let mut failure = self.failure.take().unwrap_or_else(|| RuleError::new("", ""));
        if failure.problem.is_empty() {
            failure.problem = unreadable(text, error, self.unreadable.get());
        }
        if failure.field.is_empty() { failure.within("input") } else { failure }
    }
}

/// A place in the text where a value of this kind belongs.
#[derive(Clone, Copy)]
struct Place<'r> {
    kind: Kind,
    reading: &'r Reading,
}

impl Place<'_> {
    fn refuse<E: serde::de::Error>(self, got: &str) -> E {
        self.reading.fail("", self.kind.refusal(got))
    }

    fn object<'de, A: MapAccess<'de>>(self, mut map: A, fields: &'static [Field]) -> Result<Value, A::Error> {
        let mut record = Object::new(fields);
        while let Some(key) = map.next_key_seed(Keys(fields))? {
            match key {
                Key::Known(at) => self.known(&mut map, &mut record, at)?,
                Key::Other(name) => self.other(&mut map, &mut record, name)?,
            }
        }
        Ok(Value::Object(record))
    }

    fn known<'de, A: MapAccess<'de>>(
        self,
        map: &mut A,
        record: &mut Object,
        at: usize,
    ) -> Result<(), A::Error> {
        let Field { name, kind, .. } = record.fields[at];
        if record.values[at].is_some() {
            return Err(self.reading.fail(name, format!("is given more than once; give it once, as {kind}")));
        }
        let value = map.next_value_seed(Place { kind, reading: self.reading });
        record.values[at] = Some(value.inspect_err(|_| self.reading.passed(name, kind))?);
        Ok(())
    }

    fn other<'de, A: MapAccess<'de>>(
        self,
        map: &mut A,
        record: &mut Object,
        name: String,
    ) -> Result<(), A::Error> {
        if !matches!(self.kind, Kind::Open(_)) {
            let known = record.fields.iter().map(|field| field.name).collect::<Vec<_>>().join(", ");
            return Err(self
                .reading
                .fail(&cut(&name), format!("is not a known key; the keys here are: {known}")));
        }
        if record.kept.iter().any(|(kept, _)| *kept == name) {
            return Err(self.reading.fail(&cut(&name), "is given more than once; give it once".to_owned()));
        }
        let value =
            map.next_value::<Box<RawValue>>().inspect_err(|_| self.reading.passed(&name, self.kind))?;
        record.kept.push((name, value));
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Value, E> {
        match self.kind {
            Kind::Flag => Ok(Value::Flag(value)),
            _ => Err(self.refuse(if value { "true" } else { "false" })),
        }
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        match self.kind {
            Kind::Whole(_) => Ok(Value::Whole(value)),
            _ => self.visit_f64(value as f64),
        }
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        match i64::try_from(value) {
            Ok(value) => self.visit_i64(value),
            Err(_) => self.visit_f64(value as f64),
        }
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        // Beyond `i64` a count is refused rather than quietly replaced by a neighbour.
        let is_count = value.fract() == 0.0 && value.abs() < i64::MAX as f64;
        match self.kind {
            Kind::Number(_) => Ok(Value::Number(value)),
            Kind::Whole(_) if is_count => Ok(Value::Whole(value as i64)),
            _ => Err(self.refuse(&shown(value))),
        }
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        match self.kind {
            Kind::Text => Ok(Value::Text(value.to_owned())),
            Kind::Word(words) if words.contains(&value) => Ok(Value::Text(value.to_owned())),
            _ => Err(self.refuse(&format!("{:?}", cut(value)))),
        }
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Value, E> {
        Err(self.refuse("null"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let Kind::List(fields) = self.kind else { return Err(self.refuse("an array")) };
        let place = Place { kind: Kind::Open(fields), reading: self.reading };
        let mut records = Vec::new();
        loop {
            let element = list.next_element_seed(place);
            match element.inspect_err(|_| self.reading.passed(&format!("[{}]", records.len()), place.kind))? {
                Some(Value::Object(record)) => records.push(record),
                Some(_) => return Err(A::Error::custom("refused")),
                None => return Ok(Value::List(records)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Value, A::Error> {
        match self.kind {
            Kind::Object(fields) | Kind::Open(fields) => self.object(map, fields),
            _ => Err(self.refuse("an object")),
        }
    }
}

enum Key {
    /// The index of the field.
    Known(usize),
    Other(String),
}

struct Keys(&'static [Field]);

impl<'de> DeserializeSeed<'de> for Keys {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Key, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Keys {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<Key, E> {
        let at = self.0.iter().position(|field| field.name == key);
        Ok(at.map_or_else(|| Key::Other(key.to_owned()), Key::Known))
    }
}
