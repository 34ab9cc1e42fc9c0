//! What else could be run under a limit: single changes of a configuration, and the peaks they come to.

use serde::Serialize;

use super::choices::{AdamWKind, Attention, Checkpoint, Float, Precision, ZeroGrad};
use super::setup::MAX_BATCH;
use super::shape::{Architecture, Shape};

/// One change of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Alternative {
    /// The flags of `stepledger run` that make it, or `without` the one to leave out.
    pub flags: String,
    /// The step's highest total then, in theory.
    pub theory_peak_bytes: i64,
    pub fits: bool,
    /// What it costs.
    pub price: &'static str,
}

type Change = (String, Shape, &'static str);

impl Shape {
    /// What could be changed so that a step's peak stays within `limit_bytes`, the model being the same: the largest
    /// batch that fits; the fewest micro-batches for the same tokens a step; freeing the gradients; recomputation, in
    /// whatever segments take least; attention in one kernel; half precision; smaller states; AdamW without temporaries.
    /// Each that takes less than the run itself is told with the peak that it comes to, those that fit first; a batch
    /// or a number of micro-batches only where there is one that does.
    pub fn alternatives(&self, limit_bytes: i64) -> Vec<Alternative> {
        let smaller = self
            .largest_batch(limit_bytes)
            .map(|shape| (format!("--batch {}", shape.batch), shape, "fewer tokens a step"));
        let micro = self.fewest_micro_batches(limit_bytes).map(|shape| {
            let flags = format!("--batch {} --accumulate {}", shape.batch, shape.training.accumulate);
            (flags, shape, "the same tokens a step, in more and smaller kernels")
        });
        let sizes = smaller.into_iter().chain(micro);
        let all = sizes
            .chain(self.freed_gradients())
            .chain(self.recomputations())
            .chain(self.one_kernel())
            .chain(self.half_precisions())
            .chain(self.smaller_states())
            .chain(self.fused());
        let told = |(flags, shape, price): Change| {
            let theory_peak_bytes = shape.peak_bytes();
            Alternative { flags, theory_peak_bytes, fits: theory_peak_bytes <= limit_bytes, price }
        };
        let now = self.peak_bytes();
        let mut smaller: Vec<_> = all.map(told).filter(|other| other.theory_peak_bytes < now).collect();
        smaller.sort_by_key(|other| !other.fits);
        smaller
    }

    fn freed_gradients(&self) -> Option<Change> {
        let mut shape = *self;
        shape.training.zero_grad = ZeroGrad::None;
        (shape != *self).then(|| ("--zero-grad none".to_owned(), shape, "none: backward makes them anew"))
    }

    fn recomputations(&self) -> impl Iterator<Item = Change> + '_ {
        let most = match self.checkpoint.group() {
            Some(_) => "about as much once more as now",
            None => "most of forward once more: up to a third more time",
        };
        let core = matches!(self.architecture, Architecture::Gpt { attention: Attention::Math, .. });
        let ways = [
            Some((Checkpoint::Full, most)),
            self.best_group().map(|group| (group, most)),
            core.then_some((Checkpoint::Selective, "attention's core once more")),
        ];
        ways.into_iter().flatten().map(|(checkpoint, price)| {
            (format!("--checkpoint {checkpoint}"), Shape { checkpoint, ..*self }, price)
        })
    }

    /// The groups of blocks that have the lowest peak, if it is lower than that of single blocks.
    fn best_group(&self) -> Option<Checkpoint> {
        let peak = |checkpoint: &Checkpoint| Shape { checkpoint: *checkpoint, ..*self }.peak_bytes();
        let best = (2..=self.layers).map(Checkpoint::Every).min_by_key(peak)?;
        (peak(&best) < peak(&Checkpoint::Full)).then_some(best)
    }

    fn one_kernel(&self) -> Option<Change> {
        let Architecture::Gpt { heads, attention: Attention::Math } = self.architecture else { return None };
        let architecture = Architecture::Gpt { heads, attention: Attention::Sdpa };
        let shape = Shape { architecture, ..*self };
        Some(("--attention sdpa".to_owned(), shape, "the same formula, other last digits"))
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

    /// What half precision keeps in f32 beside its parameters.
    fn smaller_states(&self) -> Option<Change> {
        if self.precision != Precision::Bf16 {
            return None;
        }
        let mut shape = *self;
        if self.training.master_weights {
            shape.training.master_weights = false;
            let price = "updates in 8 bits of mantissa: small ones are lost";
            return Some(("without --master-weights".to_owned(), shape, price));
        }
        shape.training.state = Some(Float::Bf16);
        Some(("--state-dtype bf16".to_owned(), shape, "states in 8 bits of mantissa"))
    }

    fn fused(&self) -> Option<Change> {
        let mut shape = *self;
        shape.training.adamw = AdamWKind::Fused;
        let price = "the same formula, other last digits";
        // The kernel of our own is for GPUs, and takes nothing.
        (self.training.adamw != AdamWKind::Kernel).then(|| ("--adamw fused".to_owned(), shape, price))
    }

    /// The largest batch that a run takes, up to [`MAX_BATCH`], whose peak stays within the limit; `None` where not even
    /// one sequence fits.
    pub fn largest_batch_within(&self, limit_bytes: i64) -> Option<i64> {
        let beyond = Shape { batch: MAX_BATCH + 1, ..*self };
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
        // So few positions that the optimizer is where the step is highest, but for the batch of 8.
        let small = r#""batch":1,"seq":8,"#;
        for (small, adamw, offered) in [
            (small, "fused", false),
            (small, "foreach", true),
            (small, "loop", true),
            (small, "kernel", false),
            ("", "foreach", false),
        ] {
            let shape = shape(GPT, &format!(r#"{small}"adamw":"{adamw}""#)).unwrap();
            let alternatives = shape.alternatives(1 << 20);
            assert_eq!(alternatives.iter().any(|other| other.flags == "--adamw fused"), offered, "{adamw}");
        }
    }

    /// What is offered to a run of `config`, and whether it fits.
    fn offered(config: &str, further: &str, limit: i64) -> Vec<(String, bool)> {
        let run = shape(config, further).unwrap();
        let alternatives = run.alternatives(limit);
        assert!(alternatives.iter().all(|other| other.theory_peak_bytes < run.peak_bytes()));
        assert!(alternatives.is_sorted_by_key(|other| !other.fits), "{alternatives:?}");
        alternatives.into_iter().map(|other| (other.flags, other.fits)).collect()
    }

    #[test]
    fn every_choice_that_the_theory_knows_is_offered_where_it_takes_less() {
        const MIB: i64 = 1 << 20;
        let deep = r#""model":"mlp","layers":8,"width":128,"seq":512,"batch":1"#;
        for (further, limit, expected) in [
            (r#""dtype":"bf16","master_weights":true,"batch":1"#, 12 * MIB, "without --master-weights"),
            (r#""dtype":"bf16","state_dtype":"f32","batch":1"#, 8 * MIB, "--state-dtype bf16"),
            (r#""zero_grad":"zero""#, 29 * MIB, "--zero-grad none"),
            (r#""attention":"math","seq":256"#, 200 * MIB, "--attention sdpa"),
            (deep, 11 * MIB / 2, "--checkpoint every:3"),
            (r#""batch":32,"checkpoint":"every:4""#, 40 * MIB, "--checkpoint full"),
        ] {
            let offered = offered(GPT, further, limit);
            assert!(offered.contains(&(expected.to_owned(), true)), "{further}: {offered:?}");
        }
        // Gradients that another micro-batch adds to cannot be freed.
        let accumulated = offered(GPT, r#""zero_grad":"zero","accumulate":2"#, MIB);
        assert!(accumulated.iter().all(|(flags, _)| flags != "--zero-grad none"), "{accumulated:?}");
    }

    #[test]
    fn of_the_policies_those_are_offered_that_take_less_than_the_one_that_is_set() {
        let checkpoints = |config: &str, further: &str| -> Vec<String> {
            let flags = offered(config, further, 1 << 20).into_iter().map(|(flags, _)| flags);
            flags.filter(|flags| flags.starts_with("--checkpoint")).collect()
        };
        let math = GPT.replace("sdpa", "math");
        assert_eq!(checkpoints(&math, ""), ["--checkpoint full", "--checkpoint selective"]);
        assert_eq!(checkpoints(&math, r#""checkpoint":"selective""#), ["--checkpoint full"]);
        assert_eq!(checkpoints(GPT, r#""checkpoint":"every:2""#), ["--checkpoint full"]);
        assert!(checkpoints(GPT, r#""checkpoint":"full""#).is_empty());
        let mlp = r#""model":"mlp","seq":512,"layers":8"#;
        assert_eq!(checkpoints(GPT, mlp), ["--checkpoint full", "--checkpoint every:3"]);
    }
}
