//! Changes in percent, as they are told.

/// With two digits and a true minus sign; what rounds to nothing has none. A margin is 1 %, so one digit would be too
/// few to tell which side of it a number lies on.
pub fn signed_pct(pct: f64) -> String {
    let digits = format!("{:.2}", pct.abs());
    match pct {
        _ if digits == "0.00" => "0.00 %".to_owned(),
        pct if pct < 0.0 => format!("−{digits} %"),
        _ => format!("+{digits} %"),
    }
}

/// From one end of an interval to the other.
pub fn range_pct(low: f64, high: f64) -> String {
    format!("{} to {}", signed_pct(low), signed_pct(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_has_no_sign_and_a_minus_is_one() {
        for (pct, told) in [
            (-0.004, "0.00 %"),
            (0.0, "0.00 %"),
            (-0.99, "−0.99 %"),
            (1.004, "+1.00 %"),
            (f64::INFINITY, "+inf %"),
        ] {
            assert_eq!(signed_pct(pct), told);
        }
        assert_eq!(range_pct(-7.407, 8.0), "−7.41 % to +8.00 %");
    }
}
