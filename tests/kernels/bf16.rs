//! bfloat16 as the kernel rounds to it.

use stepledger::device::{Source, Tiling};

use crate::host::Host;

/// The nearest bfloat16 of a number in f64, ties to even, found without going through f32 and rounding twice. For
/// numbers in the range of normal ones.
pub fn nearest(value: f64) -> u16 {
    const DROPPED: u32 = 52 - 7;
    let bits = value.to_bits();
    let even = (bits >> DROPPED) & 1;
    let rounded = (bits + (1 << (DROPPED - 1)) - 1 + even) >> DROPPED << DROPPED;
    ((f64::from_bits(rounded) as f32).to_bits() >> 16) as u16
}

pub fn widened(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

#[test]
fn rounding_is_to_the_nearest_and_ties_to_even() {
    let host = Host::build("adamw.cpp", &Source::adamw(Tiling::default()).defines());
    // SAFETY: the file declares them so.
    let (rounded, widen) = unsafe {
        let rounded: extern "C" fn(f32) -> u16 = host.function("host_rounded");
        (rounded, host.function::<extern "C" fn(u16) -> f32>("host_widened"))
    };
    // Every bfloat16 is itself, and every NaN stays one.
    for bits in 0..=u16::MAX {
        assert_eq!(widen(bits).to_bits(), widened(bits).to_bits());
        match widened(bits).is_nan() {
            true => assert!(widened(rounded(widened(bits))).is_nan(), "{bits:#x}"),
            false => assert_eq!(rounded(widened(bits)), bits),
        }
    }
    // Around every tie: just below, on it, just above.
    for bits in (0x0080..0x7f7f_u32).chain(0x8080..0xff7f) {
        for low in [0x7fff, 0x8000, 0x8001, 0x1234, 0xfedc] {
            let value = f32::from_bits(bits << 16 | low);
            assert_eq!(rounded(value), nearest(f64::from(value)), "{value:e}");
        }
    }
    // NaNs whose payload lies in the bits that are dropped; what is too large is infinite; subnormals are rounded too.
    for bits in [0x7f80_0001, 0xff80_0001, 0x7fff_ffff] {
        assert!(widened(rounded(f32::from_bits(bits))).is_nan(), "{bits:#x}");
    }
    assert_eq!((rounded(f32::MAX), rounded(f32::MIN)), (0x7f80, 0xff80));
    assert_eq!((rounded(f32::from_bits(0x8000)), rounded(f32::from_bits(0x8001))), (0, 1));
}
