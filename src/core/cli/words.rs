//! How the values of flags are read: closed sets of words, and sizes.

use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::record::UnknownWord;

/// Parses a size in MiB.
pub fn mebibytes(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(mb) if f64::is_finite(mb) && mb > 0.0 => Ok(mb),
        _ => Err("allowed: any number above 0".to_owned()),
    }
}

/// A size in MiB as whole bytes, at least one.
pub fn bytes_of(mb: f64) -> i64 {
    ((mb * 1024.0 * 1024.0) as i64).max(1)
}

/// Parses one of `words`, which must be the spellings of `W`; help lists them.
pub fn one_of<W>(words: &'static [&'static str]) -> impl TypedValueParser<Value = W>
where
    W: FromStr<Err = UnknownWord> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(words).try_map(|word| word.parse::<W>())
}
