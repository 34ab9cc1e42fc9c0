//! A condition that runs of a list meet or not.

use std::cmp::Ordering;
use std::str::FromStr;

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::Value;

use super::listed_run::ListedRun;

/// A condition such as `batch>=8`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    pub(super) field: String,
    relation: Relation,
    pub(super) value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// What is a time, as text in ISO's format and UTC.
const TIMES: [&str; 3] = ["started", "started_at", "finished_at"];

/// The longer ones first, since `<` begins `<=`.
const RELATIONS: [(&str, Relation); 7] = [
    ("!=", Relation::Unequal),
    ("<=", Relation::AtMost),
    (">=", Relation::AtLeast),
    ("==", Relation::Equal),
    ("=", Relation::Equal),
    ("<", Relation::Less),
    (">", Relation::Greater),
];

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let at = text.find(['=', '!', '<', '>']).filter(|&at| at > 0);
        let split = at.and_then(|at| {
            let (field, rest) = text.split_at(at);
            let (word, relation) = RELATIONS.iter().find(|(word, _)| rest.starts_with(word))?;
            Some((field, *relation, &rest[word.len()..]))
        });
        let (field, relation, value) =
            split.ok_or_else(|| "write FIELD=VALUE, or with != < <= > >= in place of =".to_owned())?;
        let condition =
            Condition { field: field.trim().to_owned(), relation, value: value.trim().to_owned() };
        // Held against what is no time, times would be compared by their letters.
        match condition.is_of_time() && condition.value != "null" && !is_time(&condition.value) {
            true => Err(format!(
                "{} is a time, and {:?} is none; write YYYY-MM-DDTHH:MM:SS.ssssssZ, in UTC, or the parts that it begins with, such as \
                 2026-01-31, or `null` for runs without one",
                condition.field, condition.value
            )),
            false => Ok(condition),
        }
    }
}

impl Condition {
    fn is_of_time(&self) -> bool {
        TIMES.contains(&self.field.as_str())
    }

    /// Whether a run meets it. Numbers are compared as numbers, times as far as they are given, all else by its letters;
    /// `null` means that the run has no such value, which is never less or more than anything.
    pub fn holds(&self, run: &ListedRun) -> bool {
        let has = run.field(&self.field);
        let order = match (&has, self.value.as_str()) {
            (Value::Null, "null") => Some(Ordering::Equal),
            (Value::Null, _) | (_, "null") => None,
            (Value::String(time), asked) if self.is_of_time() => Some(compare_time(time, asked)),
            _ => Some(compare_to_text(&has, &self.value)),
        };
        match self.relation {
            Relation::Equal => order == Some(Ordering::Equal),
            Relation::Unequal => order != Some(Ordering::Equal),
            Relation::Less => order == Some(Ordering::Less),
            Relation::AtMost => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Relation::Greater => order == Some(Ordering::Greater),
            Relation::AtLeast => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        }
    }
}

/// Up to the seconds, the last of the parts that a time must have.
const SECONDS: usize = 19;

/// Whether this is what a time begins with: whole parts, which together with any rest are a time that there is.
fn is_time(asked: &str) -> bool {
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
fn compare_time(time: &str, asked: &str) -> Ordering {
    let asked = as_compared(asked);
    time.get(..asked.len()).unwrap_or(time).cmp(&asked)
}

fn compare_to_text(value: &Value, text: &str) -> Ordering {
    match (value.as_f64(), text.parse::<f64>()) {
        (Some(one), Ok(other)) => one.total_cmp(&other),
        _ => plain(value).as_str().cmp(text),
    }
}

/// A value as it is written.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    /// A run of which conditions and orders may ask.
    pub fn run(id: &str, batch: i64, step_ms: Option<f64>) -> ListedRun {
        let mut run = ListedRun::without_row(id.to_owned(), format!("runs/{id}"), "complete", None);
        run.config = json!({"batch": batch, "checkpoint": "none", "loader": {"workers": 2}})
            .as_object()
            .unwrap()
            .clone();
        let started_at = format!("2026-01-0{batch}T10:30:59.250000Z");
        (run.began, run.started_at) = (Some(started_at.parse().unwrap()), Some(started_at));
        run.step_ms = step_ms;
        run
    }

    /// Which of the runs a, b and c, of batches 2, 8 and 4, meet a condition.
    fn met(condition: &str) -> String {
        let condition: Condition = condition.parse().unwrap();
        let runs = [run("a", 2, Some(9.5)), run("b", 8, None), run("c", 4, Some(10.0))];
        runs.iter().filter(|run| condition.holds(run)).map(|run| run.run_id.as_str()).collect()
    }

    #[test]
    fn conditions_hold_as_written() {
        for (condition, expected) in [
            ("batch=8", "b"),
            ("batch == 8.0", "b"),
            ("batch!=8", "ac"),
            ("batch<4", "a"),
            ("batch<=4", "ac"),
            ("batch>4", "b"),
            ("batch>=4", "bc"),
            // As numbers, not as letters.
            ("step_ms<10", "a"),
            ("step_ms=null", "b"),
            ("step_ms!=null", "ac"),
            ("checkpoint=none", "abc"),
            ("config.batch=2", "a"),
            ("loader.workers=2", "abc"),
            ("id=c", "c"),
        ] {
            assert_eq!(met(condition), expected, "{condition}");
        }
        for bad in ["batch", "=8", "", "batch~8"] {
            assert!(bad.parse::<Condition>().unwrap_err().contains("FIELD=VALUE"), "{bad}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for condition in [
            "started<30.11.2026",
            "started=",
            "started>yesterday",
            "started=2026-13-40",
            "started_at=2026-02-30",
            "started=2026-1",
            "started=2026-01-31t12:00",
            "started=2026-01-31 12:00:00+01:00",
            "finished_at>=8",
            "finished_at=éé",
            "started=2026-01-31T12:00:00.",
            "started=2026-01-31T12:00:00.1234567",
            "started=2026-01-31T12:00:0é.5",
            "started=2026Z",
        ] {
            let error = condition.parse::<Condition>().unwrap_err();
            assert!(
                error.contains("is a time") && error.contains("YYYY-MM-DDTHH:MM:SS.ssssssZ"),
                "{condition}: {error}"
            );
        }
        for good in
            ["started>=2024-02-29", "started<2026-01-31 23", "finished_at!=null", "config.started=soon"]
        {
            assert!(good.parse::<Condition>().is_ok(), "{good}");
        }
    }

    #[test]
    fn a_time_is_compared_as_far_as_it_is_given() {
        for (condition, expected) in [
            ("started=2026-01-04", "c"),
            ("started=2026", "abc"),
            ("started!=2026-01-04", "ab"),
            ("started>2026-01-03", "bc"),
            ("started>2026-01-04", "b"),
            ("started<=2026-01-04", "ac"),
            ("started_at=2026-01-04T10:30", "c"),
            // As the table shows it.
            ("started=2026-01-04 10:30", "c"),
            ("started=2026-01-04 10:31", ""),
            ("started=2026-01-04T10:30:59Z", "c"),
            // As JSON has it.
            ("started=2026-01-04T10:30:59.250000Z", "c"),
            ("started>2026-01-04T10:30:59.2", "b"),
            ("started>=2026-01-04T10:30:59.3", "b"),
            ("finished_at=null", "abc"),
            ("finished_at>2026", ""),
        ] {
            assert_eq!(met(condition), expected, "{condition}");
        }
    }
}
