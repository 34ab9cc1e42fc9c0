//! `stepledger doctor` on this machine, and on machines that lack something.

#[path = "common/program.rs"]
mod common;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
#[cfg(feature = "torch")]
use std::{
    process::Stdio,
    thread::sleep,
    time::{Duration, Instant},
};

use common::{Runs, program, stderr, stdout};
use serde_json::Value;

/// A copy of the program, away from its engine.
///
/// A child makes it: this process must not hold it open for writing, as another test's thread may start
/// a program meanwhile, which inherits the open file until its own exec ("text file busy" for ours).
fn copy_of_the_program(runs: &Runs) -> PathBuf {
    let copy = runs.file("stepledger");
    let made = Command::new("cp").arg(env!("CARGO_BIN_EXE_stepledger")).arg(&copy).status().unwrap();
    assert!(made.success(), "cp to {}: {made}", copy.display());
    copy
}

/// In a home of its own, without PyTorch, which takes seconds to import.
fn doctor(program: &mut Command, runs: &Runs) -> Output {
    program.args(["doctor", "--json", "--out"]).arg(runs.file("runs")).current_dir(runs.path());
    program.env("STEPLEDGER_HOME", runs.file("home")).env("VIRTUAL_ENV", runs.file("none")).env("PATH", "");
    program.output().unwrap()
}

fn object(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}{}", stdout(output), stderr(output)))
}

fn check<'a>(checkup: &'a Value, name: &str) -> &'a Value {
    let checks = checkup["checks"].as_array().unwrap();
    checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no {name}: {checkup}"))
}

#[test]
fn a_program_without_its_engine_says_so() {
    let runs = Runs::new();
    let output = doctor(&mut Command::new(copy_of_the_program(&runs)), &runs);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let checkup = object(&output);
    let engine = check(&checkup, "engine");
    assert_eq!((&checkup["run_works"], &engine["standing"]), (&false.into(), &"fails".into()), "{engine}");
    assert!(engine["found"].as_str().unwrap().contains("libstepledger.so is missing"), "{engine}");
    assert_eq!(check(&checkup, "room for runs")["standing"], "works");
}

#[test]
fn an_engine_that_is_no_library_is_a_finding() {
    let runs = Runs::new();
    fs::write(runs.file("libstepledger.so"), "no library").unwrap();
    let output = doctor(&mut Command::new(copy_of_the_program(&runs)), &runs);
    assert_eq!(output.status.code(), Some(1));
    let checkup = object(&output);
    let engine = check(&checkup, "engine");
    assert!(engine["found"].as_str().unwrap().contains("cannot be loaded"), "{engine}");
    assert!(engine["way_out"].is_string(), "{engine}");
}

#[test]
fn what_is_wrong_with_the_home_is_told() {
    let runs = Runs::new();
    fs::create_dir(runs.file("home")).unwrap();
    fs::write(runs.file("home/calibration.json"), "{").unwrap();
    let checkup = object(&doctor(&mut program(), &runs));
    let calibration = check(&checkup, "calibration");
    assert_eq!((&calibration["standing"], &calibration["needed"]), (&"fails".into(), &false.into()));
    assert_eq!(check(&checkup, "PyTorch")["standing"], "absent");
}

/// An environment in the working directory whose interpreter does this, made by a child like the copy of the program.
fn environment(runs: &Runs, script: &str) {
    let (text, python) = (runs.file("script"), runs.file(".venv/bin/python"));
    fs::write(&text, format!("#!/bin/sh\n{script}\n")).unwrap();
    let mut install = Command::new("install");
    let made = install.args(["-D", "-m", "755"]).arg(text).arg(python).status().unwrap();
    assert!(made.success(), "{made}");
}

#[test]
fn a_pytorch_that_cannot_be_imported_is_told_from_none() {
    let runs = Runs::new();
    for (last, standing, words) in [
        ("ModuleNotFoundError: No module named 'torch'", "absent", ".venv/bin/python: it has no torch"),
        ("ImportError: libcudnn.so.9: cannot open", "fails", ".venv/bin/python: ImportError: libcudnn.so.9"),
    ] {
        environment(&runs, &format!("echo \"{last}\" >&2; exit 1"));
        let checkup = object(&doctor(&mut program(), &runs));
        let pytorch = check(&checkup, "PyTorch");
        assert_eq!(
            (&pytorch["standing"], &pytorch["needed"]),
            (&standing.into(), &false.into()),
            "{pytorch}"
        );
        assert!(pytorch["found"].as_str().unwrap().contains(words), "{pytorch}");
    }
}

