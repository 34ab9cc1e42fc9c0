//! Going on with a sweep that was ended.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::*;

fn resume(runs: &Runs, more: &str) -> Output {
    let mut command = program();
    command.arg("sweep").arg("--resume").arg(folder(runs)).args(more.split_whitespace());
    command.output().unwrap()
}

/// A sweep that goes on. It ends with the test, however that ends: an endless one would outlive a test that fails.
struct GoingOn(Option<Child>);

impl GoingOn {
    fn start(runs: &Runs, flags: &str) -> Self {
        let mut command = program();
        command.arg("sweep").arg("--out").arg(runs.file("runs")).args(flags.split_whitespace());
        GoingOn(Some(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()))
    }

    fn child(&mut self) -> &mut Child {
        self.0.as_mut().unwrap()
    }

    fn kill(&mut self) {
        self.child().kill().unwrap();
        self.child().wait().unwrap();
    }

    fn wait_with_output(mut self) -> Output {
        self.0.take().unwrap().wait_with_output().unwrap()
    }
}

impl Drop for GoingOn {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A sweep that has begun this run of its own.
fn begun(runs: &Runs, flags: &str, at_least: usize) -> GoingOn {
    let sweep = GoingOn::start(runs, flags);
    let begin = Instant::now();
    while begun_runs(runs) < at_least {
        assert!(begin.elapsed() < Duration::from_secs(120), "run {at_least} never began");
        std::thread::sleep(Duration::from_millis(20));
    }
    sweep
}

/// How many runs there are, also where the sweep's own folder is still to come.
fn begun_runs(runs: &Runs) -> usize {
    let sweeps = runs.file("runs").read_dir().into_iter().flatten().flatten();
    sweeps.map(|sweep| runs_in(&sweep.path()).len()).sum()
}

/// A sweep whose second run has been started: what it says on stderr comes before the run's folder does.
fn about_to_begin(runs: &Runs, flags: &str) -> GoingOn {
    let mut sweep = GoingOn::start(runs, flags);
    let told = BufReader::new(sweep.child().stderr.take().unwrap()).lines();
    let mut told = told.map(|line| line.unwrap()).filter(|line| line.starts_with("run "));
    assert!(told.nth(1).unwrap().starts_with("run 2 of 4"));
    sweep
}

#[test]
fn a_kill_at_any_moment_costs_no_setting() {
    for after_ms in [0, 50, 250] {
        let runs = Runs::new();
        let mut sweep = about_to_begin(&runs, &format!("{SMALL} --batch 1,2 --repeats 2"));
        std::thread::sleep(Duration::from_millis(after_ms));
        sweep.kill();
        let output = resume(&runs, "--json");
        assert_eq!(output.status.code(), Some(0), "after {after_ms} ms: {}", stderr(&output));
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        for cell in found["cells"].as_array().unwrap() {
            assert_eq!(
                (&cell["status"], &cell["reason"]),
                (&"complete".into(), &Value::Null),
                "after {after_ms} ms: {cell}"
            );
            assert_eq!(cell["run_ids"].as_array().unwrap().len(), 2, "after {after_ms} ms: {cell}");
        }
    }
}

#[test]
fn a_sweep_that_is_worked_on_is_left_alone_and_its_process_is_named() {
    let runs = Runs::new();
    let endless = SMALL.replace("--steps 2", "--steps 1000000");
    let mut sweep = begun(&runs, &format!("{endless} --batch 1,2"), 1);
    let output = resume(&runs, "");
    let id = sweep.child().id().to_string();
    sweep.kill();
    assert_eq!(output.status.code(), Some(2));
    let told = stderr(&output);
    assert!(told.contains("working on the sweep") && told.contains(&id), "{told}");
}

#[test]
fn after_a_kill_nothing_complete_is_repeated() {
    let runs = Runs::new();
    begun(&runs, &format!("{SMALL} --batch 1,2 --repeats 2"), 2).kill();
    let output = resume(&runs, "--json");
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
fn a_damaged_run_is_told_and_made_again() {
    let runs = Runs::new();
    assert!(sweep(&runs, &format!("{SMALL} --batch 1,2 --repeats 2")).status.success());
    let names = runs_in(&folder(&runs));
    let [truncated, without_steps] = [&names[0], &names[3]];
    let steps = folder(&runs).join(truncated).join("steps-0001.parquet");
    std::fs::write(&steps, &std::fs::read(&steps).unwrap()[..100]).unwrap();
    std::fs::remove_file(folder(&runs).join(without_steps).join("steps-0001.parquet")).unwrap();
    let output = resume(&runs, "--json");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["complete"], true);
    for (cell, set_aside) in [(0, truncated), (1, without_steps)] {
        let cell = &found["cells"][cell];
        let ids: Vec<&str> =
            cell["run_ids"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
        assert_eq!((ids.len(), &cell["reason"]), (2, &Value::Null), "{cell}");
        assert!(ids.contains(&format!("{set_aside}-again2").as_str()), "{ids:?}");
    }
    let mut told: Vec<(&str, &str)> = found["set_aside"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| (run["run_id"].as_str().unwrap(), run["why"].as_str().unwrap()))
        .collect();
    told.sort();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].0 == truncated && told[0].1.starts_with("steps-0001.parquet is damaged: "), "{told:?}");
    assert!(told[1].0 == without_steps && told[1].1 == "0 of its 3 steps are there", "{told:?}");
    // Once more: nothing is made again, and it is still told.
    let again = resume(&runs, "");
    assert!(!stderr(&again).contains("run "), "{}", stderr(&again));
    assert_eq!(stdout(&again).matches("Not counted: ").count(), 2, "{}", stdout(&again));
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
    assert!(sweep(&runs, &format!("{SMALL} --batch 1 --repeats 2")).status.success());
    for (flags, expected) in [
        ("--batch 2 --width 32", "leave out --batch --width=32"),
        ("--order-seed 1", "leave out --order-seed"),
        ("--out elsewhere", "leave out --out"),
        ("--run-id mine", "leave out --run-id=mine"),
        ("--repeats 1", "begun with 2 repeats, and 1 are fewer"),
    ] {
        let output = resume(&runs, flags);
        assert_eq!(output.status.code(), Some(2), "{flags}");
        assert!(stderr(&output).contains(expected), "{flags}: {}", stderr(&output));
    }
}

