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

/// The third and the last column of the row of this check.
fn row(output: &Output, check: &str) -> (String, String) {
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows = table.lines().map(|line| line.split(" | ").map(str::trim).collect::<Vec<_>>());
    let found = rows.filter(|cells| cells.len() == 4 && cells[0] == check).collect::<Vec<_>>();
    assert_eq!(found.len(), 1, "{check}: {table}");
    (found[0][2].to_owned(), found[0][3].to_owned())
}

/// Those that need a GPU, beside the checks of the other program.
const ON_A_GPU: [&str; 3] = ["doctor: GPU and driver", "calibrate --device cuda", "run --device cuda"];

#[test]
fn no_gpu_is_what_was_found_and_not_what_was_not_looked_for() {
    let says = |checks: &str, works: bool| {
        let code = u8::from(!works);
        made_up(&format!(r#"echo '{{"run_works": {works}, "checks": [{checks}]}}'; exit {code}"#), "exit 77")
    };
    let check = |name: &str, standing: &str| {
        format!(r#"{{"name": "{name}", "standing": "{standing}", "found": "libtorch_cpu.so: cannot open"}}"#)
    };
    let (unknown, none) = ("doctor did not get as far as to know of a GPU", "no GPU");
    for (checks, works, got) in [
        (check("engine", "fails"), false, unknown),
        (check("libtorch", "works") + "," + &check("all else", "not_run"), true, unknown),
        (check("GPU", "not_run"), true, unknown),
        (check("CUDA driver", "absent") + "," + &check("GPU", "not_run"), true, none),
        (check("CUDA driver", "works") + "," + &check("GPU", "absent"), true, none),
    ] {
        let output = script(&[], says(&checks, works).path());
        for name in ON_A_GPU {
            let expected = (format!("not run: {got}"), "not run".to_owned());
            assert_eq!(row(&output, name), expected, "{name}: {checks}");
        }
        let verdict = if works { "pass" } else { "FAIL" };
        assert_eq!(row(&output, "doctor").1, verdict, "{checks}");
    }
}

#[test]
fn a_doctor_that_does_not_answer_is_a_failure_with_its_last_words() {
    let loader = "libc.so.6: version GLIBC_2.99 not found (required by stepledger)";
    for (doctor, got) in [
        (format!("echo '{loader}' >&2; exit 1"), format!("exit code 1: {loader}")),
        ("exit 124".to_owned(), "took longer than allowed".to_owned()),
    ] {
        let output = script(&[], made_up(&doctor, "exit 77").path());
        assert_eq!(row(&output, "doctor"), (got, "FAIL".to_owned()));
        assert!(row(&output, "run --device cuda").0.contains("did not get as far"), "{output:?}");
    }
}

#[test]
fn a_folder_called_as_a_package_does_not_stand_for_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("torch")).unwrap();
    for file in ["torch/__init__.py", "json.py", "importlib.py"] {
        fs::write(folder.path().join(file), "raise ImportError('not this one')\n").unwrap();
    }
    let bundle = made_up(&doctor_says("absent"), "exit 77");
    let output = command(&[], bundle.path()).current_dir(folder.path()).output().unwrap();
    assert_eq!(row(&output, "doctor").1, "pass");
}

#[test]
fn a_python_that_does_not_start_is_told_from_one_without_torch() {
    let poor = tempfile::tempdir().unwrap();
    let without = poor.path().join("python");
    // Starts, and finds nothing.
    fs::write(&without, "#!/bin/sh\ncase $2 in *torch*) exit 1 ;; esac\n").unwrap();
    fs::set_permissions(&without, fs::Permissions::from_mode(0o755)).unwrap();
    let bundle = made_up(&doctor_says("absent"), "exit 77");
    for (python, got) in
        [("/no/such", "/no/such does not start: "), (without.to_str().unwrap(), "has no torch")]
    {
        let output = command(&[], bundle.path()).env("PYTHON", python).output().unwrap();
        let (found, verdict) = row(&output, "libtorch");
        assert!(found.contains(got) && verdict == "not run", "{python}: {found}");
        assert_eq!(output.status.code(), Some(77), "{output:?}");
    }
}

#[test]
fn a_machine_whose_glibc_is_too_old_is_told_so() {
    let bundle = made_up(&doctor_says("absent"), "exit 77");
    for (wanted, verdict) in
        [("99.0", Some("not run")), ("2.99", Some("not run")), ("2.5", None), ("1.99", None)]
    {
        fs::write(bundle.path().join("glibc"), format!("{wanted}\n")).unwrap();
        let output = script(&[], bundle.path());
        let found = verdicts(&output).remove("binaries");
        assert_eq!(found.as_deref(), verdict, "{wanted}: {output:?}");
        if verdict.is_some() {
            let table = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(table.contains(&format!("glibc {wanted} or newer")), "{table}");
            assert!(row(&output, "binaries").0.contains("this machine has glibc 2."), "{table}");
        }
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