#[cfg(feature = "torch")]
#[test]
fn a_pytorch_of_another_version_than_the_engines_is_told_so() {
    let runs = Runs::new();
    environment(&runs, "echo 9.9.9 /there");
    let checkup = object(&doctor(&mut program(), &runs));
    let pytorch = check(&checkup, "PyTorch");
    let found = pytorch["found"].as_str().unwrap();
    assert!(found.starts_with("9.9.9 /there, while the engine has libtorch 2."), "{pytorch}");
    assert!(pytorch["way_out"].as_str().unwrap().contains("two libraries"), "{pytorch}");
}

#[cfg(not(feature = "torch"))]
#[test]
fn an_engine_without_libtorch_is_told_from_a_broken_one() {
    let runs = Runs::new();
    let output = doctor(&mut program(), &runs);
    assert_eq!(output.status.code(), Some(1));
    let checkup = object(&output);
    let engine = check(&checkup, "engine");
    assert!(engine["found"].as_str().unwrap().contains("without libtorch"), "{engine}");
    assert!(engine["way_out"].as_str().unwrap().contains("feature `torch`"), "{engine}");
}

/// NVRTC's, which comes with libtorch 2.11.0 for CUDA 13.
#[cfg(feature = "torch")]
const BESIDE_LIBTORCH: &str = "13.0";

/// A folder with a compiler of another version, under all names that a toolkit has for it.
#[cfg(feature = "torch")]
fn other_compiler(runs: &Runs) -> PathBuf {
    let (folder, source) = (runs.file("toolkit"), runs.file("other.c"));
    fs::create_dir(&folder).unwrap();
    fs::write(&source, "int nvrtcVersion(int *major, int *minor) { *major = 99; *minor = 9; return 0; }")
        .unwrap();
    for name in ["libnvrtc.so", "libnvrtc.so.13"] {
        let mut compiler = Command::new("cc");
        let file = folder.join(name);
        let built = compiler.args(["-shared", "-fPIC", "-o"]).arg(file).arg(&source).status().unwrap();
        assert!(built.success());
    }
    folder
}

/// The loader's path as it is, behind a folder.
#[cfg(feature = "torch")]
fn path_with(folder: std::path::PathBuf) -> std::ffi::OsString {
    let rest = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    std::env::join_paths(std::iter::once(folder).chain(std::env::split_paths(&rest))).unwrap()
}

#[cfg(feature = "torch")]
#[test]
fn the_engine_finds_libtorch_and_a_hook_that_works() {
    let runs = Runs::new();
    let mut program = program();
    program
        .env("NVTX_INJECTION64_PATH", "/not/there.so")
        .env("LD_LIBRARY_PATH", path_with(other_compiler(&runs)));
    let output = doctor(&mut program, &runs);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let checkup = object(&output);
    assert_eq!(checkup["run_works"], true);
    for name in ["engine", "libtorch", "allocator hook", "room for runs"] {
        let check = check(&checkup, name);
        assert_eq!((&check["standing"], &check["needed"]), (&"works".into(), &true.into()), "{check}");
    }
    assert!(check(&checkup, "allocator hook")["found"].as_str().unwrap().contains("16 of 16"));
    for name in ["CUDA driver", "NVML", "NVRTC", "CUPTI", "kernel cache"] {
        assert_eq!(check(&checkup, name)["needed"], false);
    }
    assert_eq!(check(&checkup, "NVRTC")["found"], BESIDE_LIBTORCH, "and not the one on the loader's path");
    let tool = check(&checkup, "NVTX tool");
    assert_eq!(tool["standing"], "fails", "{tool}");
}

#[cfg(feature = "torch")]
#[test]
fn a_cuda_half_that_is_cut_off_fails_and_is_what_the_rest_is_told_of() {
    let runs = Runs::new();
    let folder = runs.file("cut off");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("libtorch_cuda.so"), "cut off").unwrap();
    let output = doctor(program().env("LD_LIBRARY_PATH", path_with(folder)), &runs);
    assert_eq!(output.status.code(), Some(0), "a CPU does without: {}{}", stdout(&output), stderr(&output));
    let checkup = object(&output);
    let half = check(&checkup, "libtorch for CUDA");
    assert!(half["standing"] == "fails" && half["found"].as_str().unwrap().contains("too short"), "{half}");
    let on_gpu = check(&checkup, "libtorch on a GPU");
    assert_eq!((&on_gpu["standing"], &on_gpu["way_out"]), (&"not_run".into(), &Value::Null), "{on_gpu}");
}

