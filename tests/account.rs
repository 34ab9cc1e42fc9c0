//! The memory account of models trained through the library, against closed forms.
#![cfg(feature = "torch")]

mod common;

use std::sync::atomic::AtomicBool;

use common::{MemorySink, gpt, turn};
use stepledger::probe::Options;
use stepledger::record::{Category, Detail, LedgerMoment, Moment};
use stepledger::train::{
    AdamWConfig, Attention, CheckpointPolicy, Config, Float, ModelKind, Precision, train,
};

/// Trains, and returns the moments and the peak of the last step.
fn moments(config: &Config) -> (Vec<LedgerMoment>, i64) {
    let sink = MemorySink::default();
    train(config, Options::new("test"), sink.clone(), &mut |_| (), &AtomicBool::new(false)).unwrap();
    let kept = sink.0.borrow();
    for step in &kept.steps {
        assert_eq!((step.step.difference_bytes, step.step.dropped_events), (Some(0), 0));
        for moment in &step.moments {
            assert_eq!(moment.bytes.total(), moment.allocator_bytes, "{config:?} {moment:?}");
            assert_eq!(moment.bytes[Category::Unattributed], 0, "{config:?} {moment:?}");
        }
    }
    let last = kept.steps.last().unwrap();
    (last.moments.clone(), last.step.peak_bytes.unwrap())
}

fn at(moments: &[LedgerMoment], moment: Moment) -> &LedgerMoment {
    moments.iter().find(|row| row.moment == moment).unwrap()
}

/// Fourteen GPTs in each precision: what backward needs of forward, byte for byte, and the step's peak.
fn gpts_equal_the_closed_form(precision: Precision) {
    let _turn = turn();
    let sizes = [
        (1, 16, 1, 8, 1),
        (1, 32, 4, 16, 3),
        (2, 64, 2, 32, 4),
        (3, 48, 3, 7, 5),
        (4, 64, 4, 48, 2),
        (5, 24, 8, 33, 2),
        (2, 96, 6, 100, 1),
    ];
    for attention in [Attention::Sdpa, Attention::Math] {
        for (layers, width, heads, seq, batch) in sizes {
            let config =
                Config { precision, layers, width, heads, seq, batch, attention, threads: 1, ..short() };
            let shape = config.shape();
            let (moments, peak_bytes) = moments(&config);
            let end = at(&moments, Moment::ForwardEnd);
            assert_eq!(end.bytes[Category::Activation], shape.activation_bytes(), "{config:?}");
            assert_eq!(end.bytes[Category::Input], 2 * 8 * batch * seq, "{config:?}");
            let mask = if attention == Attention::Math { seq * seq } else { 0 };
            assert_eq!(end.bytes[Category::Buffer], mask, "{config:?}");
            // The loss alone outlives forward.
            assert_eq!(end.bytes[Category::Workspace], precision.parameter().bytes(), "{config:?}");
            assert_eq!(peak_bytes, shape.peak_bytes(), "{config:?}");
        }
    }
}

/// Each checkpointing policy over eight GPTs, in each precision: what stays for backward, and the peak with the
/// recomputed activations of one segment.
#[test]
fn checkpointed_gpts_equal_the_closed_form() {
    let _turn = turn();
    let sizes = [(3, 32, 4, 16, 3), (4, 64, 2, 32, 2), (2, 48, 3, 7, 5), (5, 24, 8, 33, 1)];
    let policies = [
        CheckpointPolicy::Full,
        CheckpointPolicy::Every(2),
        CheckpointPolicy::Every(3),
        CheckpointPolicy::Selective,
    ];
    for precision in [Precision::F32, Precision::Bf16, Precision::AmpBf16] {
        for attention in [Attention::Sdpa, Attention::Math] {
            for ((layers, width, heads, seq, batch), checkpoint) in
                sizes.into_iter().flat_map(|size| policies.map(|policy| (size, policy)))
            {
                // A group may not have more blocks than there are.
                if checkpoint.group().is_some_and(|blocks| blocks > layers) {
                    continue;
                }
                let threads = 1;
                let config = Config {
                    precision,
                    attention,
                    layers,
                    width,
                    heads,
                    seq,
                    batch,
                    checkpoint,
                    threads,
                    ..short()
                };
                let (moments, peak_bytes) = moments(&config);
                let end = at(&moments, Moment::ForwardEnd);
                assert_eq!(end.bytes[Category::Activation], config.shape().activation_bytes(), "{config:?}");
                assert_eq!(peak_bytes, config.shape().peak_bytes(), "{config:?}");
            }
        }
    }
}

