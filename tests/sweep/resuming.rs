//! Going on with a sweep that was ended.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::*;

fn resume(runs: &Runs, more: &str) -> Output {
    let mut command = program();
    command.arg("sweep").arg("--resume").arg(folder(runs)).args(more.split_whitespace());
    command.output().unwrap()
}

/// A sweep that has begun its second run.
fn begun(runs: &Runs, flags: &str) -> Child {
    let mut command = program();
    command.arg("sweep").arg("--out").arg(runs.file("runs")).args(flags.split_whitespace());
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begin = Instant::now();
    while !(runs.file("runs").exists() && runs_in(&folder(runs)).len() >= 2) {
        assert!(begin.elapsed() < Duration::from_secs(120), "the second run never began");
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

#[test]
fn after_a_kill_nothing_complete_is_repeated() {
    let runs = Runs::new();
    let mut child = begun(&runs, &format!("{SMALL} --batch 1,2 --repeats 2"));
    child.kill().unwrap();
    child.wait().unwrap();
    // The run it had begun goes on by itself to its end.
    let begin = Instant::now();
    let output = loop {
        let output = resume(&runs, "--json");
        if output.status.code() != Some(2) {
            break output;
        }
        assert!(stderr(&output).contains("still going on"), "{}", stderr(&output));
        assert!(begin.elapsed() < Duration::from_secs(120), "it never ended");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["complete"], true);
    let names = runs_in(&folder(&runs));
    // Each turn has one complete run; one that was caught before it could say anything has a further attempt.
    let complete: usize =
        found["cells"].as_array().unwrap().iter().map(|cell| cell["run_ids"].as_array().unwrap().len()).sum();
    assert_eq!(complete, 4);
    assert!(names.len() <= 5, "{names:?}");
    // Once more: nothing is left to do.
    let again = resume(&runs, "");
    assert_eq!(again.status.code(), Some(0));
    assert!(!stderr(&again).contains("run "), "{}", stderr(&again));
    assert_eq!(runs_in(&folder(&runs)), names);
}

#[test]
fn an_interrupted_run_is_made_again() {
    let runs = Runs::new();
    assert!(sweep(&runs, &format!("{SMALL} --batch 1 --repeats 2")).status.success());
    let dir = folder(&runs);
    let second = dir.join(&runs_in(&dir)[1]);
    // As a kill leaves it: begun, and nothing flushed.
    std::fs::remove_file(second.join("run.parquet")).unwrap();
    let output = resume(&runs, "--json");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let ids: Vec<&str> =
        found["cells"][0]["run_ids"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
    assert!(ids[1].ends_with("-c01-r2-again2"), "{ids:?}");
    assert!(second.exists(), "what there was of it stays");
}

#[test]
fn what_is_no_sweep_or_another_versions_is_refused() {
    let runs = Runs::new();
    assert!(sweep(&runs, &format!("{SMALL} --batch 1 --repeats 1")).status.success());
    let spec = folder(&runs).join("sweep.json");
    let text = std::fs::read_to_string(&spec).unwrap();
    let refused = |text: String, expected: &str| {
        std::fs::write(&spec, text).unwrap();
        let output = resume(&runs, "");
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    };
    refused(text.replace("\"version\": 1", "\"version\": 9"), "has version 9, and this build reads 1");
    refused(text.replace("\"0.1.0\"", "\"0.0.9\""), "was begun by stepledger 0.0.9");
    refused("{".to_owned(), "cannot be read");
    std::fs::remove_file(&spec).unwrap();
    let output = resume(&runs, "");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("is not the folder of a sweep"), "{}", stderr(&output));
}

#[test]
fn flags_beside_resume_are_refused() {
    let runs = Runs::new();
    assert!(sweep(&runs, &format!("{SMALL} --batch 1 --repeats 1")).status.success());
    let output = resume(&runs, "--batch 2 --width 32");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("leave out --batch --width=32"), "{}", stderr(&output));
}
