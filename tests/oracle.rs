//! The same weights and batches through PyTorch, which measures the same model: losses and bytes.
#![cfg(feature = "torch")]

#[path = "common/program.rs"]
mod program;

use program::{Runs, python};
use serde_json::Value;

const SIZE: &str = "--layers 2 --heads 4";

/// Runs both with `flags`, ten steps on one thread (PyTorch's reporter sees no others), and compares.
///
/// Both call the same kernels in the same order; measured, losses are equal to the last bit. 1e-6 leaves room for
/// another CPU's kernels. Bytes are equal: parameters, gradients, states, activations, inputs, and temporaries at
/// the peak. Only in the optimizer PyTorch has a few scalars more (Python's numbers become tensors), which
/// `slack` allows for.
fn agrees(flags: &str, slack: i64) {
    let runs = Runs::new();
    let (init, batches) = (runs.file("init.safetensors"), runs.file("batches.safetensors"));
    let files = format!("--save-init {} --save-batches {}", init.display(), batches.display());
    runs.run(&format!(
        "{SIZE} --width 64 --seq 32 --batch 4 --threads 1 --steps 9 --warmup 1 {files} {flags}"
    ));
    let ours = runs.show("");
    let (init, batches) = (init.to_string_lossy(), batches.to_string_lossy());
    let files = ["--init", &init, "--batches", &batches, "--threads", "1", "--memory"];
    let settings: Vec<&str> = SIZE.split_whitespace().chain(flags.split_whitespace()).collect();
    let theirs = python("tests/python/replay.py", &[&files[..], &settings].concat());
    same_losses(&ours["losses"], &theirs["losses"], flags);
    let (ledger, memory) = (&ours["ledger"], &theirs["memory"]);
    for moment in ["forward_end", "backward_end", "optimizer_end"] {
        assert_eq!(ledger[moment]["total"], memory["live_bytes"][moment], "{flags}: {moment}");
    }
    assert_eq!(ours["step"]["peak_bytes"], memory["peak_bytes"], "{flags}: peak");
    // One for each micro-batch; they do not pile up.
    for activations in memory["activation_bytes"].as_array().unwrap() {
        assert_eq!(&ledger["forward_end"]["activation"], activations, "{flags}: activations");
    }
    let optimizer = [&ledger["peak_optimizer"]["total"], &memory["peaks"]["optimizer"]];
    let [a, b] = optimizer.map(|bytes| bytes.as_i64().unwrap());
    assert!((a..=a + slack).contains(&b), "{flags}: peak of the optimizer {a}, PyTorch's {b}");
    for (moment, row) in ledger.as_object().unwrap() {
        assert_eq!((&row["unattributed"], &row["difference"]), (&0.into(), &0.into()), "{flags}: {moment}");
    }
}

fn same_losses(ours: &Value, theirs: &Value, flags: &str) {
    let (ours, theirs) = (ours.as_array().unwrap(), theirs.as_array().unwrap());
    assert_eq!(ours.len(), theirs.len());
    for (step, (a, b)) in ours.iter().zip(theirs).enumerate() {
        let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
        assert!((a - b).abs() <= 1e-6 * b.abs(), "{flags}: step {step}: {a}, PyTorch's {b}");
    }
}

/// Python's number 1, by which the counters are advanced, as it is and as a tensor.
const SCALARS: i64 = 16;

#[test]
fn gradients_that_outlive_the_step() {
    agrees("--zero-grad zero", SCALARS);
}

#[test]
fn micro_batches() {
    agrees("--accumulate 3 --attention math", SCALARS);
}

#[test]
fn all_parameters_at_once() {
    agrees("--adamw foreach", SCALARS);
}

/// PyTorch's loop keeps the last parameter's denominator until Python binds the name anew: at most a further copy
/// of the largest parameter.
#[test]
fn one_parameter_after_the_other() {
    agrees("--adamw loop", 4 * 256 * 64);
}

#[test]
fn bf16_parameters_with_bf16_states() {
    agrees("--dtype bf16", SCALARS);
}

#[test]
fn bf16_parameters_with_f32_states() {
    agrees("--dtype bf16 --state-dtype f32 --adamw loop", SCALARS);
}

#[test]
fn bf16_parameters_with_master_weights() {
    agrees("--dtype bf16 --master-weights --adamw loop", SCALARS);
}

#[test]
fn autocast() {
    agrees("--dtype amp-bf16", SCALARS);
}

#[test]
fn autocast_with_attention_step_by_step() {
    agrees("--dtype amp-bf16 --attention math --accumulate 2", SCALARS);
}

#[test]
fn every_block_recomputed() {
    agrees("--checkpoint full", SCALARS);
}

#[test]
fn groups_of_blocks_recomputed() {
    agrees("--layers 3 --checkpoint every:2 --attention math --accumulate 2", SCALARS);
}

#[test]
fn attentions_core_recomputed() {
    agrees("--checkpoint selective --attention math", SCALARS);
    agrees("--checkpoint selective", SCALARS);
}

#[test]
fn recomputed_under_autocast() {
    agrees("--checkpoint full --dtype amp-bf16", SCALARS);
}