/// A tool that does this when it is loaded.
#[cfg(feature = "torch")]
fn tool(runs: &Runs, on_load: &str) -> PathBuf {
    let (source, file) = (runs.file("tool.c"), runs.file("libtool.so"));
    let text = format!(
        "#include <stdio.h>\n#include <stdlib.h>\n__attribute__((constructor)) static void loaded(void) {{ {on_load} }}\n\
         int InitializeInjectionNvtx2(void *table) {{ printf(\"a tool that talks\\n\"); fflush(stdout); return table != 0; }}"
    );
    fs::write(&source, text).unwrap();
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&file).arg(&source).status().unwrap();
    assert!(built.success());
    file
}

#[cfg(feature = "torch")]
#[test]
fn a_tool_that_ends_its_process_at_the_end_is_told() {
    let runs = Runs::new();
    let aborts = tool(&runs, "} __attribute__((destructor)) static void unloaded(void) { abort();");
    let output = doctor(program().env("NVTX_INJECTION64_PATH", &aborts), &runs);
    let checkup = object(&output);
    assert_eq!(output.status.code(), Some(1), "a run would end so: {checkup}");
    let end = check(&checkup, "end of the process");
    let found = end["found"].as_str().unwrap();
    assert!(end["standing"] == "fails" && found.contains("signal: 6"), "{end}");
    assert!(found.contains(&*aborts.to_string_lossy()), "{end}");
    assert!(end["way_out"].as_str().unwrap().contains("unset"), "{end}");
    assert_eq!(check(&checkup, "kernel cache")["standing"], "works", "{checkup}");
}

/// A process that has ended has no entry, or one that says that it is a zombie.
#[cfg(feature = "torch")]
fn is_gone(process: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_none_or(|rest| rest.trim().is_empty() || rest.trim().starts_with('Z'))
}

/// By SIGHUP, which a closed terminal sends, and by one that cannot be caught.
#[cfg(feature = "torch")]
#[test]
fn what_hangs_ends_with_the_doctor() {
    for signal in ["-HUP", "-KILL"] {
        let runs = Runs::new();
        let (note, whole) = (runs.file("note"), runs.file("process"));
        // The alarm spares the machine a process that hangs for ever where this test fails.
        let hangs = format!(
            "extern int getpid(void); extern unsigned alarm(unsigned); extern int pause(void); \
             FILE *file = fopen(\"{}\", \"w\"); fprintf(file, \"%d\", getpid()); fclose(file); \
             rename(\"{}\", \"{}\"); alarm(300); for (;;) pause();",
            note.display(),
            note.display(),
            whole.display()
        );
        let mut doctor = program();
        doctor.args(["doctor", "--json"]).env("NVTX_INJECTION64_PATH", tool(&runs, &hangs));
        let mut doctor = doctor.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let soon = |what: &str, done: &dyn Fn() -> bool| {
            let begin = Instant::now();
            while !done() {
                assert!(begin.elapsed() < Duration::from_secs(120), "{signal}: {what}");
                sleep(Duration::from_millis(20));
            }
        };
        soon("nothing hangs", &|| whole.exists());
        let hanging = fs::read_to_string(&whole).unwrap();
        assert!(!is_gone(&hanging), "{hanging}");
        Command::new("kill").args([signal, &doctor.id().to_string()]).status().unwrap();
        doctor.wait().unwrap();
        soon("what hung goes on", &|| is_gone(&hanging));
    }
}

#[cfg(feature = "torch")]
#[test]
fn a_tool_that_talks_is_no_failure() {
    let runs = Runs::new();
    let talks = tool(&runs, "printf(\"{}\\n\"); fflush(stdout);");
    let output = doctor(program().env("NVTX_INJECTION64_PATH", talks), &runs);
    let checkup = object(&output);
    assert_eq!(checkup["run_works"], true, "{checkup}");
    assert_eq!(check(&checkup, "NVTX tool")["standing"], "works", "{checkup}");
}

#[cfg(feature = "torch")]
#[test]
fn a_tool_that_ends_its_process_is_named_and_the_others_keep_their_results() {
    let runs = Runs::new();
    for (on_load, words) in [("abort();", "signal: 6"), ("exit(0);", "exit status: 0")] {
        let output = doctor(program().env("NVTX_INJECTION64_PATH", tool(&runs, on_load)), &runs);
        let checkup = object(&output);
        assert_eq!(output.status.code(), Some(1), "a run would end with it: {checkup}");
        let tool = check(&checkup, "NVTX tool");
        assert!(tool["standing"] == "fails" && tool["found"].as_str().unwrap().contains(words), "{tool}");
        assert!(tool["way_out"].as_str().unwrap().contains("unset"), "{tool}");
        for name in ["engine", "libtorch", "allocator hook", "kernel cache"] {
            assert_eq!(check(&checkup, name)["standing"], "works", "{checkup}");
        }
    }
}
