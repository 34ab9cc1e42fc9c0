//! Which Rust type becomes which column type, both ways.
//!
//! [`Value`] is a type with a column type; [`Cell`] is a field of a row: a value, or an `Option` of one,
//! which makes the column nullable.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder, StringDictionaryBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array, ListArray,
    RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow_schema::{ArrowError, DataType, Field, TimeUnit};
use chrono::{DateTime, Utc};

use super::Damage;
use crate::record::{
    Category, Detail, EvidenceLevel, Moment, Phase, RunStatus, SpanKind, Trace, UnknownWord,
};

pub(super) trait Value: Sized {
    /// The array a reader gets. Readers ignore the Arrow schema that is kept in the file, so dictionary
    /// strings arrive as plain ones, whichever tool wrote them.
    type Array: Array + 'static;

    fn data_type() -> DataType;

    fn encode<'a>(values: impl Iterator<Item = Option<&'a Self>>) -> Result<ArrayRef, ArrowError>
    where
        Self: 'a;

    fn decode(array: &Self::Array) -> Result<Vec<Option<Self>>, UnknownWord>;
}

pub(super) trait Cell: Sized {
    type Value: Value;
    const NULLABLE: bool;

    fn value(&self) -> Option<&Self::Value>;

    /// `None` when a value is required and there is none.
    fn from_value(value: Option<Self::Value>) -> Option<Self>;
}

impl<T: Value> Cell for T {
    type Value = T;
    const NULLABLE: bool = false;

    fn value(&self) -> Option<&T> {
        Some(self)
    }

    fn from_value(value: Option<T>) -> Option<T> {
        value
    }
}

impl<T: Value> Cell for Option<T> {
    type Value = T;
    const NULLABLE: bool = true;

    fn value(&self) -> Option<&T> {
        self.as_ref()
    }

    fn from_value(value: Option<T>) -> Option<Option<T>> {
        Some(value)
    }
}

/// The schema's entry for a column of `C`.
pub(super) fn field<C: Cell>(column: &str) -> Field {
    Field::new(column, C::Value::data_type(), C::NULLABLE)
}

/// The column that holds `cells`.
pub(super) fn encode<'a, C: Cell + 'a>(cells: impl Iterator<Item = &'a C>) -> Result<ArrayRef, ArrowError> {
    C::Value::encode(cells.map(C::value))
}

/// The cells of the column called `column`. One that may be null may also be absent, as it is in files from
/// before it was introduced.
pub(super) fn decode<C: Cell>(batch: &RecordBatch, column: &str) -> Result<std::vec::IntoIter<C>, Damage> {
    let Some(array) = batch.column_by_name(column) else {
        let absent: Option<Vec<C>> = (0..batch.num_rows()).map(|_| C::from_value(None)).collect();
        return absent.map(Vec::into_iter).ok_or_else(|| Damage::NoColumn(column.to_owned()));
    };
    let typed = array.as_any().downcast_ref().ok_or_else(|| wrong_type::<C::Value>(column, array))?;
    let values =
        C::Value::decode(typed).map_err(|source| Damage::Word { column: column.to_owned(), source })?;
    let cells: Option<Vec<C>> = values.into_iter().map(C::from_value).collect();
    cells.map(Vec::into_iter).ok_or_else(|| Damage::Null(column.to_owned()))
}

fn wrong_type<V: Value>(column: &str, array: &ArrayRef) -> Damage {
    Damage::ColumnType {
        column: column.to_owned(),
        found: array.data_type().to_string(),
        expected: V::data_type().to_string(),
    }
}

/// Types that Arrow has an array of.
macro_rules! plain_value {
    ($($value:ty => $array:ident, $data_type:ident;)+) => { $(
        impl Value for $value {
            type Array = $array;

            fn data_type() -> DataType {
                DataType::$data_type
            }

            fn encode<'a>(values: impl Iterator<Item = Option<&'a Self>>) -> Result<ArrayRef, ArrowError> {
                Ok(Arc::new(values.map(|value| value.copied()).collect::<$array>()))
            }

            fn decode(array: &$array) -> Result<Vec<Option<Self>>, UnknownWord> {
                Ok(array.iter().collect())
            }
        }
    )+ };
}

plain_value! {
    bool => BooleanArray, Boolean;
    i32 => Int32Array, Int32;
    i64 => Int64Array, Int64;
    f64 => Float64Array, Float64;
}

