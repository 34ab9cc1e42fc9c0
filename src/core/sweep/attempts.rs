//! The runs that were begun for each turn of a sweep, by the names of their folders.

use std::collections::HashMap;

use super::order::Turn;
use super::spec::Spec;

/// The numbers of the attempts at each turn, in rising order.
#[derive(Debug, Default)]
pub(super) struct Attempts(HashMap<Turn, Vec<usize>>);

impl Attempts {
    /// Those among these names of folders.
    pub fn of(spec: &Spec, names: impl Iterator<Item = String>) -> Self {
        let mut attempts: HashMap<Turn, Vec<usize>> = HashMap::new();
        for (turn, attempt) in names.filter_map(|name| spec.attempt(&name)) {
            attempts.entry(turn).or_default().push(attempt);
        }
        attempts.values_mut().for_each(|of_turn| of_turn.sort_unstable());
        Attempts(attempts)
    }

    pub fn at(&self, turn: Turn) -> &[usize] {
        self.0.get(&turn).map_or(&[], Vec::as_slice)
    }

    /// The number of the next one. It has not been used: what was removed leaves a gap before the last.
    pub fn next(&self, turn: Turn) -> usize {
        self.at(turn).last().map_or(1, |last| last + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::grid::{Axis, Grid};
    use super::*;

    #[test]
    fn attempts_are_known_by_their_names_whatever_was_removed_before_them() {
        let grid = Grid::new(vec![Axis::parse("batch", "1,2").unwrap()]).unwrap();
        let spec = Spec::new("a-c01-r1-again2", grid, Vec::new(), 12);
        let id = |rest: &str| format!("{}{rest}", spec.sweep_id);
        let names = [
            "-c01-r1-again3",
            "-c01-r1-again10",
            "-c02-r12",
            "-c02-r12-again2",
            // None of these is a name that an attempt has.
            "",
            "-c01-r2-again1",
            "-c01-r2-again02",
            "-c1-r2",
            "-c01-r0",
            "-c00-r2",
            "-c01-r2-copy",
        ];
        let attempts = Attempts::of(&spec, names.map(id).into_iter().chain(["sweep.json".to_owned()]));
        let of = |cell, repeat| {
            (attempts.at(Turn { cell, repeat }).to_vec(), attempts.next(Turn { cell, repeat }))
        };
        assert_eq!(of(0, 0), (vec![3, 10], 11));
        assert_eq!(of(1, 11), (vec![1, 2], 3));
        assert_eq!(of(0, 1), (vec![], 1));
    }
}
