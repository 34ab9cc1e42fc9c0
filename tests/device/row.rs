//! A line of the table: what was expected, what came, and whether that will do.

use std::fmt;

use tch::Device;

/// What became of a check. What could not run has not passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    Pass,
    NotRun,
    Fail,
}

impl Verdict {
    /// The exit code of a program that ends so: 77 is what test harnesses take for "skipped".
    pub fn code(self) -> u8 {
        match self {
            Verdict::Pass => 0,
            Verdict::Fail => 1,
            Verdict::NotRun => 77,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    check: String,
    expected: String,
    got: String,
    verdict: Verdict,
}

impl Row {
    pub fn new(check: &str, expected: impl Into<String>, got: impl Into<String>, passed: bool) -> Row {
        let verdict = if passed { Verdict::Pass } else { Verdict::Fail };
        Row { check: check.to_owned(), expected: expected.into(), got: got.into(), verdict }
    }

    pub fn not_run(check: &str, why: impl fmt::Display) -> Row {
        let got = format!("not run: {why}");
        Row { check: check.to_owned(), expected: "—".to_owned(), got, verdict: Verdict::NotRun }
    }

    /// A row whose verdict rests on times. On a CPU, where this is a rehearsal, it neither passes nor fails.
    pub fn timed(device: Device, check: &str, expected: impl Into<String>, got: String, passed: bool) -> Row {
        let row = Row::new(check, expected, got, passed);
        match device {
            Device::Cpu => {
                Row { got: format!("not run: in a rehearsal, {}", row.got), verdict: Verdict::NotRun, ..row }
            }
            _ => row,
        }
    }

    /// Passes if the value lies in the range; one that is no number does not.
    pub fn within(check: &str, value: f64, (least, most): (f64, f64), unit: &str) -> Row {
        let passed = (least..=most).contains(&value);
        let digits = if value.abs() < 1e-3 { format!("{value:.1e}") } else { format!("{value:.4}") };
        Row::new(check, format!("{least} to {most}{unit}"), format!("{digits}{unit}"), passed)
    }

    /// Passes if the two are the same.
    pub fn same(check: &str, got: i64, expected: i64, unit: &str) -> Row {
        Row::new(check, format!("{expected}{unit}"), format!("{got}{unit}"), got == expected)
    }
}

/// The largest of these; no number where one of them is none, which `max` would pass over.
pub fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    let larger = |a: f64, b: f64| if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) };
    values.into_iter().fold(0.0, larger)
}

/// Four columns with tabs between; a line break within one becomes a blank.
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.verdict {
            Verdict::Pass => "pass",
            Verdict::NotRun => "not run",
            Verdict::Fail => "FAIL",
        };
        let flat = |text: &str| text.split(['\n', '\t']).collect::<Vec<_>>().join(" ");
        write!(f, "{}\t{}\t{}\t{word}", flat(&self.check), flat(&self.expected), flat(&self.got))
    }
}

/// The worst of them; of nothing, that it did not run.
pub fn verdict(rows: &[Row]) -> Verdict {
    rows.iter().map(|row| row.verdict).max().unwrap_or(Verdict::NotRun)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failure_is_a_failure_and_nothing_is_no_pass() {
        let (pass, fail) = (Row::same("a", 1, 1, ""), Row::same("b", 1, 2, " bytes"));
        let not_run = Row::not_run("c", "no GPU");
        assert_eq!(verdict(std::slice::from_ref(&pass)).code(), 0);
        assert_eq!(verdict(&[pass.clone(), not_run.clone()]).code(), 77);
        assert_eq!(verdict(&[fail, not_run, pass]).code(), 1);
        assert_eq!(verdict(&[]).code(), 77);
    }

    #[test]
    fn times_are_judged_on_a_gpu_alone() {
        let of = |device, passed| Row::timed(device, "a", "at most 1", "0.5".to_owned(), passed).to_string();
        assert_eq!(of(Device::Cpu, false), of(Device::Cpu, true));
        assert_eq!(of(Device::Cpu, true), "a\tat most 1\tnot run: in a rehearsal, 0.5\tnot run");
        assert_eq!(of(Device::Cuda(0), false), "a\tat most 1\t0.5\tFAIL");
    }

    #[test]
    fn a_row_is_four_columns() {
        let row = Row::not_run("clock", "two\nlines").to_string();
        assert_eq!(row, "clock\t—\tnot run: two lines\tnot run");
        let row = Row::within("small", 2.5e-7, (0.0, 1e-5), "").to_string();
        assert_eq!(row, "small\t0 to 0.00001\t2.5e-7\tpass");
        let row = Row::within("ratio", f64::NAN, (0.5, 2.0), " ms").to_string();
        assert_eq!(row, "ratio\t0.5 to 2 ms\tNaN ms\tFAIL");
    }
}
