//! Which Rust type becomes which column type, both ways.
//!
//! [`Value`] is a type with a column type; [`Cell`] is a field of a row: a value, or an `Option` of one,
//! which makes the column nullable.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, NullBufferBuilder, StringBuilder};
use arrow_array::types::{ArrowPrimitiveType, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array, ListArray,
    PrimitiveArray, RecordBatch, StringArray, TimestampMicrosecondArray,
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

/// What `collect` makes, but the mask of the nulls is begun with the first of them: most columns have none.
fn numbers<P: ArrowPrimitiveType>(values: impl Iterator<Item = Option<P::Native>>) -> PrimitiveArray<P> {
    let rows = values.size_hint().0;
    let (mut numbers, mut nulls) = (Vec::with_capacity(rows), NullBufferBuilder::new(rows));
    for value in values {
        numbers.push(value.unwrap_or_default());
        nulls.append(value.is_some());
    }
    PrimitiveArray::new(numbers.into(), nulls.finish())
}

/// Types that Arrow has an array of.
macro_rules! plain_value {
    ($($value:ty => $array:ident, $data_type:ident, $collect:expr;)+) => { $(
        impl Value for $value {
            type Array = $array;

            fn data_type() -> DataType {
                DataType::$data_type
            }

            fn encode<'a>(values: impl Iterator<Item = Option<&'a Self>>) -> Result<ArrayRef, ArrowError> {
                Ok(Arc::new($collect(values.map(|value| value.copied()))))
            }

            fn decode(array: &$array) -> Result<Vec<Option<Self>>, UnknownWord> {
                Ok(array.iter().collect())
            }
        }
    )+ };
}

plain_value! {
    bool => BooleanArray, Boolean, BooleanArray::from_iter;
    i32 => Int32Array, Int32, numbers::<Int32Type>;
    i64 => Int64Array, Int64, numbers::<Int64Type>;
    f64 => Float64Array, Float64, numbers::<Float64Type>;
}

impl Value for DateTime<Utc> {
    type Array = TimestampMicrosecondArray;

    fn data_type() -> DataType {
        DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
    }

    fn encode<'a>(values: impl Iterator<Item = Option<&'a Self>>) -> Result<ArrayRef, ArrowError> {
        let micros = values.map(|value| value.map(DateTime::timestamp_micros));
        Ok(Arc::new(numbers::<TimestampMicrosecondType>(micros).with_timezone("UTC")))
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
        let mut names = Names::default();
        let keys = numbers::<Int32Type>(values.map(|name| name.map(|name| names.key(name))));
        let words = StringArray::from_iter_values(&names.in_order);
        Ok(Arc::new(DictionaryArray::try_new(keys, Arc::new(words))?))
    }

    fn decode(array: &StringArray) -> Result<Vec<Option<Self>>, UnknownWord> {
        let mut known = HashSet::new();
        Ok(array.iter().map(|name| name.map(|name| shared(&mut known, name))).collect())
    }
}

/// A dictionary of names. Rows that bear one name nearly always share one allocation of it, so most names are
/// known by where they lie, and only the others are hashed.
#[derive(Default)]
struct Names<'a> {
    in_order: Vec<&'a str>,
    keys: HashMap<&'a str, i32>,
    /// Of each remembered place the name that lies there and its key.
    places: Vec<Option<(&'a Arc<str>, i32)>>,
}

impl<'a> Names<'a> {
    const PLACES_LOG2: u32 = 9;

    fn key(&mut self, name: &'a Arc<str>) -> i32 {
        if self.places.is_empty() {
            self.places = vec![None; 1 << Self::PLACES_LOG2];
        }
        // Multiplied by a large odd number: neighbours in memory come to lie apart.
        let address = name.as_ptr().addr() as u64;
        let place = (address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - Self::PLACES_LOG2)) as usize;
        if let Some((known, key)) = self.places[place]
            && Arc::ptr_eq(known, name)
        {
            return key;
        }
        let key = self.key_of_text(name);
        self.places[place] = Some((name, key));
        key
    }

    fn key_of_text(&mut self, name: &'a str) -> i32 {
        *self.keys.entry(name).or_insert_with(|| {
            self.in_order.push(name);
            self.in_order.len() as i32 - 1
        })
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
                let keys = numbers::<Int32Type>(values.map(|word| word.map(|&word| word as i32)));
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
