//! Rounds of work, timed by the host's clock.

use std::time::{Duration, Instant};

use super::error::RatesError;
use crate::record::MeasuredRate;
use crate::stats::quantile;

const ROUNDS: usize = 5;
/// A round repeats its work for this long, so that starting and waiting for it do not count.
const LEAST: Duration = Duration::from_millis(100);

/// So many units a second, where `work` does `units` of it, or queues it, and `wait` returns when all that was queued is
/// done. The median and the middle half of five rounds.
pub fn rate(
    units: f64,
    mut work: impl FnMut() -> Result<(), RatesError>,
    mut wait: impl FnMut() -> Result<(), RatesError>,
) -> Result<MeasuredRate, RatesError> {
    let mut round = |repeats: u32| -> Result<f64, RatesError> {
        let begin = Instant::now();
        for _ in 0..repeats {
            work()?;
        }
        wait()?;
        Ok(begin.elapsed().as_secs_f64())
    };
    // Pages are touched, thread pools and kernels made; then it is known how long the work takes.
    round(1)?;
    let repeats = repeats(round(1)?);
    let times: Vec<f64> = (0..ROUNDS).map(|_| round(repeats)).collect::<Result<_, _>>()?;
    Ok(over(units * f64::from(repeats), &times))
}

/// How often work that takes `seconds` is done in a round.
fn repeats(seconds: f64) -> u32 {
    // A time of 0 gives an infinite quotient, which stops at the largest number.
    (LEAST.as_secs_f64() / seconds).ceil().clamp(1.0, 1e6) as u32
}

fn over(units: f64, seconds: &[f64]) -> MeasuredRate {
    let rates: Vec<f64> = seconds.iter().map(|seconds| units / seconds).collect();
    let at = |q| quantile(&rates, q).unwrap_or(f64::NAN);
    MeasuredRate { median: at(0.5), q1: at(0.25), q3: at(0.75), rounds: rates.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_work_over_time() {
        let rate = over(8.0, &[1.0, 2.0, 4.0, 8.0, 16.0]);
        assert_eq!(rate, MeasuredRate { median: 2.0, q1: 1.0, q3: 4.0, rounds: 5 });
    }

    #[test]
    fn short_work_is_repeated_for_a_tenth_of_a_second() {
        assert_eq!((repeats(0.03), repeats(0.1), repeats(7.0)), (4, 1, 1));
        assert_eq!(repeats(0.0), 1_000_000);
    }

    #[test]
    fn each_round_waits_once_and_an_error_ends_it() {
        let (mut waits, mut works) = (0, 0);
        let work = || {
            works += 1;
            std::thread::sleep(LEAST);
            Ok(())
        };
        rate(1.0, work, || {
            waits += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!((works, waits), (2 + ROUNDS, 2 + ROUNDS));
        let failing = || Err(RatesError::Torch(tch::TchError::Torch("no memory".to_owned())));
        assert!(rate(1.0, failing, || Ok(())).unwrap_err().to_string().contains("no memory"));
    }
}
