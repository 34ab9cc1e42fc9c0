//! What there is, told to those who named something else.

use std::cmp::Reverse;
use std::path::Path;

use strsim::jaro_winkler;

use super::baselines::Baselines;
use super::folders::{folders_in, name, sweeps_in};
use super::locate::{is_run, runs_below, runs_in};

/// How many names an error tells.
const LISTED: usize = 8;

/// From this likeness on (1: the same) a name was probably meant, and goes before all others.
const ALIKE: f64 = 0.8;

/// What can be named. Among what is equally like the name asked for, the lesser kind goes first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    kind: Kind,
    name: String,
    /// How it is told.
    told: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Somebody gave it its name: a folder of repeats, a baseline.
    Named,
    Run,
    /// Few people mean one, and there are many.
    RunOfSweep,
}

impl Known {
    /// A run in `out` or in one of its sweeps.
    pub(super) fn run(out: &Path, dir: &Path, told: impl Fn(&Path) -> String) -> Self {
        let kind = if dir.parent() == Some(out) { Kind::Run } else { Kind::RunOfSweep };
        Known { kind, name: name(dir), told: told(dir) }
    }

    fn named(name: &str, what: &str) -> Self {
        Known { kind: Kind::Named, name: name.to_owned(), told: format!("{name} ({what})") }
    }

    /// In thousandths; 0 for what is not alike.
    fn likeness(&self, asked: &str) -> u32 {
        let alike = jaro_winkler(asked, &self.name);
        if alike < ALIKE { 0 } else { (1e3 * alike) as u32 }
    }
}

/// The names most like the one asked for, then the others, of runs the newest first, as ids begin with the time.
pub(super) fn listed(asked: &str, mut known: Vec<Known>) -> String {
    known.sort_by_cached_key(|one| (Reverse(one.likeness(asked)), one.kind, Reverse(one.name.clone())));
    let shown: Vec<&str> = known.iter().take(LISTED).map(|one| one.told.as_str()).collect();
    let rest = known.len() - shown.len();
    shown.join(", ") + &if rest > 0 { format!(" and {rest} more") } else { String::new() }
}

/// The same of all that `compare` takes: folders of repeats, baselines and runs. What cannot be read is left out.
pub fn sides_in(out: &Path, asked: &str) -> String {
    let sweeps = sweeps_in(out);
    let repeats = |dir: &Path| !is_run(dir) && runs_in(dir).is_ok_and(|runs| !runs.is_empty());
    let folders = folders_in(out).unwrap_or_default();
    // A sweep's runs are of several settings, and no repeats.
    let folders = folders.iter().filter(|dir| !sweeps.contains(dir) && repeats(dir));
    let baselines = Baselines::load(out).unwrap_or_default();
    let runs = runs_below(out).unwrap_or_default();
    let known = folders
        .map(|dir| Known::named(&name(dir), "a folder of runs"))
        .chain(baselines.iter().map(|(name, _)| Known::named(name, "a baseline")))
        .chain(runs.iter().map(|dir| Known::run(out, dir, name)));
    listed(asked, known.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(asked: &str, runs: &[&str], named: &[&str]) -> String {
        let run = |place: &&str| Known::run(Path::new("runs"), &Path::new("runs").join(place), name);
        let named = named.iter().map(|name| Known::named(name, "a baseline"));
        listed(asked, runs.iter().map(run).chain(named).collect())
    }

    #[test]
    fn what_is_most_like_the_name_goes_first_and_the_runs_of_sweeps_last() {
        let runs = ["20260101-1-gpt", "20260202-1-gpt", "sweep-20260303/sweep-20260303-c01-r1"];
        assert_eq!(
            told("nosuch", &runs, &["main"]),
            "main (a baseline), 20260202-1-gpt, 20260101-1-gpt, sweep-20260303-c01-r1"
        );
        assert!(told("20260101-2-gpt", &runs, &["main"]).starts_with("20260101-1-gpt, 20260202-1-gpt, main"));
        assert!(told("mian", &runs, &["main"]).starts_with("main (a baseline), "));
    }

    #[test]
    fn a_long_list_is_cut() {
        let names: Vec<String> = (10..30).map(|id| id.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(told("x", &names, &[]), "29, 28, 27, 26, 25, 24, 23, 22 and 12 more");
    }
}
