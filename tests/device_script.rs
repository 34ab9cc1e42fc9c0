//! `tests/device.sh` on this machine: everything that a CPU can run of it, on a CPU. Nothing fails, and what needs a GPU
//! has not passed.
#![cfg(feature = "torch")]

use std::collections::HashMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// What `make device-bundle` makes, of this build: links to the program, its engine and the checks.
fn bundle() -> tempfile::TempDir {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_stepledger"));
    let built = program.parent().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let engine = built.join("deps/libstepledger.so");
    for file in [&program, &engine, &checks(built)] {
        assert!(file.exists(), "{} is missing", file.display());
        symlink(file, folder.path().join(file.file_name().unwrap())).unwrap();
    }
    folder
}

/// The program of checks, which `cargo test` builds as a test of its own only.
fn checks(built: &Path) -> PathBuf {
    let build = ["build", "--quiet", "--example", "device_checks"];
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(build).current_dir(ROOT).arg("--target-dir").arg(built.parent().unwrap());
    if built.ends_with("release") {
        cargo.arg("--release");
    }
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    built.join("examples/device_checks")
}

fn script(arguments: &[&str], bundle: &Path) -> Output {
    let mut bash = Command::new("bash");
    bash.arg(Path::new(ROOT).join("tests/device.sh")).args(arguments).arg(bundle);
    bash.env("PYTHON", Path::new(ROOT).join(".venv/bin/python")).output().unwrap()
}

/// The last column of the table by its first.
fn verdicts(output: &Output) -> HashMap<String, String> {
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = table.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split(" | ").map(str::trim).collect();
        (cells.len() == 4).then(|| (cells[0].to_owned(), cells[3].to_owned()))
    });
    lines.skip(1).collect()
}

#[test]
fn a_rehearsal_fails_nowhere_and_passes_no_check_of_a_gpu() {
    let bundle = bundle();
    let output = script(&["--rehearse"], bundle.path());
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let verdicts = verdicts(&output);
    let is = |check: &str, verdict: &str| {
        assert_eq!(verdicts.get(check).map(String::as_str), Some(verdict), "{check}: {said}");
    };
    assert!(verdicts.values().all(|verdict| ["pass", "not run"].contains(&verdict.as_str())), "{said}");
    assert_eq!(output.status.code(), Some(77), "{said}");
    for check in [
        "doctor",
        "run --device cpu",
        "account: allocator's total − categories, any event",
        "account: unattributed, any moment",
        "checkpoint: activations kept",
        "adamw_f32: foreach - fused, relative, after 20 steps",
        "adamw_bf16_masters: foreach - fused, relative, after 20 steps",
    ] {
        is(check, "pass");
    }
    for check in [
        "calibrate --device cpu",
        "run --device cpu: share of the calibrated rate",
        "calibrate --device cuda",
        "run --device cuda",
        "clock",
        "stream",
        "peaks",
        "adamw: bytes a second",
        "overhead: default GPT",
        "checkpoint: step",
    ] {
        is(check, "not run");
    }
}

#[test]
fn without_the_binaries_nothing_passes_and_the_table_says_what_makes_them() {
    let empty = tempfile::tempdir().unwrap();
    let output = script(&[], empty.path());
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(77), "{table}");
    assert!(table.contains("make device-bundle"), "{table}");
    assert_eq!(verdicts(&output).into_values().collect::<Vec<_>>(), ["not run"]);
}
