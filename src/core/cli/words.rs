//! Flags whose values are one of the project's closed sets of words.

use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::record::UnknownWord;

/// Parses one of `words`, which must be the spellings of `W`; help lists them.
pub fn one_of<W>(words: &'static [&'static str]) -> impl TypedValueParser<Value = W>
where
    W: FromStr<Err = UnknownWord> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(words).try_map(|word| word.parse::<W>())
}
