//! Numbers as people read them.

use crate::record::three_digits;
pub use crate::record::{bytes, count};

/// The same of a size on disk.
pub fn file_bytes(count: u64) -> String {
    bytes(i64::try_from(count).unwrap_or(i64::MAX))
}

/// Milliseconds with a fitting unit: `830 µs`, `9.41 ms`, `1.25 s`.
pub fn ms(value: f64) -> String {
    match value.abs() {
        0.0 => "0 µs".to_owned(),
        small if small < 0.9995 => format!("{} µs", three_digits(value * 1e3)),
        middle if middle < 999.5 => format!("{} ms", three_digits(value)),
        _ => format!("{} s", three_digits(value / 1e3)),
    }
}

/// So many threads: `1 thread`, `2 threads`.
pub fn threads(number: i64) -> String {
    format!("{number} thread{}", if number == 1 { "" } else { "s" })
}

/// A share of a whole in percent, one decimal.
pub fn pct(value: f64) -> String {
    format!("{value:.1} %")
}

/// A part of a whole in percent; of nothing, 0.
pub fn share_pct(part: i64, whole: i64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

/// Whole numbers whole, others to four decimals.
pub fn number(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.4}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!((ms(0.83), ms(9.414), ms(1250.0)), ("830 µs".into(), "9.41 ms".into(), "1.25 s".into()));
        assert_eq!((threads(1), threads(2)), ("1 thread".into(), "2 threads".into()));
        assert_eq!((ms(9.999), ms(0.0)), ("10.0 ms".into(), "0 µs".into()));
        assert_eq!((ms(0.99999), ms(999.7)), ("1.00 ms".into(), "1.00 s".into()));
        assert_eq!((share_pct(1, 4), share_pct(0, 0)), (25.0, 0.0));
    }
}
