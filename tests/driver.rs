//! Commands that work on a GPU, with drivers that are none of NVIDIA's or newer than this program: each ends with a word.
#![cfg(feature = "torch")]

#[path = "common/program.rs"]
mod common;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::{ROOT, Runs, program, stderr, stdout};
use serde_json::Value;

/// A folder with this source as the driver.
fn driver(runs: &Runs, source: &Path, definitions: &[&str]) -> PathBuf {
    let folder = runs.file("driver");
    fs::create_dir_all(&folder).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(definitions).args(["-w", "-shared", "-fPIC", "-o"]).arg(folder.join("libcuda.so.1"));
    let built = compiler.arg(source).status().unwrap();
    assert!(built.success());
    folder
}

/// The program with these arguments, before whose drivers the folder's comes.
fn with(folder: &Path, runs: &Runs, arguments: &str) -> Output {
    let rest = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let path = [folder.to_owned()].into_iter().chain(env::split_paths(&rest));
    let mut program = program();
    program.args(arguments.split_whitespace()).current_dir(runs.path()).env("PATH", "");
    program.env("STEPLEDGER_HOME", runs.file("home")).env("VIRTUAL_ENV", runs.file("none"));
    program.env("LD_LIBRARY_PATH", env::join_paths(path).unwrap()).output().unwrap()
}

/// Codes that CUDA 13.0 lacks: of 13.4, and of none.
#[test]
fn a_code_that_nobody_knows_is_told_as_it_is() {
    let double = Path::new(ROOT).join("tests/doubles/cuda_driver.c");
    for (call, code) in [("cuInit", 919), ("cuDriverGetVersion", 99_999)] {
        let runs = Runs::new();
        let definitions = [format!("-DFAILS=\"{call}\""), format!("-DWITH={code}")];
        let folder = driver(&runs, &double, &definitions.each_ref().map(String::as_str));
        let output = with(&folder, &runs, "run --device cuda --steps 2");
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{:?}: {said}", output.status);
        assert!(said.contains(&format!("{call}: code {code}")), "{said}");
        assert!(!said.contains("panicked"), "{said}");
    }
}

#[test]
fn a_library_that_is_no_driver_is_named_with_the_way_out() {
    let runs = Runs::new();
    let source = runs.file("nothing.c");
    fs::write(&source, "int nothing;").unwrap();
    let folder = driver(&runs, &source, &[]);
    let library = folder.join("libcuda.so.1").display().to_string();
    for command in ["run --device cuda --steps 2", "calibrate --device cuda"] {
        let output = with(&folder, &runs, command);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{command}: {:?}: {said}", output.status);
        for words in [&*library, "has no cuDriverGetVersion", "LD_LIBRARY_PATH", "--device cpu"] {
            assert!(said.contains(words), "{command}: {words}: {said}");
        }
        assert!(!said.contains("bug in stepledger"), "{command}: {said}");
    }
    let output = with(&folder, &runs, "doctor --json");
    let checkup: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = checkup["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == "CUDA driver").unwrap();
    let found = check["found"].as_str().unwrap();
    assert_eq!(check["standing"], "fails", "{}", stdout(&output));
    assert!(found.contains(&library) && found.contains("has no cuDriverGetVersion"), "{check}");
    assert!(check["way_out"].as_str().unwrap().contains("LD_LIBRARY_PATH"), "{check}");
    assert_eq!(checkup["run_works"], true, "on a CPU");
}
