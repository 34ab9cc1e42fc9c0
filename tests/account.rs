//! The memory account of models trained through the library, against closed forms.
#![cfg(feature = "torch")]

mod common;

use std::sync::atomic::AtomicBool;

use common::{MemorySink, gpt, turn};
use stepledger::probe::Options;
use stepledger::record::{Category, LedgerMoment, Moment};
use stepledger::train::{Attention, Config, ModelKind, train};

/// Trains, and returns the moments of the last step.
fn moments(config: &Config) -> Vec<LedgerMoment> {
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
    kept.steps.last().unwrap().moments.clone()
}

fn at(moments: &[LedgerMoment], moment: Moment) -> &LedgerMoment {
    moments.iter().find(|row| row.moment == moment).unwrap()
}

#[test]
fn activations_at_the_end_of_forward_equal_the_closed_form() {
    let _turn = turn();
    let sizes = [
        (1, 16, 1, 8, 1),
        (1, 32, 4, 16, 3),
        (2, 64, 2, 32, 4),
        (3, 48, 3, 7, 5),
        (4, 128, 4, 64, 8),
        (5, 24, 8, 33, 2),
        (2, 96, 6, 100, 1),
    ];
    for attention in [Attention::Sdpa, Attention::Math] {
        for (layers, width, heads, seq, batch) in sizes {
            let config = Config { layers, width, heads, seq, batch, attention, steps: 2, warmup: 0, ..gpt() };
            let moments = moments(&config);
            let end = at(&moments, Moment::ForwardEnd);
            assert_eq!(end.bytes[Category::Activation], config.shape().activation_bytes(), "{config:?}");
            assert_eq!(end.bytes[Category::Input], 2 * 8 * batch * seq, "{config:?}");
            let mask = if attention == Attention::Math { seq * seq } else { 0 };
            assert_eq!(end.bytes[Category::Buffer], mask, "{config:?}");
            // The loss alone outlives forward.
            assert_eq!(end.bytes[Category::Workspace], 4, "{config:?}");
        }
    }
}

#[test]
fn the_mlps_activations_equal_their_closed_form_too() {
    let _turn = turn();
    for (layers, width, seq, batch) in [(1, 16, 8, 1), (3, 64, 32, 4), (6, 40, 17, 3)] {
        let config =
            Config { model: ModelKind::Mlp, layers, width, seq, batch, steps: 2, warmup: 0, ..gpt() };
        let moments = moments(&config);
        let end = at(&moments, Moment::ForwardEnd);
        assert_eq!(end.bytes[Category::Activation], config.shape().activation_bytes(), "{config:?}");
        assert_eq!(end.bytes[Category::AdamState], config.shape().adam_state_bytes(), "{config:?}");
    }
}

#[test]
fn model_state_is_four_times_four_bytes_a_parameter() {
    let _turn = turn();
    for threads in [1, 2] {
        let config = Config { threads, ..gpt() };
        let moments = moments(&config);
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
