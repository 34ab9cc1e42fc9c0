//! In which order a sweep makes its runs.

use crate::stats::SplitMix64;

/// One run of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Turn {
    pub cell: usize,
    /// From 0.
    pub repeat: usize,
}

/// The runs of `cells` × `repeats`: the cells in one shuffled order for every repeat, which turns around each
/// time (ABBA), so that a machine that gets slower while the sweep goes on slows all cells alike.
pub fn order(cells: usize, repeats: usize, seed: u64) -> Vec<Turn> {
    let shuffled = shuffled(cells, seed);
    let repeat = |repeat: usize| {
        let there = shuffled.iter().copied();
        let cells: Vec<usize> =
            if repeat.is_multiple_of(2) { there.collect() } else { there.rev().collect() };
        cells.into_iter().map(move |cell| Turn { cell, repeat })
    };
    (0..repeats).flat_map(repeat).collect()
}

/// 0 to `count` − 1, by Fisher and Yates.
fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let mut random = SplitMix64::new(seed);
    let mut places: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        places.swap(last, random.below(last + 1));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_turn_around() {
        let turns = order(5, 4, 7);
        let of = |repeat: usize| -> Vec<usize> {
            turns.iter().filter(|turn| turn.repeat == repeat).map(|turn| turn.cell).collect()
        };
        let there = of(0);
        let back: Vec<usize> = there.iter().copied().rev().collect();
        assert_eq!((of(1), of(2), of(3)), (back.clone(), there.clone(), back));
        let mut all = there;
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn the_seed_alone_decides() {
        assert_eq!(order(8, 2, 1), order(8, 2, 1));
        assert!((2..10).any(|seed| order(8, 1, seed) != order(8, 1, 1)));
        assert_eq!(order(0, 3, 1), []);
    }
}