impl Value for DateTime<Utc> {
    type Array = TimestampMicrosecondArray;

    fn data_type() -> DataType {
        DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
    }

    fn encode<'a>(values: impl Iterator<Item = Option<&'a Self>>) -> Result<ArrayRef, ArrowError> {
        let micros = values.map(|value| value.map(DateTime::timestamp_micros));
        Ok(Arc::new(micros.collect::<TimestampMicrosecondArray>().with_timezone("UTC")))
    }

    fn decode(array: &TimestampMicrosecondArray) -> Result<Vec<Option<Self>>, UnknownWord> {
        Ok(array.iter().map(|micros| micros.and_then(DateTime::from_timestamp_micros)).collect())
    }
}

/// Text that is rarely the same twice.
impl Value for String {
    type Array = StringArray;

    fn data_type() -> DataType {
        DataType::Utf8
    }

    fn encode<'a>(values: impl Iterator<Item = Option<&'a Self>>) -> Result<ArrayRef, ArrowError> {
        Ok(Arc::new(values.collect::<StringArray>()))
    }

    fn decode(array: &StringArray) -> Result<Vec<Option<Self>>, UnknownWord> {
        Ok(array.iter().map(|text| text.map(str::to_owned)).collect())
    }
}

impl Value for Vec<String> {
    type Array = ListArray;

    fn data_type() -> DataType {
        DataType::new_list(DataType::Utf8, true)
    }

    fn encode<'a>(values: impl Iterator<Item = Option<&'a Self>>) -> Result<ArrayRef, ArrowError> {
        let mut lists = ListBuilder::new(StringBuilder::new());
        values.for_each(|texts| lists.append_option(texts.map(|texts| texts.iter().map(Some))));
        Ok(Arc::new(lists.finish()))
    }

    fn decode(array: &ListArray) -> Result<Vec<Option<Self>>, UnknownWord> {
        Ok(array.iter().map(|list| list.map(|list| texts(&list))).collect())
    }
}

fn texts(list: &ArrayRef) -> Vec<String> {
    let strings = list.as_any().downcast_ref::<StringArray>();
    strings.into_iter().flatten().flatten().map(str::to_owned).collect()
}

fn dictionary() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// Names, which repeat in every step.
impl Value for Arc<str> {
    type Array = StringArray;

    fn data_type() -> DataType {
        dictionary()
    }

    fn encode<'a>(values: impl Iterator<Item = Option<&'a Self>>) -> Result<ArrayRef, ArrowError> {
        let mut names = StringDictionaryBuilder::<Int32Type>::new();
        values.for_each(|name| names.append_option(name));
        Ok(Arc::new(names.finish()))
    }

    fn decode(array: &StringArray) -> Result<Vec<Option<Self>>, UnknownWord> {
        let mut known = HashSet::new();
        Ok(array.iter().map(|name| name.map(|name| shared(&mut known, name))).collect())
    }
}

/// One allocation for each distinct name, however many rows bear it.
fn shared(known: &mut HashSet<Arc<str>>, name: &str) -> Arc<str> {
    if let Some(name) = known.get(name) {
        return Arc::clone(name);
    }
    let name: Arc<str> = name.into();
    known.insert(Arc::clone(&name));
    name
}

/// The closed sets of words. The dictionary is the whole set in its own order, so encoding looks nothing up.
macro_rules! word_value {
    ($($word:ident)+) => { $(
        impl Value for $word {
            type Array = StringArray;

            fn data_type() -> DataType {
                dictionary()
            }

            fn encode<'a>(values: impl Iterator<Item = Option<&'a Self>>) -> Result<ArrayRef, ArrowError> {
                let keys = values.map(|word| word.map(|&word| word as i32)).collect::<Int32Array>();
                let words: StringArray = $word::ALL.iter().map(|word| Some(word.as_str())).collect();
                Ok(Arc::new(DictionaryArray::try_new(keys, Arc::new(words))?))
            }

            fn decode(array: &StringArray) -> Result<Vec<Option<Self>>, UnknownWord> {
                array.iter().map(|word| word.map(str::parse).transpose()).collect()
            }
        }
    )+ };
}

word_value! { Phase Category Detail EvidenceLevel Moment RunStatus SpanKind Trace }
