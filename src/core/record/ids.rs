//! What tells apart what begins in the same second.

use chrono::{DateTime, Utc};

/// The bits of a tail: five hexadecimal digits.
const BITS: u32 = 20;
/// 2⁶⁴ over the golden ratio: multiplying by it spreads small differences over the highest bits (Knuth 1973, 6.4).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The beginning of an id, in UTC: ids sort by time.
pub fn id_time(at: DateTime<Utc>) -> String {
    at.format("%Y%m%d-%H%M%S").to_string()
}

/// Five digits for the end of an id that begins with a time to the second. They come from the rest of the time and the
/// process, so that neither two processes at one instant nor one process twice in a second are likely to have the same.
pub fn id_tail(at: DateTime<Utc>, process: u32) -> String {
    let nanos = u64::from(at.timestamp_subsec_nanos());
    let mixed = ((u64::from(process) << 31) ^ nanos).wrapping_mul(SPREAD);
    format!("{:05x}", mixed >> (u64::BITS - BITS))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn later_ids_come_later() {
        let at = |seconds: i64| id_time(DateTime::from_timestamp(seconds, 999_999_999).unwrap());
        assert_eq!(at(0), "19700101-000000");
        assert!(at(59) < at(60) && at(86_399) < at(86_400) && at(999_999_999) < at(1_000_000_000));
    }

    #[test]
    fn instants_of_a_second_and_processes_of_an_instant_are_told_apart() {
        let tail = |nanos: u32, process: u32| id_tail(DateTime::from_timestamp(0, nanos).unwrap(), process);
        assert_eq!(tail(0, 0), "00000");
        assert!(tail(999_999_999, u32::MAX).len() == 5);
        let instants: HashSet<String> = (0..100).map(|at| tail(1_000_003 * at, 4711)).collect();
        let processes: HashSet<String> = (0..100).map(|process| tail(5, 4711 + process)).collect();
        assert_eq!((instants.len(), processes.len()), (100, 100));
    }
}
