//! The noise of this machine: kept for it, and taken into account.

use serde_json::{Value, json};

use super::made_up::Made;
use super::{Runs, compare, near, program, repeated, stderr, stepledger};

fn calibration(runs: &Runs, host: &str, half_width_pct: f64, flags: &[&str]) {
    let noise = json!({
        "measured_at": "2026-01-31T12:00:00Z", "pairs": 5, "half_width_pct": half_width_pct,
        "pair_sd_pct": 2.0, "mean_pct": 0.1, "step_ms": 10.0, "flags": flags,
    });
    let machine =
        json!({ "host": host, "cpu": "a cpu", "logical_cpus": null, "noise": noise, "bandwidth": 7 });
    std::fs::create_dir_all(runs.file("home")).unwrap();
    std::fs::write(runs.file("home/calibration.json"), json!({ "machines": [machine] }).to_string()).unwrap();
}

fn compared(runs: &Runs) -> Value {
    compare(runs, &["--json"]).json()
}

#[test]
fn noise_above_one_percent_is_the_margin_on_its_own_machine() {
    let runs = repeated(5, &Made::usual(), &Made { step_ms: 10.5, ..Made::usual() });
    let least = compared(&runs);
    assert_eq!((&least["verdict"], &least["margin"]["source"]), (&json!("slower"), &json!("least")));
    near(&least["margin"]["low_pct"], -100.0 / 101.0, 1e-9);
    assert!(least["notes"].to_string().contains("calibrate --noise") && least["noise"].is_null(), "{least}");
    for (host, half_width, verdict, pct, source) in [
        ("here", 8.0, "same", 8.0, "noise"),
        ("here", 5.0, "cannot_tell", 5.0, "noise"),
        ("here", 0.4, "slower", 1.0, "least"),
        ("elsewhere", 8.0, "slower", 1.0, "least"),
    ] {
        calibration(&runs, host, half_width, &[]);
        let found = compared(&runs);
        assert_eq!(
            (&found["verdict"], &found["margin"]["source"]),
            (&json!(verdict), &json!(source)),
            "{found}"
        );
        near(&found["margin"]["pct"], pct, 1e-9);
        near(&found["margin"]["high_pct"], pct, 1e-9);
    }
}

/// The band is one of logarithms: 8 % more time at one end, 7.4 % less at the other.
#[test]
fn what_is_said_of_the_lower_end_is_true() {
    let quiet = Made { lots: 0.1, ..Made::usual() };
    for (factor, verdict, told) in [
        (0.9235, "faster", "is below −7.41 %"),
        (0.935, "same", "is within −7.41 % to +8.00 %"),
        (0.9259, "cannot_tell", "lies across an end of the margin, −7.41 % to +8.00 %"),
    ] {
        let runs = repeated(5, &quiet, &Made { step_ms: 10.0 * factor, ..quiet.clone() });
        calibration(&runs, "here", 8.0, &[]);
        let found = compared(&runs);
        assert_eq!(found["verdict"], verdict, "{factor}: {found}");
        let reason = found["reason"].as_str().unwrap();
        assert!(reason.contains(told) && !reason.contains('-'), "{reason}");
    }
}

#[test]
fn the_noise_that_sets_the_margin_is_told() {
    let runs = repeated(5, &Made::usual(), &Made::usual());
    calibration(&runs, "here", 8.0, &["--threads", "1"]);
    assert_eq!(compared(&runs)["noise"]["flags"], json!(["--threads", "1"]));
    let text = compare(&runs, &[]).stdout;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("measured on 2026-01-31 with `run --threads 1`, steps of 10.0 ms"), "{text}");
    assert!(!text.contains("is the noise of steps"), "{text}");
    let long =
        repeated(5, &Made { step_ms: 40.0, ..Made::usual() }, &Made { step_ms: 40.0, ..Made::usual() });
    calibration(&long, "here", 8.0, &[]);
    let notes = compared(&long)["notes"].to_string();
    assert!(notes.contains("the noise of steps of 10.000 ms, and these take 39.9"), "{notes}");
}

#[test]
fn noise_of_another_kind_of_device_is_not_used() {
    let runs = repeated(5, &Made::usual(), &Made::usual());
    calibration(&runs, "here", 8.0, &["--device", "cuda:1"]);
    let found = compared(&runs);
    assert_eq!((&found["margin"]["source"], &found["noise"]), (&json!("least"), &json!(null)), "{found}");
    let on_card = Made { device: "cuda:0", ..Made::usual() };
    let runs = repeated(5, &on_card, &on_card);
    calibration(&runs, "here", 8.0, &["--device", "cuda:1"]);
    assert_eq!(compared(&runs)["margin"]["source"], "noise");
}

/// Refused before anything runs, not after ten runs.
#[test]
fn noise_of_too_few_steps_is_refused_at_once() {
    let runs = Runs::new();
    for (flags, parts) in [
        (&["--steps", "10"][..], ["--steps 10 is too few", "--steps 60 or more"]),
        (&["--steps", "59"], ["--steps 59 is too few", "30 must be left"]),
        (&["--stepps", "90"], ["--stepps", "unexpected argument"]),
    ] {
        let arguments =
            [&["calibrate", "--noise", "--out"], &[runs.path().to_str().unwrap(), "--"][..], flags];
        let mut command = program();
        command.args(arguments.concat()).env("STEPLEDGER_HOME", runs.file("home"));
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(parts.iter().all(|part| stderr(&output).contains(part)), "{}", stderr(&output));
        assert_eq!(std::fs::read_dir(runs.path()).unwrap().count(), 0, "nothing ran");
    }
}

#[test]
fn a_damaged_calibration_is_named() {
    let runs = repeated(1, &Made::usual(), &Made::usual());
    std::fs::create_dir(runs.file("home")).unwrap();
    std::fs::write(runs.file("home/calibration.json"), "{").unwrap();
    let said = compare(&runs, &[]);
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.contains("calibration.json is damaged"), "{}", said.stderr);
}

#[test]
fn flags_that_make_no_sense_are_refused() {
    let runs = Runs::new();
    for (flags, part) in [
        (&["calibrate", "--pairs", "5"][..], "--noise"),
        (&["calibrate", "--noise", "--pairs", "4"], "5..=1000"),
    ] {
        let said = stepledger(&runs, flags);
        assert_eq!(said.code, Some(2), "{flags:?}");
        assert!(said.stderr.contains(part), "{flags:?}: {}", said.stderr);
    }
}
