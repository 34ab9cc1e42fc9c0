//! Rounds of work, timed by the host's clock.

use std::time::{Duration, Instant};

use super::error::RatesError;
use crate::record::MeasuredRate;
use crate::stats::quantile;

const ROUNDS: usize = 5;
/// A round repeats its work for this long, so that starting and waiting for it do not count.
const LEAST: Duration = Duration::from_millis(100);
/// What it is meant to take: work that is done somewhat faster than it was sampled still takes long enough.
const MEANT_S: f64 = 0.125;
/// How often work is timed before it is known how long it takes; the shortest counts, as whatever comes between makes it
/// longer.
const SAMPLES: usize = 3;
const MOST_REPEATS: u32 = 1_000_000;

/// So many units a second, where `work` does `units` of it, or queues it, and `wait` returns when all that was queued is
/// done. The median and the middle half of five rounds, each of 0.1 s or more (of less only where a million repetitions
/// take less).
pub fn rate(
    units: f64,
    work: impl FnMut() -> Result<(), RatesError>,
    wait: impl FnMut() -> Result<(), RatesError>,
) -> Result<MeasuredRate, RatesError> {
    let begin = Instant::now();
    rate_by(|| begin.elapsed(), units, work, wait)
}

/// The same by another clock.
fn rate_by(
    clock: impl Fn() -> Duration,
    units: f64,
    mut work: impl FnMut() -> Result<(), RatesError>,
    mut wait: impl FnMut() -> Result<(), RatesError>,
) -> Result<MeasuredRate, RatesError> {
    let mut round = |repeats: u32| -> Result<Duration, RatesError> {
        let begin = clock();
        for _ in 0..repeats {
            work()?;
        }
        wait()?;
        Ok(clock().saturating_sub(begin))
    };
    // Pages are touched, thread pools and kernels made.
    round(1)?;
    let mut shortest = Duration::MAX;
    for _ in 0..SAMPLES {
        shortest = shortest.min(round(1)?);
    }
    let mut repeats = repeats(shortest);
    loop {
        match rounds(|| round(repeats), repeats < MOST_REPEATS)? {
            Rounds::Counted(times) => return Ok(over(units * f64::from(repeats), &times)),
            Rounds::TooShort(time) => repeats = more(repeats, time),
        }
    }
}

enum Rounds {
    Counted(Vec<f64>),
    TooShort(Duration),
}

/// The seconds of all rounds; or the first that was too short, and none of them counts, if there can be longer ones.
fn rounds(
    mut round: impl FnMut() -> Result<Duration, RatesError>,
    can_be_longer: bool,
) -> Result<Rounds, RatesError> {
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let time = round()?;
        if time < LEAST && can_be_longer {
            return Ok(Rounds::TooShort(time));
        }
        times.push(time.as_secs_f64());
    }
    Ok(Rounds::Counted(times))
}

/// How often work that takes so long is done in a round.
fn repeats(time: Duration) -> u32 {
    // A time of 0 gives an infinite quotient, which stops at the largest number.
    (MEANT_S / time.as_secs_f64()).ceil().clamp(1.0, f64::from(MOST_REPEATS)) as u32
}

/// How often, where so many repetitions took so short a time. Twice as often at least, so that there is an end to it.
fn more(repeated: u32, time: Duration) -> u32 {
    repeats(time / repeated).max(repeated.saturating_mul(2)).min(MOST_REPEATS)
}

