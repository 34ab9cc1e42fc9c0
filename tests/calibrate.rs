//! `stepledger calibrate`, and runs that are held against it.
#![cfg(feature = "torch")]

#[path = "common/program.rs"]
mod common;

use common::{Runs, program, stderr};
use serde_json::Value;

const FLAGS: &str = "--steps 3 --warmup 1 --batch 2 --width 32 --heads 2 --json";

fn run(runs: &Runs, threads: &str) -> Value {
    let mut command = runs.command(FLAGS);
    let output =
        command.args(["--threads", threads]).env("STEPLEDGER_HOME", runs.file("home")).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn what_is_measured_is_what_later_runs_with_as_many_threads_are_held_against() {
    let runs = Runs::new();
    assert_eq!(run(&runs, "1")["products"]["reference"], Value::Null, "nothing was measured yet");
    let calibrate = ["calibrate", "--threads", "1", "--json"];
    let output = program().args(calibrate).env("STEPLEDGER_HOME", runs.file("home")).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let rates: Value = serde_json::from_slice(&output.stdout).unwrap();
    for rate in ["copy_gb_s", "triad_gb_s", "matmul_f32_tflop_s", "matmul_bf16_tflop_s"] {
        assert!(rates[rate]["median"].as_f64().unwrap() > 0.0 && rates[rate]["rounds"] == 5, "{rates}");
    }
    assert!(rates["array_bytes"].as_u64().unwrap() >= 64 << 20, "{rates}");
    for dtype in ["f32", "bf16"] {
        let rows = rates[format!("matmul_{dtype}_rows")].as_i64().unwrap();
        assert!((256..=2048).contains(&rows), "{rates}");
    }
    assert_eq!((&rates["device"], &rates["threads"]), (&"cpu".into(), &1.into()));
    let held = run(&runs, "1")["products"].clone();
    assert_eq!(held["reference"]["source"], "calibrated", "{held}");
    assert_eq!(held["reference"]["tflop_s"], rates["matmul_f32_tflop_s"]["median"]);
    let (flops, rate) = (held["theory_flops_per_step"].as_f64().unwrap(), held["tflop_s"].as_f64().unwrap());
    assert!(flops > 0.0 && rate > 0.0, "{held}");
    assert_eq!(run(&runs, "2")["products"]["reference"], Value::Null, "two threads were not measured");
}

#[test]
fn a_device_that_is_not_there_is_bad_input() {
    let runs = Runs::new();
    for (flags, part) in [
        ("--device gpu", "cpu, cuda"),
        ("--device cuda --noise", "cannot be used with"),
        ("--threads 0", "1.."),
        ("--threads 100000", "1..=1024"),
    ] {
        let output = program()
            .arg("calibrate")
            .args(flags.split(' '))
            .env("STEPLEDGER_HOME", runs.path())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{flags}");
        assert!(stderr(&output).contains(part), "{flags}: {}", stderr(&output));
    }
}

#[test]
fn a_home_that_cannot_be_written_to_is_told_before_anything_is_measured() {
    let runs = Runs::new();
    std::fs::write(runs.file("file"), "").unwrap();
    for flags in [&["calibrate"][..], &["calibrate", "--noise"]] {
        let mut command = program();
        command.args(flags).env("STEPLEDGER_HOME", runs.file("file/home")).current_dir(runs.path());
        let output = command.output().unwrap();
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {told}");
        assert!(told.contains("file/home") && told.contains("STEPLEDGER_HOME"), "{flags:?}: {told}");
        assert!(output.stdout.is_empty() && !told.contains("pair 1"), "{flags:?}: {told}");
        assert!(!runs.file("runs").exists(), "{flags:?}");
    }
}
