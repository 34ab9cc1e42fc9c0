//! Times that runs are asked for, as far as they are given.

use std::cmp::Ordering;

use chrono::{DateTime, SecondsFormat, Utc};

/// Up to the seconds, the last of the parts that a time must have.
const SECONDS: usize = 19;

/// Whether this is what a time begins with: whole parts, which together with any rest are a time that there is.
pub fn is_time(asked: &str) -> bool {
    const ANY: &str = "2000-01-01T00:00:00Z";
    /// Up to the year, the month, and so on.
    const PARTS: [usize; 6] = [4, 7, 10, 13, 16, SECONDS];
    let asked = as_compared(asked);
    let (asked, fraction) = asked.split_at_checked(SECONDS).unwrap_or((&asked, ""));
    let is_fraction = |text: &str| {
        let digits = text.strip_prefix('.').unwrap_or_default();
        (1..=6).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit())
    };
    if !fraction.is_empty() && !is_fraction(fraction) {
        return false;
    }
    let whole = PARTS.contains(&asked.len()).then(|| format!("{asked}{}", &ANY[asked.len()..]));
    // As it is written again: the parser takes other spellings, too.
    let again =
        |whole: &str| Some(whole.parse::<DateTime<Utc>>().ok()?.to_rfc3339_opts(SecondsFormat::Secs, true));
    whole.is_some_and(|whole| again(&whole) == Some(whole))
}

/// With a `T` between day and hour, and without the `Z` at its end.
fn as_compared(asked: &str) -> String {
    let asked = asked.replacen(' ', "T", 1);
    let without_z = asked.strip_suffix('Z').filter(|rest| rest.len() >= SECONDS);
    without_z.unwrap_or(&asked).to_owned()
}

/// `2026-01-31` is the whole day, `2026-01-31 12:00` (or with a `T`) the minute: of the run's time no more is looked at.
pub fn compare_time(time: &str, asked: &str) -> Ordering {
    let asked = as_compared(asked);
    time.get(..asked.len()).unwrap_or(time).cmp(&asked)
}
