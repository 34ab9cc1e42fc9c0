//! Which runs of a list to show, and in what order.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeSet;

use serde_json::Value;

use super::listed_run::{FACTS, ListedRun};
use super::run_condition::{Condition, plain};

/// What to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// All of them must hold.
    pub conditions: Vec<Condition>,
    /// By which field to sort, the least first; `None`: by start, the newest first. Among runs that are alike in it the
    /// newest comes first.
    pub sort: Option<String>,
    pub reverse: bool,
    pub limit: Option<usize>,
}

/// What was asked for makes no sense for these runs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    #[error("no run has a field {field:?}; there are: {known}")]
    UnknownField { field: String, known: String },
    #[error("{field} is a number, and {value:?} is none; give a number, or `null` for runs without one")]
    NotANumber { field: String, value: String },
}

impl Selection {
    /// The runs to show, in order.
    pub fn of(&self, runs: Vec<ListedRun>) -> Result<Vec<ListedRun>, SelectionError> {
        let mut listing = Listing::new(self.clone(), true);
        runs.into_iter().for_each(|run| listing.take(run));
        listing.finish()
    }

    /// The fields that are asked for.
    fn fields(&self) -> impl Iterator<Item = &String> {
        self.conditions.iter().map(|condition| &condition.field).chain(&self.sort)
    }
}

/// A list in the making: takes in runs one at a time, and keeps of each what is to be shown.
#[derive(Debug)]
pub struct Listing {
    selection: Selection,
    /// Whether whole configurations are shown, or but what a table has of them.
    whole: bool,
    /// By the fields that are asked for, what the runs have under their names.
    seen: Vec<Seen>,
    /// The fields of all configurations.
    configured: BTreeSet<String>,
    taken: usize,
    kept: Vec<ListedRun>,
}

/// What some run has under the name of a field.
#[derive(Debug, Clone, Default)]
struct Seen {
    field: bool,
    number: bool,
    text: bool,
}

impl Listing {
    pub fn new(selection: Selection, whole: bool) -> Self {
        let seen = vec![Seen::default(); selection.fields().count()];
        Listing { selection, whole, seen, configured: BTreeSet::new(), taken: 0, kept: Vec::new() }
    }

    pub fn take(&mut self, mut run: ListedRun) {
        self.taken += 1;
        for (field, seen) in self.selection.fields().zip(&mut self.seen) {
            let value = run.field(field);
            seen.field |= FACTS.contains(&field.as_str()) || run.configures(field);
            seen.number |= value.is_number();
            seen.text |= value.is_string();
        }
        self.configured.extend(run.configured_names());
        if !self.selection.conditions.iter().all(|condition| condition.holds(&run)) {
            return;
        }
        if !self.whole {
            let asked = |name: &String| self.selection.fields().any(|field| is_below(field, name));
            let shown = |name: &String| SHOWN.contains(&name.as_str()) || asked(name);
            run.config = run.config.into_iter().filter(|(name, _)| shown(name)).collect();
        }
        self.kept.push(run);
    }

    /// The runs to show, in order. Runs without the field that is sorted by come last, either way round.
    pub fn finish(self) -> Result<Vec<ListedRun>, SelectionError> {
        self.check()?;
        let (Selection { sort, reverse, limit, .. }, mut runs) = (self.selection, self.kept);
        runs.sort_by_cached_key(|run| Reverse(run.recency()));
        match sort.as_deref() {
            None if reverse => oldest_first(&mut runs, |run| run.began.is_some()),
            None => {}
            Some("started" | "started_at") if reverse => runs.sort_by_key(|run| run.started_at.is_none()),
            Some("started" | "started_at") => oldest_first(&mut runs, |run| run.started_at.is_some()),
            Some(field) => {
                runs.sort_by(|one, other| compare(&one.field(field), &other.field(field), reverse));
            }
        }
        runs.truncate(limit.unwrap_or(usize::MAX));
        Ok(runs)
    }

    fn check(&self) -> Result<(), SelectionError> {
        // A list without runs has no configuration to tell from.
        if self.taken == 0 {
            return Ok(());
        }
        if let Some((field, _)) = self.selection.fields().zip(&self.seen).find(|(_, seen)| !seen.field) {
            let facts = FACTS.iter().map(|&fact| fact.to_owned());
            let known: Vec<String> = facts.chain(self.configured.iter().cloned()).collect();
            return Err(SelectionError::UnknownField { field: field.clone(), known: known.join(", ") });
        }
        // Held against what is no number, numbers would be compared by their letters.
        let is_word = |value: &str| value != "null" && value.parse::<f64>().is_err();
        let mut pairs = self.selection.conditions.iter().zip(&self.seen);
        match pairs.find(|(condition, seen)| seen.number && !seen.text && is_word(&condition.value)) {
            None => Ok(()),
            Some((Condition { field, value, .. }, _)) => {
                Err(SelectionError::NotANumber { field: field.clone(), value: value.clone() })
            }
        }
    }
}