fn over(units: f64, seconds: &[f64]) -> MeasuredRate {
    let rates: Vec<f64> = seconds.iter().map(|seconds| units / seconds).collect();
    let at = |q| quantile(&rates, q).unwrap_or(f64::NAN);
    MeasuredRate { median: at(0.5), q1: at(0.25), q3: at(0.75), rounds: rates.len() }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    /// A machine with a clock of its own, on which a piece of work takes what is told of each one, then always the same.
    struct Machine {
        now: Cell<Duration>,
        begun: Cell<Duration>,
        told_ms: RefCell<Vec<u64>>,
        usual_ms: u64,
        works: Cell<usize>,
        rounds_ms: RefCell<Vec<u128>>,
    }

    fn machine(first_ms: &[u64], usual_ms: u64) -> Machine {
        Machine {
            now: Cell::default(),
            begun: Cell::default(),
            told_ms: RefCell::new(first_ms.iter().rev().copied().collect()),
            usual_ms,
            works: Cell::default(),
            rounds_ms: RefCell::default(),
        }
    }

    impl Machine {
        fn rate(&self) -> MeasuredRate {
            let work = || {
                let ms = self.told_ms.borrow_mut().pop().unwrap_or(self.usual_ms);
                self.now.set(self.now.get() + Duration::from_millis(ms));
                self.works.set(self.works.get() + 1);
                Ok(())
            };
            let wait = || {
                let begun = self.begun.replace(self.now.get());
                self.rounds_ms.borrow_mut().push((self.now.get() - begun).as_millis());
                Ok(())
            };
            rate_by(|| self.now.get(), 1.0, work, wait).unwrap()
        }

        /// Milliseconds of the rounds that count.
        fn counted_ms(&self) -> Vec<u128> {
            self.rounds_ms.borrow().iter().rev().take(ROUNDS).rev().copied().collect()
        }
    }

    #[test]
    fn a_rate_is_work_over_time() {
        let rate = over(8.0, &[1.0, 2.0, 4.0, 8.0, 16.0]);
        assert_eq!(rate, MeasuredRate { median: 2.0, q1: 1.0, q3: 4.0, rounds: 5 });
    }

    #[test]
    fn short_work_is_repeated_for_more_than_a_tenth_of_a_second() {
        let of = |ms| repeats(Duration::from_millis(ms));
        assert_eq!((of(30), of(100), of(7000)), (5, 2, 1));
        assert_eq!(of(0), MOST_REPEATS);
    }

    #[test]
    fn a_stall_before_the_rounds_decides_on_nothing() {
        // The first is not counted, and of the samples one is enough that nothing came between.
        for first_ms in [[900, 200, 13, 13], [13, 13, 200, 13], [13, 900, 200, 13]] {
            let machine = machine(&first_ms, 13);
            let rate = machine.rate();
            assert_eq!(machine.counted_ms(), [130; ROUNDS], "{first_ms:?}");
            assert!((rate.median - 1.0 / 0.013).abs() < 1e-9 && rate.q1 == rate.q3, "{rate:?}");
            assert_eq!(machine.works.get(), 1 + SAMPLES + 10 * ROUNDS);
        }
    }

    #[test]
    fn rounds_that_are_too_short_are_done_anew_and_longer() {
        // All samples stall: a piece of work seems to fill a round.
        let stalled = machine(&[200; 1 + SAMPLES], 13);
        let rate = stalled.rate();
        assert_eq!(stalled.counted_ms(), [130; ROUNDS]);
        assert_eq!((stalled.works.get(), rate.rounds), (1 + SAMPLES + 1 + 10 * ROUNDS, ROUNDS));
        // The third round is the first one without a stall: the two before do not count either.
        let late = machine(&[200, 200, 200, 200, 150, 150], 60);
        late.rate();
        assert_eq!(late.counted_ms(), [180; ROUNDS]);
    }

    #[test]
    fn work_that_is_faster_than_it_was_sampled_takes_long_enough() {
        let machine = machine(&[10; 1 + SAMPLES], 8);
        machine.rate();
        assert_eq!(machine.counted_ms(), [104; ROUNDS]);
        assert_eq!(machine.works.get(), 1 + SAMPLES + 13 * ROUNDS, "none of them twice");
    }

    #[test]
    fn a_clock_that_stands_still_is_not_waited_for() {
        let machine = machine(&[], 0);
        assert_eq!(machine.rate().rounds, ROUNDS);
        assert_eq!(more(600_000, Duration::from_millis(99)), MOST_REPEATS);
    }

    #[test]
    fn each_round_waits_once_and_an_error_ends_it() {
        let machine = machine(&[], 100);
        machine.rate();
        assert_eq!(machine.rounds_ms.borrow().len(), 1 + SAMPLES + ROUNDS);
        let failing = || Err(RatesError::Torch(tch::TchError::Torch("no memory".to_owned())));
        assert!(rate(1.0, failing, || Ok(())).unwrap_err().to_string().contains("no memory"));
    }
}
