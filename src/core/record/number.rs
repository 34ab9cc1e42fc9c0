//! Numbers as people read them, wherever they are told.

/// A count with thousands set apart: `834,304`.
pub fn count(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    format!("{}{}", if value < 0 { "-" } else { "" }, groups.join(","))
}

/// Bytes with a binary prefix: `17.1 MiB`; below 1 KiB exact.
pub fn bytes(count: i64) -> String {
    const PREFIXES: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = count as f64;
    if value.abs() < 1024.0 {
        return format!("{count} B");
    }
    let mut prefix = "";
    for next in PREFIXES {
        if value.abs() < 1024.0 {
            break;
        }
        value /= 1024.0;
        prefix = next;
    }
    format!("{} {prefix}", three_digits(value))
}

/// Three digits of it, whole numbers at the least.
pub(crate) fn three_digits(value: f64) -> String {
    let decimals = match value.abs() {
        small if small < 9.995 => 2,
        middle if middle < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        let told = [834_304, -1_000, 12, 0].map(count);
        assert_eq!(told, ["834,304", "-1,000", "12", "0"]);
    }

    #[test]
    fn bytes_have_the_prefix_that_fits() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(17_895_940), "17.1 MiB");
        assert_eq!(bytes(-2048), "-2.00 KiB");
    }
}
