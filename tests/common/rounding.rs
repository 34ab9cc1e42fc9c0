//! How far apart two right results in bfloat16 may be.

/// The largest difference of two neighbours in bfloat16, relative to the larger: 2⁻⁷.
///
/// bfloat16 has 8 significant bits, so numbers in [2ᵉ, 2ᵉ⁺¹) lie 2ᵉ⁻⁷ apart, which is at most 2⁻⁷ of any of them; rounding
/// costs half of that, 2⁻⁸. Two programs that compute AdamW's update in f32 and round it once, to what is kept, have the
/// same number before that to 1e-6, and so round to the same one or, where it lies about half-way, to neighbours. There
/// they stay: gradients being given, a later update moves both alike. Results in f32 differ by some 2⁻²⁴ and the places where
/// rounding turns lie 2⁻⁷ apart, so in 20 steps a number is rounded apart with a chance of some 20 · 2⁻¹⁷ or 2·10⁻⁴, and twice
/// with one of some 10⁻⁸; and twice matters only to the few numbers within a factor of two of the tensor's largest, which
/// differences are relative to.
pub const NEIGHBOURS: f64 = 1.0 / 128.0;
