//! What to say where the text is not JSON: the reader only knows the line and the column.

use super::field::Kind;

/// Longer strings are cut in messages, so that an error is never as large as its input.
const SHOWN_CHARS: usize = 60;

/// The problem with text that stops being JSON where a value of `kind` belongs, or before any.
pub(super) fn unreadable(text: &str, error: &serde_json::Error, kind: Option<Kind>) -> String {
    match (kind, token(text, error)) {
        (Some(kind @ (Kind::Number(_) | Kind::Whole(_))), Some(token)) if !is_number(token) => {
            kind.refusal(&cut(token))
        }
        _ => format!("is not valid JSON: {error}"),
    }
}

/// Whether there is nothing wrong with the token itself, but with what stands before it.
fn is_number(token: &str) -> bool {
    token.parse::<f64>().is_ok_and(f64::is_finite)
}

/// The bare word or number at which reading stopped: `NaN`, `1e999`.
fn token<'t>(text: &'t str, error: &serde_json::Error) -> Option<&'t str> {
    let line = text.split('\n').nth(error.line().checked_sub(1)?)?;
    let (before, after) = line.split_at_checked(error.column().checked_sub(1)?)?;
    let in_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '_');
    let start = before.trim_end_matches(in_token).len();
    let end = before.len() + after.find(|c| !in_token(c)).unwrap_or(after.len());
    line.get(start..end).filter(|token| !token.is_empty())
}

/// The beginning of `text`, all of it if it is short.
pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::field::Range;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let error = serde_json::from_str::<serde_json::Value>(text).unwrap_err();
        let problem = unreadable(text, &error, Some(Kind::Number(Range::Any)));
        assert!(problem.starts_with(expected), "{text}: {problem}");
    }

    #[test]
    fn a_word_or_number_that_json_lacks_is_shown() {
        check(r#"{"é": NaN}"#, "is NaN, but must be a finite number");
        check("{\n\"a\":\n  -1e999 }", "is -1e999, but");
        check(r#"[1, Infinity"#, "is Infinity, but");
        check(r#"[nan]"#, "is nan, but");
    }

    #[test]
    fn a_number_is_not_blamed_for_what_stands_before_it() {
        check(r#"{"a" 5}"#, "is not valid JSON: expected `:`");
        check(r#"{"a":"#, "is not valid JSON: EOF");
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        assert_eq!(cut("short"), "short");
        assert_eq!(cut(&"é".repeat(100)).chars().count(), SHOWN_CHARS + 1);
    }
}
