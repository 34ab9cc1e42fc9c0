//! How the values of flags are read: closed sets of words, sizes and numbers. What is wrong is told by what is allowed.

use std::fmt::Display;
use std::path::{self, PathBuf};
use std::str::FromStr;

use clap::builder::{PathBufValueParser, PossibleValuesParser, TypedValueParser};

use crate::record::UnknownWord;

/// 4 EiB: the largest power of two whose bytes a signed word holds, as far beyond any machine as it is.
const MOST_MB: f64 = (1_u64 << 42) as f64;

/// Parses a size in MiB.
pub fn mebibytes(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(mb) if mb > MOST_MB => Err(format!("allowed: any number above 0, up to {MOST_MB}")),
        Ok(mb) if mb > 0.0 => Ok(mb),
        _ => Err("allowed: any number above 0".to_owned()),
    }
}

/// A size in MiB as whole bytes, at least one.
pub fn bytes_of(mb: f64) -> i64 {
    ((mb * 1024.0 * 1024.0) as i64).max(1)
}

/// Parses a whole number; which of them make sense is judged with the rest of the setting.
pub fn whole<N: FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| "allowed: a whole number".to_owned())
}

/// Parses a whole number from `least` on.
pub fn at_least<N>(least: N) -> impl Fn(&str) -> Result<N, String> + Clone
where
    N: FromStr + PartialOrd + Display + Clone,
{
    move |text| match text.parse() {
        Ok(number) if number >= least => Ok(number),
        _ => Err(format!("allowed: a whole number, {least} or more")),
    }
}

/// Parses a whole number between two, both included.
pub fn between<N>(least: N, most: N) -> impl Fn(&str) -> Result<N, String> + Clone
where
    N: FromStr + PartialOrd + Display + Clone,
{
    move |text| match text.parse() {
        Ok(number) if number >= least && number <= most => Ok(number),
        _ => Err(format!("allowed: a whole number, {least} to {most}")),
    }
}

/// Parses a number.
pub fn number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "allowed: a number".to_owned())
}

/// Parses one of `words`, which must be the spellings of `W`; help lists them.
pub fn one_of<W>(words: &'static [&'static str]) -> impl TypedValueParser<Value = W>
where
    W: FromStr<Err = UnknownWord> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(words).try_map(|word| word.parse::<W>())
}

/// Parses a file's path, and makes it one that starts at the root: it is the same file from any folder then.
pub fn whole_path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(path::absolute)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_taken_as_it_is_or_refused() {
        assert_eq!(mebibytes("0.5").map(bytes_of), Ok(1 << 19));
        assert_eq!(mebibytes("4398046511104").map(bytes_of), Ok(1 << 62));
        for text in ["4398046511105", "1e30", "inf"] {
            let error = mebibytes(text).unwrap_err();
            assert_eq!(error, "allowed: any number above 0, up to 4398046511104", "{text}");
        }
        for text in ["0", "-5", "NaN", "x"] {
            assert_eq!(mebibytes(text).unwrap_err(), "allowed: any number above 0", "{text}");
        }
    }

    #[test]
    fn what_is_no_such_number_is_told_by_what_is_allowed() {
        assert_eq!((whole::<i64>("-3"), at_least(1)("1"), between(40, 1000)("40")), (Ok(-3), Ok(1), Ok(40)));
        for refused in [whole::<i64>("x"), whole("2.5"), whole("")] {
            assert_eq!(refused.unwrap_err(), "allowed: a whole number");
        }
        for text in ["0", "-1", "x", "99999999999999999999"] {
            assert_eq!(at_least(1_i64)(text).unwrap_err(), "allowed: a whole number, 1 or more", "{text}");
            assert_eq!(between(40, 1000)(text).unwrap_err(), "allowed: a whole number, 40 to 1000", "{text}");
        }
        assert_eq!((number("1e-3"), number("fast")), (Ok(1e-3), Err("allowed: a number".to_owned())));
    }
}