#[test]
fn more_repeats_add_to_a_sweep() {
    let runs = Runs::new();
    assert!(sweep(&runs, &format!("{SMALL} --batch 1 --repeats 1")).status.success());
    let output = resume(&runs, "--repeats 2 --json");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&found["repeats"], &found["complete"]), (&2.into(), &true.into()), "{found}");
    assert!(
        stderr(&output).contains("run 2 of 2") && !stderr(&output).contains("run 1"),
        "{}",
        stderr(&output)
    );
    assert_eq!(runs_in(&folder(&runs)).len(), 2);
}

#[test]
fn threads_are_those_that_the_sweep_was_begun_with() {
    let runs = Runs::new();
    let flags = SMALL.replace("--threads 1 ", "");
    assert!(sweep(&runs, &format!("{flags} --batch 1 --repeats 1")).status.success());
    let cores = std::thread::available_parallelism().unwrap();
    let kept = std::fs::read_to_string(folder(&runs).join("sweep.json")).unwrap();
    assert!(kept.contains(&format!("\"--threads={cores}\"")), "{kept}");
    // One that has them otherwise, as an earlier version did not keep them, is not gone on with.
    let other = kept.replace(&format!("--threads={cores}"), &format!("--threads={}", cores.get() + 1));
    std::fs::write(folder(&runs).join("sweep.json"), other).unwrap();
    let refused = resume(&runs, "--repeats 2");
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    let told = stderr(&refused);
    assert!(told.contains("does not belong to those of its sweep: it was made with threads"), "{told}");
    // Both are named with the command that removes them, as nobody knows which of the two is the odd one.
    let first = folder(&runs).join(&runs_in(&folder(&runs))[0]);
    let removals: Vec<&str> = told.split("stepledger rm ").skip(1).collect();
    assert!(removals.len() == 2 && removals[1].trim() == first.to_string_lossy(), "{told}");
    assert!(told.contains(&format!("the runs that are counted with threads {cores}; go on with")), "{told}");
}

#[test]
fn files_are_those_that_were_meant_wherever_it_is_gone_on_with() {
    let runs = Runs::new();
    std::fs::write(runs.file("book.txt"), "to be or not to be ".repeat(20)).unwrap();
    assert!(sweep(&runs, &format!("{SMALL} --batch 1 --repeats 1 --data book.txt")).status.success());
    let mut command = program();
    command.arg("sweep").arg("--resume").arg(folder(&runs)).args(["--repeats", "2", "--json"]);
    let output = command.current_dir("/").output().unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["cells"][0]["run_ids"].as_array().unwrap().len(), 2, "{found}");
}

#[test]
fn ended_before_the_first_result_it_says_how_to_go_on() {
    let runs = Runs::new();
    let endless = SMALL.replace("--steps 2", "--steps 1000000");
    let mut sweep = begun(&runs, &format!("{endless} --batch 1,2 --svg {}", runs.file("s.svg").display()), 1);
    let own = sweep.child().id();
    // As Ctrl-C does: to the sweep and to its run. Were the run the first to hear of it, it could be over before the sweep
    // knows that there is to be no other.
    let children = std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap();
    for id in [own.to_string().as_str()].into_iter().chain(children.split_whitespace()) {
        assert!(std::process::Command::new("kill").args(["-INT", id]).status().unwrap().success(), "{id}");
    }
    let output = sweep.wait_with_output();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("sweep --resume"), "{}", stderr(&output));
}
