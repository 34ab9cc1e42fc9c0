//! What a card can do at most: how many bytes its memory moves a second, how many f32 operations it computes. Measured by
//! kernels of our own, so that nothing but the card limits them, and whose results are checked: how fast a kernel is that
//! computes something else says nothing. Compiled, run on a double of the driver, never yet on a card.

use std::ffi::c_void;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::cache::Cache;
use super::error::DeviceError;
use super::gpu::{Function, Gpu, Launch, Module};
use super::loading::load;
use super::memory::{Buffer, Stopwatch, Wrong};
use super::pattern::{added_up, normal_sized};
use super::source::{CHAINS, MEASURING_BLOCK, Source};
use crate::stats::quantile;

/// A rate over several rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    pub median: f64,
    /// The middle half of the rounds lies between these.
    pub q1: f64,
    pub q3: f64,
    pub rounds: usize,
}

/// What a card's memory moves, read and written bytes together, in GB/s (10⁹).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bandwidth {
    pub copy: Rate,
    pub triad: Rate,
}

/// Not counted: the driver assembles the kernel, and an idle card takes tens of milliseconds until its clocks are up.
const WARM_UP: Duration = Duration::from_millis(200);
const ROUNDS: usize = 20;
/// FMAs of each value of a thread: about 10 ms of work on a card of 2020 or later.
const FMAS: i32 = 1 << 16;
/// Smaller arrays than this together measure a cache.
const LEAST_BYTES: usize = 1 << 20;
/// Of an access.
const QUAD: usize = 16;
/// Of triad: a = b + s · c.
const FACTOR: f32 = 3.0;
/// FMAs of each value when the kernel's results are checked; the last of them fill no turn of its unrolled loop.
const CHECKED_FMAS: i32 = 77;

/// Copies and adds up arrays (STREAM's copy and triad, McCalpin 1995) that take `bytes` of the card's memory in all; to
/// measure memory and not a cache, give many times the size of the card's L2 cache.
///
/// GB/s = bytes read and written / time. Copy counts 2, triad 3 times the size of an array; the median and the middle
/// half of 20 rounds after 0.2 s of warm-up, each timed by CUDA events. The arrays hold random numbers (zeros take less
/// power), and every place of the results is read back and compared, bit for bit.
///
/// # Errors
/// Too few bytes to measure with; a result that is wrong; anything the driver or the compiler refuses.
pub fn measure_bandwidth(gpu: &Arc<Gpu>, cache: &Cache, bytes: usize) -> Result<Bandwidth, DeviceError> {
    let quads = quads(bytes)?;
    let module = load(gpu, cache, &Source::bandwidth())?;
    let array = || Buffer::zeros(gpu, quads * QUAD);
    let arrays @ (result, added, multiplied) = &(array()?, array()?, array()?);
    let (summands, factors) = (normal_sized(1), normal_sized(2));
    added.fill(&summands)?;
    multiplied.fill(&factors)?;
    let runner = Runner { gpu, module: &module, blocks: gpu.shape().filling_blocks(MEASURING_BLOCK) };
    let (mut to, mut from, mut scaled) = (arrays.0.address, arrays.1.address, arrays.2.address);
    let (mut factor, mut count) = (FACTOR, quads as u64);
    let mut copied = [argument(&mut to), argument(&mut from), argument(&mut count)];
    // SAFETY: `copy` takes two arrays of so many quads, which live until the last round is over, and their number.
    let copy = unsafe { runner.times("copy", &mut copied)? };
    right("copy", result.wrong(&summands)?)?;
    let mut all = [
        argument(&mut to),
        argument(&mut from),
        argument(&mut scaled),
        argument(&mut factor),
        argument(&mut count),
    ];
    // SAFETY: `triad` takes three arrays of so many quads, which live until the last round is over, and two numbers.
    let triad = unsafe { runner.times("triad", &mut all)? };
    right("triad", result.wrong(&added_up(&summands, FACTOR, &factors))?)?;
    let bytes = (quads * QUAD) as f64;
    Ok(Bandwidth { copy: rate(2.0 * bytes / 1e9, &copy), triad: rate(3.0 * bytes / 1e9, &triad) })
}

