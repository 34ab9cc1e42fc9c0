//! `tests/device.sh` on this machine: everything that a CPU can run of it, on a CPU. Nothing fails, and what needs a GPU
//! has not passed.
#![cfg(feature = "torch")]

use std::collections::HashMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::{fs, thread, time};

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
    command(arguments, bundle).output().unwrap()
}

fn command(arguments: &[&str], bundle: &Path) -> Command {
    let mut bash = Command::new("bash");
    bash.arg(Path::new(ROOT).join("tests/device.sh")).args(arguments).arg(bundle);
    bash.env("PYTHON", Path::new(ROOT).join(".venv/bin/python"));
    bash
}

/// In the place of the binaries: a program that says this as `doctor`, and fails at all else, and one check.
fn made_up(doctor: &str, check: &str) -> tempfile::TempDir {
    made_up_with(doctor, &format!("case $1 in list) echo only ;; *) {check} ;; esac"))
}

/// As [`made_up`], with this as the program of checks.
fn made_up_with(doctor: &str, checks: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    file("stepledger", &format!("case $1 in doctor) {doctor} ;; *) exit 1 ;; esac"));
    file("device_checks", checks);
    file("libstepledger.so", "");
    folder
}

/// What `doctor --json` says where a GPU stands so.
fn doctor_says(standing: &str) -> String {
    doctor_says_of("GPU", standing)
}

fn doctor_says_of(name: &str, standing: &str) -> String {
    let checks =
        format!(r#"[{{"name": "{name}", "standing": "{standing}", "found": "the driver refuses"}}]"#);
    format!(r#"echo '{{"run_works": true, "checks": {checks}}}'"#)
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

#[test]
fn a_driver_that_refuses_is_a_failure_and_no_gpu_is_none() {
    for (standing, verdict) in [("fails", "FAIL"), ("absent", "not run"), ("not_run", "not run")] {
        let output = script(&[], made_up(&doctor_says(standing), "exit 77").path());
        let row = verdicts(&output).remove("doctor: GPU and driver");
        assert_eq!(row.as_deref(), Some(verdict), "{standing}: {output:?}");
    }
}

#[test]
fn a_library_that_is_there_and_broken_is_a_failure() {
    for name in ["libtorch for CUDA", "NVRTC", "NVML"] {
        let output = script(&[], made_up(&doctor_says_of(name, "fails"), "exit 77").path());
        let row = verdicts(&output).remove("doctor: GPU and driver");
        assert_eq!(row.as_deref(), Some("FAIL"), "{name}: {output:?}");
    }
}

#[test]
fn checks_that_cannot_start_are_a_failure() {
    for (checks, got) in [
        ("echo 'libtorch.so: cannot open' >&2; exit 127", "exit code 127: libtorch.so: cannot open"),
        ("exit 0", "none"),
        ("echo only; exit 139", "exit code 139:"),
    ] {
        let output = script(&[], made_up_with(&doctor_says("absent"), checks).path());
        let table = String::from_utf8_lossy(&output.stdout).into_owned();
        let rows: Vec<_> = table.lines().filter(|line| line.starts_with("device_checks ")).collect();
        assert!(rows.len() == 1 && rows[0].contains(got) && rows[0].ends_with("FAIL"), "{checks}: {table}");
        assert_eq!(verdicts(&output).get("only"), None, "{checks}: {table}");
    }
}

#[test]
fn a_failure_is_found_by_tools_that_are_everywhere() {
    let bundle = made_up(&doctor_says("absent"), "printf 'only\\ta\\tb\\tFAIL\\n'; exit 1");
    let poor = tempfile::tempdir().unwrap();
    // A grep that knows no Perl.
    let grep = poor.path().join("grep");
    fs::write(&grep, "#!/bin/sh\necho 'grep: -P is not supported' >&2; exit 2\n").unwrap();
    fs::set_permissions(&grep, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", poor.path().display(), std::env::var("PATH").unwrap());
    let output = command(&[], bundle.path()).env("PATH", path).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

#[test]
fn what_is_long_is_cut_between_characters() {
    // With `exit code 3: ` before them 159 characters of one byte, then some of two.
    let check = format!("printf '{}ééé' >&2; exit 3", "x".repeat(146));
    let output = script(&[], made_up(&doctor_says("absent"), &check).path());
    let table = String::from_utf8(output.stdout).unwrap();
    let row = table.lines().find(|line| line.starts_with("only ")).unwrap();
    let got = row.split(" | ").nth(2).unwrap().trim();
    assert_eq!(got, format!("exit code 3: {}é", "x".repeat(146)), "{table}");
}

#[test]
fn whoever_interrupts_it_gets_the_table_of_what_is_known() {
    let begun = tempfile::tempdir().unwrap();
    let begun = begun.path().join("begun");
    let check = format!("touch '{}'; exec sleep 1000", begun.display());
    let bundle = made_up(&doctor_says("absent"), &check);
    let mut bash = command(&[], bundle.path());
    let child = bash.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    while !begun.exists() {
        thread::sleep(time::Duration::from_millis(20));
    }
    Command::new("kill").arg(child.id().to_string()).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143), "{output:?}");
    let verdicts = verdicts(&output);
    assert_eq!(verdicts.get("doctor").map(String::as_str), Some("pass"), "{output:?}");
    assert_eq!(verdicts.get("only").map(String::as_str), Some("not run"), "{output:?}");
}
