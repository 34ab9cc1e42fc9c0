//! Which runs of a list to show, and in what order.

use std::collections::BTreeSet;

use super::field_kinds::Kinds;
use super::listed_run::{FACTS, ListedRun};
use super::run_condition::Condition;
use super::run_order::put_in_order;

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
    #[error(
        "{field} is true or false, and {value:?} is neither; give one of them, or `null` for runs without it"
    )]
    NotTrueOrFalse { field: String, value: String },
    #[error(
        "{field} is never less or more: that is asked of numbers, times and versions; ask with = or !=, or sort by it"
    )]
    NoOrder { field: String },
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
    kinds: Vec<Kinds>,
    /// The fields of all configurations.
    configured: BTreeSet<String>,
    taken: usize,
    kept: Vec<ListedRun>,
}

impl Listing {
    pub fn new(selection: Selection, whole: bool) -> Self {
        let kinds = vec![Kinds::default(); selection.fields().count()];
        Listing { selection, whole, kinds, configured: BTreeSet::new(), taken: 0, kept: Vec::new() }
    }

    pub fn take(&mut self, mut run: ListedRun) {
        self.taken += 1;
        self.selection.fields().zip(&mut self.kinds).for_each(|(field, kinds)| kinds.take(&run, field));
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

    /// The runs to show, in order.
    pub fn finish(self) -> Result<Vec<ListedRun>, SelectionError> {
        self.check()?;
        let (Selection { sort, reverse, limit, .. }, mut runs) = (self.selection, self.kept);
        put_in_order(&mut runs, sort.as_deref(), reverse);
        runs.truncate(limit.unwrap_or(usize::MAX));
        Ok(runs)
    }

    fn check(&self) -> Result<(), SelectionError> {
        // A list without runs has no configuration to tell from.
        if self.taken == 0 {
            return Ok(());
        }
        if let Some((field, _)) = self.selection.fields().zip(&self.kinds).find(|(_, kinds)| !kinds.known) {
            let facts = FACTS.iter().map(|&fact| fact.to_owned());
            let known: Vec<String> = facts.chain(self.configured.iter().cloned()).collect();
            return Err(SelectionError::UnknownField { field: field.clone(), known: known.join(", ") });
        }
        self.selection
            .conditions
            .iter()
            .zip(&self.kinds)
            .try_for_each(|(condition, kinds)| kinds.check(condition))
    }
}

/// What a table shows of a configuration.
const SHOWN: [&str; 3] = ["batch", "checkpoint", "dtype"];

/// Whether a field that is asked for lies in the configuration's field `name`.
fn is_below(field: &str, name: &str) -> bool {
    let field = field.strip_prefix("config.").unwrap_or(field);
    field.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
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
    fn a_value_is_held_against_its_like_alone() {
        let refused = |condition: &str| {
            let selection =
                Selection { conditions: vec![condition.parse().unwrap()], ..Selection::default() };
            let mut other = run("b", 8, None);
            other.config.insert("master_weights".to_owned(), false.into());
            other.config.insert("mixed".to_owned(), "five".into());
            let mut one = run("a", 2, Some(9.5));
            one.config.insert("mixed".to_owned(), 4.into());
            selection.of(vec![one, other]).err().map(|error| error.to_string())
        };
        for (bad, why) in [
            ("batch<eight", "batch is a number"),
            ("batch=8x", "batch is a number"),
            ("step_ms>fast", "step_ms is a number"),
            ("batch=nan", "batch is a number, and \"nan\" is none"),
            ("batch<inf", "batch is a number"),
            ("batch!=true", "batch is a number"),
            ("master_weights=0", "master_weights is true or false, and \"0\" is neither"),
            ("master_weights=yes", "master_weights is true or false"),
            ("master_weights<5", "master_weights is never less or more"),
            ("master_weights<true", "ask with = or !=, or sort by it"),
            ("checkpoint>=none", "checkpoint is never less or more"),
            ("id>a", "id is never less or more"),
            ("id<5", "id is never less or more"),
            ("loader<5", "loader is never less or more"),
            ("mixed<five", "mixed is never less or more"),
        ] {
            let told = refused(bad);
            assert!(told.as_ref().is_some_and(|told| told.contains(why)), "{bad}: {told:?}");
        }
        for good in [
            "batch=null",
            "batch<8",
            "checkpoint=8",
            "id!=a",
            "master_weights=true",
            "master_weights!=null",
            "mixed<5",
            "mixed=five",
            "finished_at>2026",
            "torch>=2.9",
            "peak_mib<8",
            "loader={}",
        ] {
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