/// What the card computes in f32 by fused multiply-adds alone, in TFLOP/s (10¹²); an FMA counts as two operations.
///
/// TFLOP/s = 2 · FMAs / time. Every thread works on 16 independent values, so that no FMA waits for another; the median
/// and the middle half of 20 rounds after 0.2 s of warm-up, each timed by CUDA events. Before, the sum of each thread is
/// compared with its closed form on numbers for which f32 is exact.
///
/// # Errors
/// A result that is wrong; anything the driver or the compiler refuses.
pub fn measure_fma(gpu: &Arc<Gpu>, cache: &Cache) -> Result<Rate, DeviceError> {
    let module = load(gpu, cache, &Source::fma())?;
    let blocks = gpu.shape().filling_blocks(MEASURING_BLOCK);
    let threads = blocks as usize * MEASURING_BLOCK as usize;
    let sums = Buffer::zeros(gpu, threads * size_of::<f32>())?;
    let runner = Runner { gpu, module: &module, blocks };
    let (mut address, mut factor, mut summand, mut rounds) = (sums.address, 1.0f32, 1.0f32, CHECKED_FMAS);
    let mut arguments =
        [argument(&mut address), argument(&mut factor), argument(&mut summand), argument(&mut rounds)];
    // SAFETY: `fma_peak` takes an array of a sum a thread, which lives until the last round is over, and three numbers.
    unsafe { runner.once("fma_peak", &mut arguments)? };
    right("fma_peak", sums.wrong(&counted_up())?)?;
    // The values tend to 1: no infinities, no subnormals.
    let (mut factor, mut summand, mut rounds) = (0.5f32, 0.5f32, FMAS);
    let mut arguments =
        [argument(&mut address), argument(&mut factor), argument(&mut summand), argument(&mut rounds)];
    // SAFETY: as above.
    let times = unsafe { runner.times("fma_peak", &mut arguments)? };
    Ok(rate(flops(threads) / 1e12, &times))
}

/// What the sums of a block's threads come to where a value counts its FMAs, from its number on.
fn counted_up() -> Vec<f32> {
    let chains = CHAINS as f32;
    let begins = |thread: f32| chains * thread + chains * (chains - 1.0) / 2.0;
    (0..MEASURING_BLOCK).map(|thread| begins(thread as f32) + chains * CHECKED_FMAS as f32).collect()
}

fn right(kernel: &'static str, wrong: Option<Wrong>) -> Result<(), DeviceError> {
    match wrong {
        None => Ok(()),
        Some(Wrong { place, found, expected }) => {
            Err(DeviceError::WrongResult { kernel, place, found, expected })
        }
    }
}

/// Floating-point operations of one launch of `fma_peak` by so many threads.
fn flops(threads: usize) -> f64 {
    2.0 * f64::from(FMAS) * f64::from(CHAINS) * threads as f64
}

/// Accesses of 16 bytes that fit in each of three arrays of `bytes` in all.
fn quads(bytes: usize) -> Result<usize, DeviceError> {
    match bytes >= LEAST_BYTES {
        true => Ok(bytes / 3 / QUAD),
        false => Err(DeviceError::TooFewBytes { bytes, least: LEAST_BYTES }),
    }
}

fn argument<T>(value: &mut T) -> *mut c_void {
    (value as *mut T).cast()
}

struct Runner<'a> {
    gpu: &'a Arc<Gpu>,
    module: &'a Module,
    blocks: u32,
}

