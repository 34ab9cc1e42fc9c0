//! In which order a sweep makes its runs.

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
        let cells: Vec<usize> = if repeat % 2 == 0 { there.collect() } else { there.rev().collect() };
        cells.into_iter().map(move |cell| Turn { cell, repeat })
    };
    (0..repeats).flat_map(repeat).collect()
}

/// 0 to `count` − 1, by Fisher and Yates.
fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let mut random = SplitMix(seed);
    let mut places: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        // The remainder's bias is below count / 2⁶⁴.
        places.swap(last, (random.next() % (last as u64 + 1)) as usize);
    }
    places
}

/// Steele, Lea and Flood 2014: enough to shuffle a few cells, the same on every machine and in every version.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
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

    #[test]
    fn the_generator_is_the_published_one() {
        // The first numbers of java.util.SplittableRandom's mixer from seed 1234567.
        let mut random = SplitMix(1_234_567);
        assert_eq!([random.next(), random.next()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }
}
