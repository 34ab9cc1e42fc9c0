//! What else could be run under a limit: single changes of a configuration, and the peaks they come to.

use serde::Serialize;

use super::choices::{AdamWKind, Attention, Checkpoint, Precision};
use super::shape::{Architecture, Shape};

/// One change of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Alternative {
    /// The flags of `stepledger run` that make it.
    pub flags: String,
    /// The step's highest total then, in theory.
    pub theory_peak_bytes: i64,
    pub fits: bool,
    /// What it costs.
    pub price: &'static str,
}

/// No batch has so many: a sequence takes its tokens' 16 bytes a position at least.
const MOST_SEQUENCES: i64 = 1 << 40;

type Change = (String, Shape, &'static str);

impl Shape {
    /// What could be changed so that a step's peak stays within `limit_bytes`: the largest batch that fits; the
    /// fewest micro-batches for the same tokens a step; recomputation, where there is none; half precision; AdamW
    /// without temporaries. Those that do not suffice are told too, with the peak that they come to; a batch or a
    /// number of micro-batches only where there is one.
    pub fn alternatives(&self, limit_bytes: i64) -> Vec<Alternative> {
        let smaller = self
            .largest_batch(limit_bytes)
            .map(|shape| (format!("--batch {}", shape.batch), shape, "fewer tokens a step"));
        let micro = self.fewest_micro_batches(limit_bytes).map(|shape| {
            let flags = format!("--batch {} --accumulate {}", shape.batch, shape.training.accumulate);
            (flags, shape, "the same tokens a step, in more and smaller kernels")
        });
        let sizes = smaller.into_iter().chain(micro);
        let all = sizes.chain(self.recomputations()).chain(self.half_precisions()).chain(self.fused());
        let told = |(flags, shape, price): Change| {
            let theory_peak_bytes = shape.peak_bytes();
            Alternative { flags, theory_peak_bytes, fits: theory_peak_bytes <= limit_bytes, price }
        };
        all.map(told).collect()
    }

    fn recomputations(&self) -> impl Iterator<Item = Change> + '_ {
        let core = matches!(self.architecture, Architecture::Gpt { attention: Attention::Math, .. });
        let ways = [
            (true, Checkpoint::Full, "most of forward once more: up to a third more time"),
            (core, Checkpoint::Selective, "attention's core once more"),
        ];
        let possible = ways.into_iter().filter(|way| way.0 && self.checkpoint == Checkpoint::None);
        possible.map(|(_, checkpoint, price)| {
            (format!("--checkpoint {checkpoint}"), Shape { checkpoint, ..*self }, price)
        })
    }

    fn half_precisions(&self) -> impl Iterator<Item = Change> + '_ {
        let ways = [
            (Precision::AmpBf16, "products in 8 bits of mantissa"),
            (Precision::Bf16, "everything in 8 bits of mantissa, parameters and states too"),
        ];
        let possible = ways
            .into_iter()
            .filter(|(precision, _)| *precision != self.precision && self.precision != Precision::Bf16);
        possible
            .map(|(precision, price)| (format!("--dtype {precision}"), Shape { precision, ..*self }, price))
    }

    fn fused(&self) -> Option<Change> {
        let mut shape = *self;
        shape.training.adamw = AdamWKind::Fused;
        let price = "the same formula, other last digits";
        let saves = shape.optimizer_temporary_bytes() < self.optimizer_temporary_bytes();
        saves.then(|| ("--adamw fused".to_owned(), shape, price))
    }

    /// The largest batch, of any size, whose peak stays within the limit; `None` where not even one sequence fits.
    pub fn largest_batch_within(&self, limit_bytes: i64) -> Option<i64> {
        let beyond = Shape { batch: MOST_SEQUENCES, ..*self };
        beyond.largest_batch(limit_bytes).map(|shape| shape.batch)
    }

    /// The largest batch below this one whose peak stays within the limit.
    fn largest_batch(&self, limit_bytes: i64) -> Option<Shape> {
        let fits = |batch: i64| Shape { batch, ..*self }.peak_bytes() <= limit_bytes;
        // A larger batch never has a lower peak.
        let (mut fitting, mut failing) = (0, self.batch);
        while failing - fitting > 1 {
            let middle = fitting + (failing - fitting) / 2;
            if fits(middle) { fitting = middle } else { failing = middle }
        }
        (fitting > 0).then_some(Shape { batch: fitting, ..*self })
    }

    /// The same sequences a step, in micro-batches as large as fit.
    fn fewest_micro_batches(&self, limit_bytes: i64) -> Option<Shape> {
        let split = |parts: i64| {
            let mut shape = Shape { batch: self.batch / parts, ..*self };
            shape.training.accumulate = self.training.accumulate.saturating_mul(parts);
            shape
        };
        let parts = (2..=self.batch).filter(|parts| self.batch % parts == 0);
        parts.map(split).find(|shape| shape.peak_bytes() <= limit_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::shape::tests::{GPT, shape};

    #[test]
    fn what_fits_is_said_with_its_peak() {
        let gpt = shape(GPT, r#""batch":64"#).unwrap();
        let limit = 64 << 20;
        assert!(gpt.peak_bytes() > limit);
        let alternatives = gpt.alternatives(limit);
        let flags: Vec<_> = alternatives.iter().map(|other| (other.flags.as_str(), other.fits)).collect();
        let expected = [
            ("--batch 24", true),
            ("--batch 16 --accumulate 4", true),
            ("--checkpoint full", true),
            ("--dtype amp-bf16", false),
            ("--dtype bf16", false),
        ];
        assert_eq!(flags, expected, "{alternatives:#?}");
        // The next larger batch would not do.
        assert!(shape(GPT, r#""batch":25"#).unwrap().peak_bytes() > limit);
    }

    #[test]
    fn the_largest_batch_does_not_depend_on_the_one_asked_from() {
        let limit = 64 << 20;
        for batch in [r#""batch":1"#, r#""batch":8"#, r#""batch":4096"#] {
            assert_eq!(shape(GPT, batch).unwrap().largest_batch_within(limit), Some(24));
        }
        assert_eq!(shape(GPT, "").unwrap().largest_batch_within(1 << 20), None);
    }

    #[test]
    fn where_nothing_helps_there_is_no_batch() {
        let alternatives = shape(GPT, "").unwrap().alternatives(1 << 20);
        assert!(alternatives.iter().all(|other| !other.fits && !other.flags.starts_with("--batch")));
    }

    #[test]
    fn another_adamw_is_an_alternative_where_it_takes_less() {
        for (adamw, offered) in [("fused", false), ("foreach", true), ("loop", true), ("kernel", false)] {
            let alternatives = shape(GPT, &format!(r#""adamw":"{adamw}""#)).unwrap().alternatives(1 << 20);
            assert_eq!(alternatives.iter().any(|other| other.flags == "--adamw fused"), offered, "{adamw}");
        }
    }

    #[test]
    fn what_is_computed_again_already_is_no_alternative() {
        let checkpoints = |further: &str| -> Vec<String> {
            let math = GPT.replace("sdpa", "math");
            let alternatives = shape(&math, further).unwrap().alternatives(1 << 20).into_iter();
            alternatives.map(|other| other.flags).filter(|flags| flags.starts_with("--checkpoint")).collect()
        };
        assert_eq!(checkpoints(""), ["--checkpoint full", "--checkpoint selective"]);
        assert_eq!(checkpoints(r#""model":"mlp""#), ["--checkpoint full"]);
        assert!(checkpoints(r#""checkpoint":"selective""#).is_empty());
    }
}
