//! Copy, triad and FMA on the host: exact.

use stepledger::device::Source;

use crate::host::Host;

#[repr(C, align(16))]
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Quad([f32; 4]);

type Copy = extern "C" fn(u32, *mut Quad, *const Quad, u64) -> bool;
type Triad = extern "C" fn(u32, *mut Quad, *const Quad, *const Quad, f32, u64) -> bool;
type Fma = extern "C" fn(u32, *mut f32, f32, f32, i32) -> bool;

const THREADS: usize = 256;

fn host() -> Host {
    let flags: Vec<String> = Source::fma().defines();
    assert!(Source::bandwidth().defines().iter().all(|flag| flags.contains(flag)));
    Host::build("measuring.cpp", &flags)
}

fn quads(count: usize, scale: f32) -> Vec<Quad> {
    let quad = |i: usize| Quad([0, 1, 2, 3].map(|j| (4 * i + j) as f32 * scale - 100.0));
    (0..count).map(quad).collect()
}

/// Fewer places than threads, as many, some and many more than one turn of the grid; and what lies behind stays.
const COUNTS: [usize; 6] = [0, 1, 255, 256, 2 * 256 + 3, 10_000];

#[test]
fn copy_copies_and_nothing_else() {
    let host = host();
    // SAFETY: the file declares it so.
    let copy: Copy = unsafe { host.function("host_copy") };
    for count in COUNTS {
        let (from, mut to) = (quads(count + 5, 0.37), vec![Quad::default(); count + 5]);
        assert!(copy(2, to.as_mut_ptr(), from.as_ptr(), count as u64));
        assert_eq!(to[..count], from[..count], "{count}");
        assert_eq!(to[count..], [Quad::default(); 5], "{count}");
    }
}

#[test]
fn triad_adds_the_product_rounded_once() {
    let host = host();
    // SAFETY: the file declares it so.
    let triad: Triad = unsafe { host.function("host_triad") };
    for count in COUNTS {
        let (added, scaled) = (quads(count, 0.37), quads(count, -1.91));
        let mut to = vec![Quad::default(); count + 5];
        assert!(triad(2, to.as_mut_ptr(), added.as_ptr(), scaled.as_ptr(), 3.1, count as u64));
        for i in 0..count {
            // Exact in f64, and rounded once.
            let exact = |j: usize| f64::from(3.1f32) * f64::from(scaled[i].0[j]) + f64::from(added[i].0[j]);
            assert_eq!(to[i], Quad([0, 1, 2, 3].map(|j| exact(j) as f32)), "{count} {i}");
        }
        assert_eq!(to[count..], [Quad::default(); 5], "{count}");
    }
}

/// x → a x + b, n times, is aⁿ x + b (aⁿ − 1) / (a − 1), or x + n b where a is 1.
fn closed_form(x: f64, factor: f64, summand: f64, rounds: i32) -> f64 {
    match factor {
        1.0 => x + f64::from(rounds) * summand,
        _ => factor.powi(rounds) * x + summand * (factor.powi(rounds) - 1.0) / (factor - 1.0),
    }
}

#[test]
fn fmas_come_to_their_closed_form() {
    const CHAINS: usize = 16;
    const BLOCKS: usize = 3;
    let host = host();
    // SAFETY: the file declares it so.
    let fma: Fma = unsafe { host.function("host_fma") };
    // Rounds that fill the unrolled loop, and some that do not.
    for (factor, summand, rounds, tolerance) in [
        (1.0f32, 1.0f32, 64, 0.0),
        (1.0, 3.0, 77, 0.0),
        (-1.0, 2.0, 5, 0.0),
        (0.5, 0.5, 20, 1e-6),
        (0.75, -2.0, 13, 1e-6),
    ] {
        let mut sums = vec![f32::NAN; BLOCKS * THREADS];
        assert!(fma(BLOCKS as u32, sums.as_mut_ptr(), factor, summand, rounds));
        for (thread, &sum) in sums.iter().enumerate() {
            let begin = |chain| (thread % THREADS + chain) as f64;
            let value = |chain| closed_form(begin(chain), f64::from(factor), f64::from(summand), rounds);
            let expected: f64 = (0..CHAINS).map(value).sum();
            let error = (f64::from(sum) - expected).abs();
            assert!(error <= tolerance * expected.abs(), "{factor} {summand} {rounds}: {sum} for {expected}");
        }
    }
}
