//! Predictions against runs of the real program that no fit has seen.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Runs, outcome, plan, policy};

const MODEL: &str = "--layers 3 --width 32 --threads 1";
const POLICIES: [&str; 3] = ["none", "full", "every:2"];
const SEQUENCES: [i64; 2] = [16, 48];
/// The peak moves to another place of the step up to four times between them, depending on the policy.
const FITTED: [i64; 6] = [1, 3, 8, 12, 16, 24];
const HELD_OUT: [i64; 4] = [5, 11, 20, 48];

/// Runs one cell; returns its account.
fn run(runs: &Runs, policy: &str, seq: i64, batch: i64) -> Value {
    let flags =
        format!("{MODEL} --steps 1 --warmup 2 --checkpoint {policy} --seq {seq} --batch {batch} --json");
    let output = runs.run(&flags);
    serde_json::from_slice(&output.stdout).unwrap()
}

fn peak(account: &Value) -> i64 {
    account["step"]["peak_bytes"].as_i64().unwrap()
}

#[test]
fn peaks_of_cells_outside_the_fit_are_predicted_within_one_percent() {
    let (fitted, held_out) = (Runs::new(), Runs::new());
    let (mut worst, mut cells, mut kinks) = (0.0_f64, 0, BTreeSet::new());
    for seq in SEQUENCES {
        for word in POLICIES {
            FITTED.iter().for_each(|&batch| drop(run(&fitted, word, seq, batch)));
        }
    }
    for (seq, word) in SEQUENCES.iter().flat_map(|&seq| POLICIES.map(|word| (seq, word))) {
        for batch in HELD_OUT {
            let measured = peak(&run(&held_out, word, seq, batch));
            // A little more than it takes is given, so that this batch is the largest that fits.
            let capacity = 1.006 * measured as f64 / f64::from(1 << 20);
            let answer = plan(&fitted, &format!("--capacity-mb {capacity} --from runs --seq {seq}"));
            let planned = policy(&answer, word);
            let cell = format!("{word}, seq {seq}, batch {batch}, {measured} bytes: {planned}");
            let predicted = planned["predicted_peak_bytes"].as_i64().unwrap();
            assert_eq!((&planned["source"], &planned["max_batch"]), (&"fit".into(), &batch.into()), "{cell}");
            worst = worst.max((predicted - measured).abs() as f64 / measured as f64);
            let theory = planned["theory_peak_bytes"].as_i64().unwrap();
            assert!((theory - measured).abs() * 100 <= measured, "{cell}");
            kinks.extend(planned["fit"]["kink_above_batch"].as_i64());
            cells += 1;
        }
    }
    assert_eq!(kinks, BTreeSet::from([3, 8, 12]), "they are met");
    assert!(cells == 24 && worst <= 0.01, "{cells} cells, the worst {:.3} % off", 100.0 * worst);
}

#[test]
fn the_setting_planned_for_is_the_one_that_a_run_records() {
    let runs = Runs::new();
    let flags = "--layers 2 --width 32 --seq 16 --threads 1 --dtype bf16 --master-weights --lr 0.01";
    let output = runs.run(&format!("{flags} --steps 1 --warmup 0 --json"));
    let account: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut recorded = account["config"].as_object().unwrap().clone();
    // Not the model's, but what its weights were read from.
    recorded.remove("init");
    let planned = plan(&runs, &format!("{flags} --steps 1 --warmup 0 --capacity-mb 64"));
    assert_eq!(planned["config"], Value::Object(recorded));
}

#[test]
fn a_plan_that_is_verified_holds_and_the_next_batch_does_not_fit() {
    let runs = Runs::new();
    let answer = plan(&runs, "--layers 2 --width 32 --seq 32 --threads 1 --capacity-mb 4 --verify");
    let verified = answer["verified"].as_array().unwrap();
    let [chosen, next] = &verified[..] else { panic!("{verified:?}") };
    assert_eq!((&chosen["batch"], &chosen["status"]), (&answer["best"]["batch"], &"complete".into()));
    assert!(chosen["fits"] == true && chosen["agrees"] == true, "{chosen}");
    assert!(chosen["peak_error_pct"].as_f64().unwrap().abs() <= 1.0, "{chosen}");
    assert_eq!((&next["status"], &next["agrees"]), (&"out_of_memory".into(), &true.into()));
    assert_eq!(next["batch"].as_i64(), chosen["batch"].as_i64().map(|batch| batch + 1));
    // Both are kept, to be looked at.
    assert!(runs.file("runs").join(next["run"].as_str().unwrap()).join("run.parquet").exists());
}

#[test]
fn where_nothing_fits_verifying_tries_one_sequence() {
    let runs = Runs::new();
    let flags = "--layers 2 --width 32 --seq 32 --threads 1 --capacity-mb 0.5 --verify";
    let (code, text, errors) = outcome(&runs, flags);
    assert_eq!(code, Some(1), "{errors}");
    for part in
        ["Nothing fits", "predicted not to fit", "measured: out_of_memory", "It did not fit, as predicted."]
    {
        assert!(text.contains(part), "{part}:\n{text}");
    }
}
