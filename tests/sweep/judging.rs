//! How sure a sweep is of its answer: runs of known speed in the place of its own.

use serde_json::json;
use stepledger::sweep::{Axis, Folder, Grid, Spec, SweepError};

use super::made_up::{LOTS, Made};
use super::*;

/// A sweep of `full` and `none` that is through: `none` takes 10 ms a step, `full` so much longer, as a share.
fn swept(runs: &Runs, longer: f64, repeats: usize, made: &Made) -> Result<PathBuf, SweepError> {
    swept_on(runs, longer, repeats, &|_| made.clone())
}

/// The same, of runs that differ by repeat.
fn swept_on(
    runs: &Runs,
    longer: f64,
    repeats: usize,
    made: &dyn Fn(usize) -> Made,
) -> Result<PathBuf, SweepError> {
    let grid = Grid::new(vec![Axis::parse("checkpoint", "none,full")?])?;
    let folder = Folder::create(&runs.file("runs"), Spec::new("judged", grid, Vec::new(), repeats))?;
    for (minute, turn) in folder.spec().turns().into_iter().enumerate() {
        let (policy, slower) = if turn.cell == 0 { ("none", 0.0) } else { ("full", longer) };
        let step_ms = 10.0 * (1.0 + slower);
        let lot = LOTS[(turn.repeat + 2 * turn.cell) % LOTS.len()];
        let run = Made { step_ms, lot, minute: minute as i64, ..made(turn.repeat) };
        run.with("checkpoint", policy.into()).write(folder.dir(), &folder.spec().run_id(turn, 1));
    }
    Ok(folder.dir().to_owned())
}

/// What the sweep in `dir` answers on a machine whose noise is known, or not.
fn answer(runs: &Runs, dir: &std::path::Path, noise_pct: Option<f64>) -> Value {
    let home = runs.file("home");
    std::fs::create_dir_all(&home).unwrap();
    let noise = noise_pct.map(|half_width_pct| {
        json!({
            "measured_at": "2026-01-31T12:00:00Z", "pairs": 5, "half_width_pct": half_width_pct, "pair_sd_pct": 1.0,
            "mean_pct": 0.0, "step_ms": 10.0, "flags": [],
        })
    });
    let machine = json!({ "host": "here", "cpu": "a cpu", "logical_cpus": null, "noise": noise });
    let known = json!({ "machines": if noise.is_some() { vec![machine] } else { Vec::new() } });
    std::fs::write(home.join("calibration.json"), known.to_string()).unwrap();
    let found: Value = serde_json::from_slice(&gone_on(dir, &home).stdout).unwrap();
    found["answer"].clone()
}

fn gone_on(dir: &std::path::Path, home: &std::path::Path) -> Output {
    let mut command = program();
    command.args(["sweep", "--json", "--resume"]).arg(dir).env("STEPLEDGER_HOME", home);
    command.output().unwrap()
}

#[test]
fn runs_of_two_machines_are_not_pooled() {
    let runs = Runs::new();
    let host = |repeat: usize| if repeat < 3 { "here" } else { "there" };
    let dir = swept_on(&runs, 0.1, 5, &|repeat| Made { host: host(repeat), ..Made::usual() }).unwrap();
    // Those of the other machine are missing, and cannot be made on this one.
    let refused = gone_on(&dir, &runs.file("home"));
    assert_eq!(refused.status.code(), Some(2));
    let told = stderr(&refused);
    assert!(
        told.contains("were made on here (a cpu), and this is ") && told.contains("go on there"),
        "{told}"
    );
    // Once they have been made, those of the other machine stay out of it.
    for (cell, policy) in [(1, "none"), (2, "full")] {
        for repeat in [4, 5] {
            let made = Made { minute: 100 + 2 * repeat + cell, ..Made::usual() };
            made.with("checkpoint", policy.into())
                .write(&dir, &format!("sweep-judged-c0{cell}-r{repeat}-again2"));
        }
    }
    let found: Value = serde_json::from_slice(&gone_on(&dir, &runs.file("home")).stdout).unwrap();
    let set_aside = found["set_aside"].as_array().unwrap();
    assert_eq!(set_aside.len(), 4, "{found}");
    assert_eq!(
        set_aside[0]["why"],
        "it was made on there (a cpu), and the runs that are counted on here (a cpu)"
    );
    let ids = found["cells"][0]["run_ids"].to_string();
    assert_eq!(
        (found["cells"][0]["run_ids"].as_array().unwrap().len(), ids.matches("again2").count()),
        (5, 2)
    );
}

fn second(answer: &Value) -> &str {
    answer["sentences"][1].as_str().unwrap()
}

#[test]
fn what_compare_tells_apart_is_told_apart() {
    let runs = Runs::new();
    let dir = swept(&runs, 0.1, 5, &Made::usual()).unwrap();
    let told = answer(&runs, &dir, None);
    assert_eq!(told["evidence"], "repeated_benchmark", "{told}");
    assert!(second(&told).starts_with("Next comes checkpoint full: its tokens take 10."), "{told}");
}

#[test]
fn within_this_machines_noise_nothing_is_told_apart() {
    let runs = Runs::new();
    let dir = swept(&runs, 0.1, 5, &Made::usual()).unwrap();
    let told = answer(&runs, &dir, Some(15.0));
    assert!(second(&told).starts_with("Checkpoint full is as fast within 15.0 %"), "{told}");
}

