//! Plans from theory and from made-up runs, and what is refused.

use std::fs;
use std::path::Path;

use stepledger::record::{DeviceRates, Machine, MeasuredRate, RunStatus};
use stepledger::store::Calibrations;

use super::made_up::MadeUp;
use super::{Runs, outcome, plan, policy};

/// Made-up runs have steps of as many ms, and peaks of three times as many MiB, as their batch.
fn made_up(batches: &[(&'static str, i64)]) -> Runs {
    let runs = Runs::new();
    for &(id, batch) in batches {
        MadeUp::new(id, 0, batch).write(&runs.file("runs"));
    }
    runs
}

#[test]
fn theory_alone_tells_what_fits_and_what_the_ranking_rests_on() {
    let runs = Runs::new();
    let answer = plan(&runs, "--capacity-mb 64");
    assert_eq!(answer["capacity_bytes"], 64 << 20);
    let none = policy(&answer, "none");
    assert_eq!(
        (&none["max_batch"], &none["source"], &none["predicted_tokens_per_s"]),
        (&24.into(), &"theory".into(), &serde_json::Value::Null)
    );
    assert_eq!((&answer["best"]["checkpoint"], &answer["best"]["batch"]), (&"none".into(), &24.into()));
    assert_eq!(answer["ranked_by"], "compute_per_token");
    assert_eq!(answer["placement"]["for_memory"]["blocks"], 1);
    assert_eq!(answer["verified"], serde_json::json!([]));
    let (_, text, _) = outcome(&runs, "--capacity-mb 64");
    for part in [
        "Best: batch 24 with checkpoint none",
        "Runner-up: selective; it fits",
        "rests on matrix products",
        "√L would be 2",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let (_, text, _) = outcome(&runs, "");
    let answer = plan(&runs, "");
    let whose = match answer["capacity_from"].as_str() {
        Some("available") => "what this machine has available now",
        Some("cgroup") => "what a cgroup leaves",
        other => panic!("{other:?}"),
    };
    assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(whose), "{text}");
    assert!(text.contains("Warning: "), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn the_batch_is_not_offered_for_it_is_what_is_planned() {
    let (_, help, _) = outcome(&Runs::new(), "--help");
    assert!(help.contains("--accumulate") && !help.contains("--batch <"), "{help}");
}

#[test]
fn a_policy_that_is_asked_for_is_the_only_one() {
    let answer = plan(&Runs::new(), "--capacity-mb 64 --checkpoint full --dtype bf16 --threads 1");
    assert_eq!(answer["policies"].as_array().unwrap().len(), 1);
    let batch = &policy(&answer, "full")["max_batch"];
    let command = format!("stepledger run --batch {batch} --checkpoint full --dtype bf16 --threads 1");
    assert_eq!(answer["best"]["command"], command);
    let kernel = plan(&Runs::new(), "--capacity-mb 64 --device cuda --adamw kernel --block-size 512");
    let command = kernel["best"]["command"].as_str().unwrap();
    assert!(command.contains("--adamw kernel") && command.contains("--block-size 512"), "{command}");
}

/// A command that is copied, and a run of --verify, may begin in another folder.
#[test]
fn a_file_is_named_from_the_root() {
    let runs = Runs::new();
    let answer = plan(&runs, "--capacity-mb 64 --data book.txt");
    let file = runs.path().canonicalize().unwrap().join("book.txt");
    assert_eq!(answer["config"]["data"], file.to_str().unwrap());
    assert!(answer["best"]["command"].as_str().unwrap().ends_with(&format!("--data {}", file.display())));
}

#[test]
fn measured_runs_of_any_program_make_a_plan() {
    let runs = made_up(&[("a", 1), ("b", 2), ("c", 4)]);
    let answer = plan(&runs, "--capacity-mb 48 --from runs");
    let none = policy(&answer, "none");
    assert_eq!(
        (&none["max_batch"], &none["source"], &none["extrapolates"]),
        (&16.into(), &"fit".into(), &"strongly".into())
    );
    assert_eq!(
        (&none["predicted_peak_bytes"], &none["peak_interval_bytes"]),
        (&(48 << 20).into(), &serde_json::json!([48 << 20, 48 << 20]))
    );
    assert!((none["predicted_step_ms"].as_f64().unwrap() - 16.0).abs() < 1e-9);
    assert!((none["predicted_tokens_per_s"].as_f64().unwrap() - 10_000.0).abs() < 1e-6);
    assert_eq!(none["fit"]["batches"], serde_json::json!([1, 2, 4]));
    let (_, text, _) = outcome(&runs, "--capacity-mb 48 --from runs/a runs/b runs/c");
    assert!(
        text.contains("none, batch 16: peak without scatter in these runs (a kink is not excluded)")
            && text.contains("10,000 to 10,000 tokens/s")
            && text.contains("far off"),
        "{text}"
    );
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let (_, text, _) = outcome(&runs, "--capacity-mb 9 --from runs");
    assert!(text.contains("none, batch 3: peak exact") && text.contains("within"), "{text}");
}

#[test]
fn what_is_planned_for_is_the_memory_of_the_runs_that_are_used() {
    let far = |id, batch| MadeUp {
        workers: 0,
        host: Some("far"),
        memory_gib: Some(64),
        ..MadeUp::new(id, batch, batch)
    };
    // By its id this one comes first, and it takes no part.
    for other in [
        MadeUp { status: RunStatus::Interrupted, host: Some("farther"), ..far("a", 1) },
        MadeUp { device: "cuda:0", ..far("a", 1) },
    ] {
        let runs = Runs::new();
        for run in [MadeUp { memory_gib: Some(1024), ..other }, far("b", 2), far("c", 4)] {
            run.write(&runs.file("runs"));
        }
        let answer = plan(&runs, "--device cpu --from runs");
        assert_eq!(
            (&answer["capacity_bytes"], &answer["capacity_from"], &answer["not_used"][0]["run"]),
            (&(64_i64 << 30).into(), &"machine".into(), &"a".into())
        );
    }
}

#[test]
fn runs_of_one_id_in_several_folders_are_all_used_and_copies_are_named() {
    let runs = Runs::new();
    for (minute, batch, folder) in [(0, 2, "o2"), (1, 4, "o4"), (1, 4, "copied")] {
        MadeUp { workers: 0, ..MadeUp::new("same", minute, batch) }.write(&runs.file(folder));
    }
    // A folder that is named twice is none of a copy.
    let answer = plan(&runs, "--capacity-mb 48 --from o2 o4 ./o4 o4/same");
    assert_eq!(policy(&answer, "none")["fit"]["batches"], serde_json::json!([2, 4]));
    assert_eq!(
        (&policy(&answer, "none")["max_batch"], &answer["not_used"]),
        (&16.into(), &serde_json::json!([]))
    );
    let answer = plan(&runs, "--capacity-mb 48 --from o2 o4 copied");
    assert_eq!(policy(&answer, "none")["fit"]["runs"], 2);
    let why = answer["not_used"][0]["why"].as_str().unwrap();
    assert!(why.contains("a copy of run same"), "{why}");
}

#[test]
fn what_a_device_was_measured_to_do_bounds_what_was_not_measured() {
    let runs = Runs::new();
    calibrate(&runs.file("home"), 0.1);
    let answer = plan(&runs, "--capacity-mb 64 --threads 3");
    let none = policy(&answer, "none");
    let rate = &none["theory_tokens_per_s"];
    assert!(rate.as_f64().unwrap() > 1e3 && none["predicted_tokens_per_s"].is_null(), "{none}");
    assert_eq!(
        (&answer["products_at_most"]["source"], &answer["products_at_most"]["tflop_s"]),
        (&"calibrated".into(), &0.1.into())
    );
    assert_eq!(
        (&answer["best"]["theory_tokens_per_s"], &answer["ranked_by"]),
        (rate, &"compute_per_token".into())
    );
    let (_, text, _) = outcome(&runs, "--capacity-mb 64 --threads 3");
    for part in ["tokens/s, theory", "alone, at 100.0", "tokens/s in theory"] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    // With another number of threads the CPU does something else.
    let (_, text, _) = outcome(&runs, "--capacity-mb 64 --threads 2");
    assert!(!text.contains("tokens/s, theory") && text.contains("stepledger calibrate"), "{text}");
}

/// Leaves what `stepledger calibrate --threads 3` would: so many TFLOP/s in f32.
fn calibrate(home: &Path, tflop_s: f64) {
    let rate = |median| MeasuredRate { median, q1: median, q3: median, rounds: 5 };
    let rates = DeviceRates {
        device: "cpu".to_owned(),
        card: None,
        threads: Some(3),
        measured_at: Default::default(),
        stepledger: "0.1.0".to_owned(),
        torch: "2.11.0".to_owned(),
        array_bytes: None,
        caches_bytes: None,
        copy_gb_s: rate(20.0),
        triad_gb_s: rate(20.0),
        matmul_f32_tflop_s: rate(tflop_s),
        matmul_bf16_tflop_s: rate(tflop_s),
        matmul_f32_rows: Some(1024),
        matmul_bf16_rows: Some(1024),
        fma_f32_tflop_s: None,
    };
    Calibrations::change(home, |known| known.of_mut(&this_machine()).keep(rates)).unwrap();
}

fn this_machine() -> Machine {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_owned();
    let facts = fs::read_to_string("/proc/cpuinfo").unwrap();
    let cpu = facts.lines().find(|line| line.starts_with("model name")).unwrap().split_once(':').unwrap().1;
    let logical_cpus = Machine::processors_in(&facts).unwrap();
    Machine {
        host: Some(host),
        cpu: Some(cpu.trim().to_owned()),
        logical_cpus: Some(logical_cpus),
        ..Machine::default()
    }
}

#[test]
fn runs_that_cannot_be_used_are_named_with_the_reason() {
    let runs = made_up(&[("a", 1), ("b", 2), ("damaged", 4)]);
    MadeUp { status: RunStatus::OutOfMemory, ..MadeUp::new("oom", 0, 64) }.write(&runs.file("runs"));
    MadeUp { steps: 0, ..MadeUp::new("no-steps", 0, 3) }.write(&runs.file("runs"));
    fs::write(runs.file("runs/damaged/run.parquet"), "PAR1").unwrap();
    let answer = plan(&runs, "--capacity-mb 48 --from runs");
    let told = answer["not_used"].to_string();
    for part in ["out_of_memory", "no measured step", "runs/damaged"] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn what_cannot_be_planned_is_refused_with_the_way_out() {
    let runs = made_up(&[("a", 1)]);
    fs::create_dir(runs.file("empty")).unwrap();
    for (flags, parts) in [
        ("--capacity-mb 0", &["allowed: any number above 0"][..]),
        ("--capacity-mb -5", &["allowed: any number above 0"]),
        ("--capacity-mb 1", &["parameters alone take (3,337,216)", "floor", "13 MiB"]),
        ("--capacity-mb 64 --batch 8", &["--batch is what `plan` finds"]),
        ("--capacity-mb 64 --dropout 0.1", &["without dropout", "--from"]),
        ("--capacity-mb 64 --model mlp --heads 4", &["--heads 4: the MLP has no attention"]),
        ("--device cuda", &["memory of cuda", "--capacity-mb"]),
        ("--capacity-mb 64 --checkpoint every:9", &["--checkpoint every:9: allowed: every:1 to every:4"]),
        ("--capacity-mb 64 --from nowhere", &["nowhere"]),
        ("--capacity-mb 64 --from empty", &["no run in empty", "another folder with --from"]),
        ("--capacity-mb 64 --from runs", &["made_up again, with batch 2, checkpoint none"]),
        ("--capacity-mb 64 --from runs --trace ops", &["trace is allocations, not ops"]),
        ("--verify", &["--capacity-mb"]),
    ] {
        let (code, text, errors) = outcome(&runs, flags);
        assert_eq!((code, text.as_str()), (Some(2), ""), "{flags}: {errors}");
        assert!(parts.iter().all(|part| errors.contains(part)), "{flags}: {errors}");
    }
}

/// What is planned is to be run.
#[test]
fn what_no_run_can_be_told_is_not_planned_for() {
    let runs = Runs::new();
    for (flags, told) in [
        ("--heads 3", "--heads 3: --width 128 must be a multiple of it"),
        ("--lr nan", "--lr NaN: allowed: any number above 0"),
        ("--layers 5000", "--layers 5000: allowed: 1 to 4096"),
        ("--layers 0", "--layers 0: allowed: 1 to 4096"),
        ("--layers -1", "--layers -1: allowed: 1 to 4096"),
        ("--width 0", "--width 0: allowed: 1 to"),
        ("--seq 0", "--seq 0: allowed: 1 to"),
        ("--accumulate 0", "--accumulate 0: allowed: 1 to"),
        ("--threads 0", "--threads 0: allowed: 1 to"),
        ("--dropout 2", "--dropout 2: allowed: from 0 to below 1"),
        ("--betas 0.9", "--betas [0.9]: allowed: two numbers"),
        ("--adamw kernel", "takes --device cuda"),
        ("--block-size 256", "--block-size 256: is for --adamw kernel"),
        ("--device tpu", "--device tpu: allowed: cpu, cuda"),
    ] {
        let (code, text, errors) = outcome(&runs, &format!("--capacity-mb 64 {flags}"));
        assert_eq!((code, text.as_str()), (Some(2), ""), "{flags}: {errors}");
        assert!(errors.contains(told), "{flags}: {errors}");
    }
}

/// Beside runs the setting is theirs, and a flag that only chooses among them is held to nothing else.
#[test]
fn what_is_asked_beside_runs_is_held_to_their_setting() {
    let runs = Runs::new();
    let made = |id, batch| MadeUp { program: "gpt", ..MadeUp::new(id, 0, batch) };
    for (id, batch) in [("a", 1), ("b", 2), ("c", 4)] {
        made(id, batch).write(&runs.file("toys"));
        MadeUp::new(id, 0, batch).write(&runs.file("own"));
    }
    let (code, _, errors) = outcome(&runs, "--capacity-mb 48 --from toys --steps 0");
    assert_eq!(code, Some(2));
    assert!(errors.contains("--steps 0: allowed: 1 to"), "{errors}");
    // Four heads, `run`'s own, are not these runs'.
    let (code, _, errors) = outcome(&runs, "--capacity-mb 48 --from own --width 98");
    assert_eq!(code, Some(0), "{errors}");
}

/// Its names are those of the toy models, and what it says is no flag that anyone gave.
#[test]
fn a_program_of_ones_own_may_be_called_as_a_toy_model_is() {
    let runs = Runs::new();
    for (folder, further) in [
        ("dtype", r#"{ "dtype": "float16", "width": 1000, "heads": 7 }"#),
        ("model", r#"{ "model": "resnet", "device": "cpu" }"#),
    ] {
        for (id, batch) in [("a", 1), ("b", 2), ("c", 4)] {
            MadeUp { program: "gpt", further, ..MadeUp::new(id, 0, batch) }.write(&runs.file(folder));
        }
        for flags in ["", "--checkpoint none"] {
            let plan = plan(&runs, &format!("--capacity-mb 48 --from {folder} {flags}"));
            assert_eq!(policy(&plan, "none")["source"], "fit", "{folder}");
            let command = plan["best"]["command"].as_str().unwrap();
            assert!(command.starts_with("gpt again, with batch"), "{folder}: {command}");
        }
    }
}

#[test]
fn a_capacity_that_holds_the_parameters_only_is_answered_with_the_floor() {
    let (code, text, _) = outcome(&Runs::new(), "--capacity-mb 5");
    assert_eq!(code, Some(1));
    assert!(
        text.contains("batch 0: not even one sequence fits")
            && text.contains("Nothing fits: one sequence takes 13.0 MiB")
            && text.contains("--capacity-mb 13 or more"),
        "{text}"
    );
}
