//! Rounding for people, and whole numbers written as such.

use serde::{Serialize, Serializer};

/// From here on every `f64` is a whole number, and not every whole number is an `f64`.
const EXACT_WHOLE: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;

/// Below this a product's error is far smaller than [`NEAR_TIE`].
const SAFE_PRODUCT: f64 = (1_u64 << 40) as f64;
const NEAR_TIE: f64 = 1e-3;

/// `value` to `places` decimals: the decimal nearest to the *exact* binary value, and the even digit
/// where two are equally near (256.25 → 256.2, while 0.35, being a little less than that, → 0.3).
pub(super) fn round(value: f64, places: i32) -> f64 {
    let scale = 10_f64.powi(places);
    let scaled = value * scale;
    // Away from a tie the product's own rounding cannot matter. Near one only the exact digits tell.
    if scaled.abs() < SAFE_PRODUCT && (scaled.fract().abs() - 0.5).abs() > NEAR_TIE {
        return scaled.round() / scale;
    }
    by_digits(value, places)
}

/// [`round`] by writing the exact digits out: always right, and several times slower.
fn by_digits(value: f64, places: i32) -> f64 {
    if value.abs() >= EXACT_WHOLE {
        return value;
    }
    format!("{value:.0$}", places.unsigned_abs() as usize).parse().unwrap_or(value)
}

/// Serializes a number that was given, or counts bytes: whole ones without a fraction (`42`, not `42.0`).
pub(super) fn plain<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.fract() == 0.0 && value.abs() < EXACT_WHOLE {
        return serializer.serialize_i64(*value as i64);
    }
    serializer.serialize_f64(*value)
}

/// A number that [`plain`] serializes, where there is no field to say so.
#[derive(Serialize)]
pub(super) struct Plain(#[serde(serialize_with = "plain")] pub f64);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ties_go_to_the_even_digit_and_near_ties_to_the_nearer() {
        for (value, places, expected) in [
            (256.25, 1, 256.2),
            (256.75, 1, 256.8),
            (0.25, 1, 0.2),
            (0.35, 1, 0.3),
            (2.675, 2, 2.67),
            (0.125, 2, 0.12),
            (0.375, 2, 0.38),
            (0.5, 0, 0.0),
            (1.5, 0, 2.0),
            (99.95, 1, 100.0),
            (1e300, 2, 1e300),
        ] {
            assert_eq!(round(value, places), expected, "{value} to {places}");
        }
    }

    proptest! {
        #[test]
        fn the_short_way_agrees_with_the_digits(value in -1e12..1e12_f64, tenths in any::<i32>(), places in 0..4) {
            for value in [value, value * 1e-9, f64::from(tenths) / 10.0, f64::from(tenths) / 2000.0] {
                prop_assert_eq!(round(value, places), by_digits(value, places), "{} to {}", value, places);
            }
        }
    }
}
