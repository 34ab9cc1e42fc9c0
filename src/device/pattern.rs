//! What the measuring kernels work on, and what comes of it.

/// Places of a pattern: four times a prime, so that no grid's step, a multiple of the block's size, falls into step with it.
const PLACES: usize = 4 * 65_537;

/// Numbers in [−0.5, 0.5), the same for the same seed: the highest bits of splitmix64 (Steele, Lea & Flood 2014).
pub fn normal_sized(seed: u64) -> Vec<f32> {
    let number = |place: u64| {
        let mut bits = (seed << 32 | place).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 40) as f32 / (1 << 24) as f32 - 0.5
    };
    (0..PLACES as u64).map(number).collect()
}

/// Triad's results: the product is not rounded before it is added.
pub fn added_up(summands: &[f32], factor: f32, factors: &[f32]) -> Vec<f32> {
    summands.iter().zip(factors).map(|(&summand, &scaled)| factor.mul_add(scaled, summand)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_pattern_does_not_repeat_and_depends_on_its_seed() {
        let (one, two) = (normal_sized(1), normal_sized(2));
        let different: HashSet<u32> = one.iter().map(|number| number.to_bits()).collect();
        assert!(different.len() > PLACES * 9 / 10, "{}", different.len());
        assert!(one.iter().all(|number| (-0.5..0.5).contains(number)));
        assert!(one.iter().zip(&two).filter(|(a, b)| a == b).count() < PLACES / 100);
    }

    #[test]
    fn products_are_added_before_they_are_rounded() {
        // 3 · (1 + 2⁻²³) = 3 + 3 · 2⁻²³, of which f32 keeps 3 + 2⁻²¹ or 3 + 2⁻²² · …; the rest shows when 3 is taken away.
        let scaled = 1.0 + f32::EPSILON;
        assert_eq!(added_up(&[-3.0], 3.0, &[scaled]), [3.0 * f32::EPSILON]);
    }
}