#[test]
fn what_cannot_be_told_is_a_smoke_test() {
    let runs = Runs::new();
    // Right at the end of the margin.
    let dir = swept(&runs, 0.01, 5, &Made::usual()).unwrap();
    let told = answer(&runs, &dir, None);
    assert!(second(&told).contains("cannot be told from it by 5 repeats"), "{told}");
    assert_eq!(told["evidence"], "smoke_test", "{told}");
}

#[test]
fn two_repeats_and_heavy_instruments_prove_nothing() {
    let runs = Runs::new();
    let told = answer(&runs, &swept(&runs, 0.1, 2, &Made::usual()).unwrap(), None);
    assert!(second(&told).contains("no proof yet"), "{told}");
    assert_eq!(told["evidence"], "smoke_test", "{told}");
    let runs = Runs::new();
    let heavy = Made { observer_ns: 1_000_000, ..Made::usual() };
    let told = answer(&runs, &swept(&runs, 0.1, 5, &heavy).unwrap(), None);
    assert!(second(&told).contains("instruments cost"), "{told}");
    assert_eq!(told["evidence"], "smoke_test", "{told}");
}

#[test]
fn a_run_that_took_anothers_place_keeps_it_when_that_one_is_removed() {
    let runs = Runs::new();
    let dir = swept(&runs, 0.1, 5, &Made::usual()).unwrap();
    let first = "sweep-judged-c01-r1";
    let again = Made { minute: 100, ..Made::usual() }.with("checkpoint", "none".into());
    again.write(&dir, &format!("{first}-again2"));
    // As a kill leaves it: begun, and nothing flushed. Then it is removed, as `list` and `rm` would.
    std::fs::remove_file(dir.join(first).join("run.parquet")).unwrap();
    let counted = || {
        let output = gone_on(&dir, &runs.file("home"));
        assert!(output.status.success() && !stderr(&output).contains("run 1"), "{}", stderr(&output));
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        (found["complete"].clone(), found["cells"][0]["run_ids"].clone())
    };
    let before = counted();
    assert_eq!((&before.0, &before.1[0]), (&true.into(), &format!("{first}-again2").into()));
    let removed = program().args(["rm", "--yes"]).arg(dir.join(first)).output().unwrap();
    assert!(removed.status.success(), "{}", stderr(&removed));
    assert_eq!(counted(), before);
}

#[test]
fn runs_that_compare_would_not_pool_are_set_aside() {
    let other_torch = Made { torch: "2.12.0", ..Made::usual() };
    let counted = "and the runs that are counted with";
    // Most runs say how they are made, wherever the odd ones stand.
    for odd in [0, 4] {
        for (other, expected) in [
            (Made::usual().with("threads", 1.into()), format!("threads 1, {counted} threads 2")),
            (other_torch.clone(), format!("torch_version 2.12.0, {counted} torch_version 2.11.0")),
        ] {
            let runs = Runs::new();
            let made = |repeat| if repeat == odd { other.clone() } else { Made::usual() };
            let dir = swept_on(&runs, 0.1, 5, &made).unwrap();
            let number = odd + 1;
            for (cell, policy) in [(1, "none"), (2, "full")] {
                let again = Made { minute: 100 + cell, ..Made::usual() }.with("checkpoint", policy.into());
                again.write(&dir, &format!("sweep-judged-c0{cell}-r{number}-again2"));
            }
            let output = gone_on(&dir, &runs.file("home"));
            assert!(!stderr(&output).contains("run "), "nothing is made again: {}", stderr(&output));
            let found: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(found["complete"], true);
            let set_aside = found["set_aside"].as_array().unwrap();
            assert_eq!(set_aside.len(), 2, "{found}");
            assert!(set_aside[0]["run_id"].as_str().unwrap().ends_with(&format!("-r{number}")), "{found}");
            assert_eq!(set_aside[0]["why"], format!("it was made with {expected}"));
            let ids = found["cells"][0]["run_ids"].as_array().unwrap();
            let again = format!("sweep-judged-c01-r{number}-again2");
            assert_eq!((ids.len(), ids[odd].as_str()), (5, Some(again.as_str())));
        }
    }
}

#[test]
fn the_way_out_under_not_counted_works_as_it_stands() {
    let runs = Runs::new();
    let dir = swept(&runs, 0.1, 5, &Made::usual()).unwrap();
    let name = "sweep-judged-c01-r1";
    std::fs::remove_file(dir.join(name).join("steps-0001.parquet")).unwrap();
    Made { minute: 100, ..Made::usual() }
        .with("checkpoint", "none".into())
        .write(&dir, &format!("{name}-again2"));
    // A folder that is not the usual one, and that a shell takes for two words.
    let moved = runs.file("my runs");
    std::fs::rename(runs.file("runs"), &moved).unwrap();
    let mut resume = program();
    resume.args(["sweep", "--resume", "my runs/sweep-judged"]).current_dir(runs.path());
    let output = resume.output().unwrap();
    let told = stdout(&output);
    let command = told.lines().find(|line| line.trim().starts_with("stepledger rm ")).expect(&told);
    let mut shell = std::process::Command::new("sh");
    let here = env!("CARGO_BIN_EXE_stepledger");
    shell.args(["-c", &command.replace("stepledger rm", &format!("'{here}' rm --yes"))]);
    let removed = shell.current_dir(runs.path()).output().unwrap();
    assert!(removed.status.success(), "{command}: {}", stderr(&removed));
    assert!(!moved.join("sweep-judged").join(name).exists());
}