impl Runner<'_> {
    /// Milliseconds of each round, the warm-up's left out.
    ///
    /// # Safety
    /// `arguments` are those of the kernel, and what they point to is there until this returns.
    unsafe fn times(&self, kernel: &str, arguments: &mut [*mut c_void]) -> Result<Vec<f64>, DeviceError> {
        let function: Function = self.module.function(kernel)?;
        let launch = Launch { blocks: self.blocks, threads: MEASURING_BLOCK, stream: std::ptr::null_mut() };
        let watch = Stopwatch::new(self.gpu)?;
        let mut round = || {
            // SAFETY: as the caller promises; the null stream is one of any context. Each round is waited for.
            watch.ms(|| unsafe { self.module.launch(function, launch, arguments) })
        };
        let begin = Instant::now();
        warm_up(|| round().map(|_| ()), || begin.elapsed())?;
        (0..ROUNDS).map(|_| round()).collect()
    }

    /// # Safety
    /// As for `times`.
    unsafe fn once(&self, kernel: &str, arguments: &mut [*mut c_void]) -> Result<(), DeviceError> {
        let function: Function = self.module.function(kernel)?;
        let launch = Launch { blocks: self.blocks, threads: MEASURING_BLOCK, stream: std::ptr::null_mut() };
        // SAFETY: as the caller promises; waited for before this returns.
        Stopwatch::new(self.gpu)?.ms(|| unsafe { self.module.launch(function, launch, arguments) })?;
        Ok(())
    }
}

/// Rounds until the warm-up's time is over: one that is short is no reason to go on with a card that is still asleep.
fn warm_up(
    mut round: impl FnMut() -> Result<(), DeviceError>,
    elapsed: impl Fn() -> Duration,
) -> Result<(), DeviceError> {
    round()?;
    while elapsed() < WARM_UP {
        round()?;
    }
    Ok(())
}

/// So much work a round, over the rounds' times, a second.
fn rate(work: f64, times_ms: &[f64]) -> Rate {
    let rates: Vec<f64> = times_ms.iter().map(|ms| work / (ms / 1e3)).collect();
    let at = |q| quantile(&rates, q).unwrap_or(f64::NAN);
    Rate { median: at(0.5), q1: at(0.25), q3: at(0.75), rounds: rates.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_work_over_time() {
        // 2 GB in 1, 2 and 4 ms.
        let rate = rate(2.0, &[1.0, 2.0, 4.0]);
        assert_eq!((rate.median, rate.q1, rate.q3, rate.rounds), (1000.0, 750.0, 1500.0, 3));
    }

    #[test]
    fn three_arrays_of_whole_accesses_fit_in_the_bytes() {
        assert_eq!(quads(3 << 20).unwrap(), (1 << 20) / 16);
        assert_eq!(quads((3 << 20) + 47).unwrap(), (1 << 20) / 16);
        let error = quads(1000).unwrap_err().to_string();
        assert!(error.contains("1000 bytes") && error.contains("1048576"), "{error}");
    }

    #[test]
    fn short_rounds_warm_up_as_long_as_long_ones() {
        for (round_ms, expected) in [(1, 200), (70, 3), (5000, 1)] {
            let rounds = std::cell::Cell::new(0);
            let round = || {
                rounds.set(rounds.get() + 1);
                Ok(())
            };
            warm_up(round, || Duration::from_millis(rounds.get() * round_ms)).unwrap();
            assert_eq!(rounds.get(), expected, "{round_ms} ms");
        }
    }

    #[test]
    fn what_a_kernel_got_wrong_is_told() {
        assert!(right("copy", None).is_ok());
        let wrong = Wrong { place: 7, found: 1.5, expected: 2.5 };
        let message = right("triad", Some(wrong)).unwrap_err().to_string();
        for words in ["triad", "1.5", "2.5", "place 7"] {
            assert!(message.contains(words), "{words}: {message}");
        }
    }

    #[test]
    fn counted_fmas_are_exact_in_f32() {
        // Thread 2's values begin at 2, 3 … 17, and each counts to 77 more.
        let expected: f32 = (2..18).map(|begin| (begin + 77) as f32).sum();
        assert_eq!((counted_up()[2], counted_up().len()), (expected, 256));
    }

    #[test]
    fn an_fma_is_two_operations() {
        assert_eq!(flops(1), 2.0 * 65536.0 * 16.0);
    }
}
