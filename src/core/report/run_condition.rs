//! A condition that runs of a list meet or not.

use std::cmp::Ordering;
use std::str::FromStr;

use serde_json::Value;

use super::asked_time::{compare_time, is_time};
use super::listed_run::{ListedRun, TIMES, VERSIONS};
use super::version::Version;

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
        condition.check().map(|()| condition)
    }
}

impl Condition {
    fn is_of_time(&self) -> bool {
        TIMES.contains(&self.field.as_str())
    }

    fn is_of_version(&self) -> bool {
        VERSIONS.contains(&self.field.as_str())
    }

    /// Whether it asks for less or more than its value.
    pub(super) fn asks_for_order(&self) -> bool {
        !matches!(self.relation, Relation::Equal | Relation::Unequal)
    }

    /// Refuses what would have times or versions compared by their letters.
    fn check(&self) -> Result<(), String> {
        let Condition { field, value, .. } = self;
        if value == "null" {
            return Ok(());
        }
        if self.is_of_time() && !is_time(value) {
            return Err(format!(
                "{} is a time, and {:?} is none; write YYYY-MM-DDTHH:MM:SS.ssssssZ, in UTC, or the parts that it begins with, such as \
                 2026-01-31, or `null` for runs without one",
                field, value
            ));
        }
        if self.is_of_version() && self.asks_for_order() && Version::parse(value).is_none() {
            return Err(format!(
                "{field} is a version, and {value:?} is none; write one such as 2.9 or 2.9.0+cu130, or ask with = or !="
            ));
        }
        Ok(())
    }

    /// Whether a run meets it. Numbers are compared as numbers, times as far as they are given, versions part by part; all
    /// else is equal or not, and never less or more. Nor is `null`, which means that the run has no such value.
    pub fn holds(&self, run: &ListedRun) -> bool {
        let has = run.field(&self.field);
        let order = match (&has, self.value.as_str()) {
            (Value::Null, "null") => Some(Ordering::Equal),
            (Value::Null, _) | (_, "null") => None,
            (Value::String(time), asked) if self.is_of_time() => Some(compare_time(time, asked)),
            (Value::String(has), asked) if self.is_of_version() => compare_version(has, asked),
            _ => compare_to_text(&has, &self.value),
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

/// `None` where they differ, and which of them comes first nobody could say.
fn compare_version(has: &str, asked: &str) -> Option<Ordering> {
    match (Version::parse(has), Version::parse(asked)) {
        (Some(has), Some(asked)) => Some(has.against(&asked)),
        _ => (has == asked).then_some(Ordering::Equal),
    }
}

/// `None` where they differ, and are not both numbers.
fn compare_to_text(value: &Value, text: &str) -> Option<Ordering> {
    match (value.as_f64(), finite(text)) {
        (Some(one), Some(other)) => one.partial_cmp(&other),
        _ => (plain(value) == text).then_some(Ordering::Equal),
    }
}

/// A number that is one: no configuration has a `nan`.
pub(super) fn finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
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
    fn versions_are_compared_part_by_part() {
        let torch = |torch: &str| ListedRun { torch: Some(torch.to_owned()), ..run("a", 2, None) };
        let holds = |condition: &str, has: &str| condition.parse::<Condition>().unwrap().holds(&torch(has));
        for (condition, has, expected) in [
            ("torch>=2.9", "2.11.0", true),
            ("torch<2.9", "2.11.0", false),
            ("torch=2.11", "2.11.0+cu130", true),
            ("torch=2.11.0+cu128", "2.11.0+cu130", false),
            ("torch!=2.11", "2.11.1", true),
            ("torch>=2.9", "2.9.0a0+git1f2e", false),
            ("torch=main", "main", true),
            ("torch=main", "2.11.0", false),
            ("torch>=2.9", "main", false),
            ("torch<2.9", "main", false),
        ] {
            assert_eq!(holds(condition, has), expected, "{condition} of {has}");
        }
        assert!(!"torch>=2.9".parse::<Condition>().unwrap().holds(&run("a", 2, None)));
        let error = "torch>=new".parse::<Condition>().unwrap_err();
        assert!(error.contains("torch is a version, and \"new\" is none"), "{error}");
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