/// What a table shows of a configuration.
const SHOWN: [&str; 3] = ["batch", "checkpoint", "dtype"];

/// Whether a field that is asked for lies in the configuration's field `name`.
fn is_below(field: &str, name: &str) -> bool {
    let field = field.strip_prefix("config.").unwrap_or(field);
    field.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Turns the newest runs first into the oldest first; those whose start is not known come last all the same.
fn oldest_first(runs: &mut [ListedRun], is_known: impl Fn(&ListedRun) -> bool) {
    runs.reverse();
    runs.sort_by_key(|run| !is_known(run));
}

fn compare(one: &Value, other: &Value, falling: bool) -> Ordering {
    let order = match (one, other) {
        (Value::Null, Value::Null) => return Ordering::Equal,
        (Value::Null, _) => return Ordering::Greater,
        (_, Value::Null) => return Ordering::Less,
        _ => one
            .as_f64()
            .zip(other.as_f64())
            .map_or_else(|| plain(one).cmp(&plain(other)), |(one, other)| one.total_cmp(&other)),
    };
    if falling { order.reverse() } else { order }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::super::run_condition::tests::run;
    use super::*;

    fn ids(selection: &Selection) -> Vec<String> {
        let runs = vec![run("a", 2, Some(9.5)), run("b", 8, None), run("c", 4, Some(10.0))];
        selection.of(runs).unwrap().into_iter().map(|run| run.run_id).collect()
    }

    #[test]
    fn order_is_as_asked_and_what_is_not_known_comes_last() {
        let by = |sort: Option<&str>, reverse, limit| {
            ids(&Selection { sort: sort.map(str::to_owned), reverse, limit, ..Selection::default() }).concat()
        };
        assert_eq!((by(None, false, None), by(None, true, None)), ("bca".into(), "acb".into()));
        assert_eq!(
            (by(Some("step_ms"), false, None), by(Some("step_ms"), true, None)),
            ("acb".into(), "cab".into())
        );
        assert_eq!(by(Some("batch"), true, Some(2)), "bc");
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
        let ids = |sort: Option<&str>, reverse| {
            let selection = Selection { sort: sort.map(str::to_owned), reverse, ..Selection::default() };
            let ids = selection.of(runs.to_vec()).unwrap().into_iter().map(|run| run.run_id);
            ids.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(ids(None, false), "a b file-of-then e d c lost");
        assert_eq!(ids(None, true), "c d e file-of-then b a lost");
        assert_eq!(ids(Some("started"), false), "c d e b a file-of-then lost");
        assert_eq!(ids(Some("started"), true), "a b e d c file-of-then lost");
        assert_eq!(ids(Some("batch"), false), ids(None, false), "alike in it");
    }

    #[test]
    fn a_field_that_no_run_has_is_refused_with_those_there_are() {
        let selection = Selection { sort: Some("bach".to_owned()), ..Selection::default() };
        let error = selection.of(vec![run("a", 2, None)]).unwrap_err().to_string();
        assert!(
            error.contains("\"bach\"") && error.contains("peak_mib") && error.contains("loader.workers"),
            "{error}"
        );
        assert!(selection.of(Vec::new()).unwrap().is_empty());
    }

    #[test]
    fn a_number_is_held_against_numbers_alone() {
        let refused = |condition: &str| {
            let selection =
                Selection { conditions: vec![condition.parse().unwrap()], ..Selection::default() };
            selection.of(vec![run("a", 2, Some(9.5)), run("b", 8, None)]).err().map(|error| error.to_string())
        };
        for bad in ["batch<eight", "batch=8x", "step_ms>fast"] {
            assert!(refused(bad).unwrap().contains("is a number"), "{bad}");
        }
        for good in ["batch=null", "batch<8", "checkpoint=8", "id>a"] {
            assert_eq!(refused(good), None, "{good}");
        }
    }

    #[test]
    fn a_table_keeps_of_a_configuration_what_is_asked_for() {
        let selection = Selection {
            conditions: vec!["config.loader.workers=2".parse().unwrap()],
            sort: Some("loader.workers".to_owned()),
            ..Selection::default()
        };
        let mut listing = Listing::new(selection, false);
        let mut other = run("a", 2, None);
        other.config.insert("width".to_owned(), 128.into());
        listing.take(other);
        let kept = listing.finish().unwrap();
        assert_eq!(kept[0].config.keys().collect::<Vec<_>>(), ["batch", "checkpoint", "loader"]);
    }
}
