//! In what order runs are listed.

use std::cmp::{Ordering, Reverse};

use serde_json::Value;

use super::listed_run::{ListedRun, VERSIONS};
use super::run_condition::plain;
use super::version::Version;

/// Puts runs in the order of a field, the least first; of `None` by start, the newest first. `reverse` turns that around, but
/// runs without the field come last, either way, and of runs that are alike in it the newest first.
pub fn put_in_order(runs: &mut [ListedRun], field: Option<&str>, reverse: bool) {
    runs.sort_by_cached_key(|run| Reverse(run.recency()));
    match field {
        None if reverse => oldest_first(runs, |run| run.began.is_some()),
        None => {}
        Some("started" | "started_at") if reverse => runs.sort_by_key(|run| run.started_at.is_none()),
        Some("started" | "started_at") => oldest_first(runs, |run| run.started_at.is_some()),
        Some(field) => {
            let key = |run: &ListedRun| Key::of(field, &run.field(field));
            match reverse {
                true => runs.sort_by_cached_key(|run| Reverse(key(run))),
                false => runs.sort_by_cached_key(key),
            }
            runs.sort_by_key(|run| run.field(field).is_null());
        }
    }
}

/// Turns the newest first into the oldest first; those whose start is not known come last all the same.
fn oldest_first(runs: &mut [ListedRun], is_known: impl Fn(&ListedRun) -> bool) {
    runs.sort_by_key(|run| !is_known(run));
    let known = runs.partition_point(is_known);
    runs[..known].reverse();
}

/// What a run is sorted by: all numbers before all versions before all else, each in its own order, so that a field in which
/// some runs have a number and others a text has an order at all.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Absent,
    Number(Number),
    Version(Version),
    Text(String),
}

impl Key {
    fn of(field: &str, value: &Value) -> Self {
        let version = || Version::parse(value.as_str()?);
        match (value, value.as_f64()) {
            (Value::Null, _) => Key::Absent,
            (_, Some(number)) => Key::Number(Number(number)),
            _ if VERSIONS.contains(&field) => version().map_or_else(|| Key::Text(plain(value)), Key::Version),
            _ => Key::Text(plain(value)),
        }
    }
}

#[derive(Debug)]
struct Number(f64);

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Number {}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::run_condition::tests::run;
    use super::*;

    /// The runs' ids in the order of a field.
    fn ids(runs: &[ListedRun], field: Option<&str>, reverse: bool) -> String {
        let mut runs = runs.to_vec();
        put_in_order(&mut runs, field, reverse);
        runs.into_iter().map(|run| run.run_id).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn of_runs_of_one_second_the_newest_is_still_the_first() {
        let began = |id: &str, micros: i64| {
            let began = DateTime::from_timestamp_micros(1_769_860_800_000_000 + micros);
            ListedRun { began, started_at: Some("2026-01-31T12:00:00Z".to_owned()), ..run(id, 2, None) }
        };
        let unreadable = ListedRun { started_at: None, ..began("file-of-then", 600_000) };
        let lost = ListedRun { began: None, started_at: None, ..run("lost", 2, None) };
        let runs = [
            began("b", 999_999),
            lost,
            began("a", 1_000_000),
            began("d", 5),
            began("e", 5),
            unreadable,
            began("c", 0),
        ];
        assert_eq!(ids(&runs, None, false), "a b file-of-then e d c lost");
        assert_eq!(ids(&runs, None, true), "c d e file-of-then b a lost");
        assert_eq!(ids(&runs, Some("started"), false), "c d e b a file-of-then lost");
        assert_eq!(ids(&runs, Some("started"), true), "a b e d c file-of-then lost");
        assert_eq!(ids(&runs, Some("batch"), false), ids(&runs, None, false), "alike in it");
    }

    fn tagged(tags: &[Value]) -> Vec<ListedRun> {
        let tagged = |tag: &Value| {
            let mut run = run(&tag.to_string(), 2, None);
            run.config.insert("tag".to_owned(), tag.clone());
            run
        };
        tags.iter().map(tagged).collect()
    }

    #[test]
    fn numbers_come_before_texts_and_what_is_absent_comes_last() {
        let tags = [
            json!("95"),
            json!(100),
            json!(null),
            json!("5x"),
            json!(9),
            json!(true),
            json!(3.5),
            json!("1a"),
        ];
        let runs = tagged(&tags);
        assert_eq!(ids(&runs, Some("tag"), false), r#"3.5 9 100 "1a" "5x" "95" true null"#);
        assert_eq!(ids(&runs, Some("tag"), true), r#"true "95" "5x" "1a" 100 9 3.5 null"#);
    }

    #[test]
    fn versions_are_no_words() {
        let torch = |id: &str, torch: &str| ListedRun { torch: Some(torch.to_owned()), ..run(id, 2, None) };
        let runs =
            [torch("a", "2.11.0"), torch("b", "main"), torch("c", "2.9.0+cu130"), torch("d", "2.10.0a0")];
        assert_eq!(ids(&runs, Some("torch"), false), "c d a b");
    }

    fn tag() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-20_i64..200).prop_map(Value::from),
            (-20.0..200.0).prop_map(Value::from),
            "[0-9]{1,3}[a-c]{0,1}".prop_map(Value::from),
            "[0-9]\\.[0-9]{1,2}(a0|rc1|\\+cu1)?".prop_map(Value::from),
        ]
    }

    proptest! {
        /// Whatever some runs have of a field and others do not: the sort panics where three are not in an order.
        #[test]
        fn any_three_are_in_an_order(tags in prop::collection::vec(tag(), 3), is_version in any::<bool>()) {
            let field = if is_version { "torch" } else { "tag" };
            let keys: Vec<Key> = tags.iter().map(|tag| Key::of(field, tag)).collect();
            let [a, b, c] = [&keys[0], &keys[1], &keys[2]];
            prop_assert_eq!(a.cmp(b), b.cmp(a).reverse());
            prop_assert_eq!(a.cmp(b).is_eq(), a == b);
            prop_assert!(!(a <= b && b <= c) || a <= c, "{a:?} {b:?} {c:?}");
        }

        #[test]
        fn a_mixed_field_is_sorted_without_a_panic(tags in prop::collection::vec(tag(), 0..120), reverse in any::<bool>()) {
            let mut runs = tagged(&tags);
            put_in_order(&mut runs, Some("tag"), reverse);
            let keys: Vec<Key> = runs.iter().map(|run| Key::of("tag", &run.field("tag"))).filter(|key| *key != Key::Absent).collect();
            let is_in_order = keys.is_sorted_by(|one, next| if reverse { one >= next } else { one <= next });
            prop_assert!(is_in_order, "{:?}", keys);
            prop_assert!(runs[keys.len()..].iter().all(|run| run.field("tag").is_null()));
        }
    }
}