/// Two steps, of which the second has optimizer states from its beginning.
fn short() -> Config {
    Config { steps: 2, warmup: 0, ..gpt() }
}

#[test]
fn gpts_in_f32_equal_the_closed_form() {
    gpts_equal_the_closed_form(Precision::F32);
}

#[test]
fn gpts_in_bf16_equal_the_closed_form() {
    gpts_equal_the_closed_form(Precision::Bf16);
}

#[test]
fn gpts_under_autocast_equal_the_closed_form() {
    gpts_equal_the_closed_form(Precision::AmpBf16);
}

/// Of the activations, what autocast's copies of weights take.
#[test]
fn autocasts_copies_equal_their_closed_form() {
    let _turn = turn();
    let config = Config { precision: Precision::AmpBf16, layers: 2, width: 48, heads: 3, seq: 16, ..short() };
    let sink = MemorySink::default();
    train(&config, Options::new("test"), sink.clone(), &mut |_| (), &AtomicBool::new(false)).unwrap();
    let kept = sink.0.borrow();
    for step in &kept.steps {
        let copies = step.ended.iter().filter(|row| row.detail == Some(Detail::AutocastWeightCopy));
        let bytes: i64 = copies.map(|row| row.bytes).sum();
        assert_eq!(bytes, config.shape().autocast_copy_bytes());
    }
}

#[test]
fn mlps_equal_their_closed_form_too() {
    let _turn = turn();
    for precision in [Precision::F32, Precision::Bf16, Precision::AmpBf16] {
        for (layers, width, seq, batch, checkpoint) in [
            (1, 16, 8, 1, CheckpointPolicy::None),
            (3, 64, 32, 4, CheckpointPolicy::None),
            (6, 40, 17, 3, CheckpointPolicy::None),
            (6, 40, 17, 3, CheckpointPolicy::Full),
            (5, 48, 16, 2, CheckpointPolicy::Every(2)),
            (4, 64, 32, 4, CheckpointPolicy::Every(3)),
        ] {
            let model = ModelKind::Mlp;
            let config =
                Config { model, checkpoint, precision, layers, width, seq, batch, threads: 1, ..short() };
            let (moments, peak_bytes) = moments(&config);
            let end = at(&moments, Moment::ForwardEnd);
            assert_eq!(end.bytes[Category::Activation], config.shape().activation_bytes(), "{config:?}");
            assert_eq!(end.bytes[Category::AdamState], config.shape().adam_state_bytes(), "{config:?}");
            assert_eq!(peak_bytes, config.shape().peak_bytes(), "{config:?}");
        }
    }
}

/// Every type that states and parameters can be kept in.
#[test]
fn states_take_what_their_types_say() {
    let _turn = turn();
    let adamw = AdamWConfig::default();
    for (precision, state_dtype, master_weights, each) in [
        (Precision::F32, None, false, (4, 4, 8)),
        (Precision::AmpBf16, None, false, (4, 4, 8)),
        (Precision::Bf16, None, false, (2, 2, 4)),
        (Precision::Bf16, Some(Float::F32), false, (2, 2, 8)),
        (Precision::Bf16, None, true, (2, 2, 8 + 4)),
    ] {
        let adamw = AdamWConfig { state_dtype, master_weights, ..adamw };
        let config = Config { precision, adamw, layers: 1, width: 32, heads: 2, seq: 8, batch: 2, ..short() };
        let (parameters, variables) = (config.shape().parameters(), config.shape().variables());
        let (moments, _) = moments(&config);
        let end = at(&moments, Moment::OptimizerEnd);
        assert_eq!(end.bytes[Category::Parameter], each.0 * parameters, "{config:?}");
        assert_eq!(end.bytes[Category::Gradient], each.1 * parameters, "{config:?}");
        assert_eq!(end.bytes[Category::AdamState], each.2 * parameters + 4 * variables, "{config:?}");
    }
}

#[test]
fn model_state_is_four_times_four_bytes_a_parameter() {
    let _turn = turn();
    for threads in [1, 2] {
        let config = Config { threads, ..gpt() };
        let (moments, _) = moments(&config);
        let parameters = config.shape().parameters();
        assert_eq!(parameters, 834_304);
        let end = at(&moments, Moment::OptimizerEnd);
        assert_eq!(end.bytes[Category::Parameter], 4 * parameters);
        assert_eq!(end.bytes[Category::Gradient], 4 * parameters);
        // Two states, and a counter for each of 4 + 12 · layers variables.
        assert_eq!(end.bytes[Category::AdamState], 8 * parameters + 4 * (4 + 12 * config.layers));
        assert_eq!(end.bytes[Category::Activation], 0);
    }
}
