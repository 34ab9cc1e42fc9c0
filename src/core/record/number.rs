//! Whole numbers as people read them, wherever they are told.

/// A count with thousands set apart: `834,304`.
pub fn count(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    format!("{}{}", if value < 0 { "-" } else { "" }, groups.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        let told = [834_304, -1_000, 12, 0].map(count);
        assert_eq!(told, ["834,304", "-1,000", "12", "0"]);
    }
}
