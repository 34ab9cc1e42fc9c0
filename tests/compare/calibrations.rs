//! The noise of this machine: kept for it, and taken into account.

use serde_json::{Value, json};

use super::made_up::Made;
use super::{Runs, compare, repeated, stepledger};

fn calibration(runs: &Runs, host: &str, half_width_pct: f64) {
    let noise = json!({
        "measured_at": "2026-01-31T12:00:00Z", "pairs": 5, "half_width_pct": half_width_pct,
        "pair_sd_pct": 2.0, "mean_pct": 0.1, "step_ms": 10.0, "flags": [],
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
    assert_eq!(
        (&least["verdict"], &least["margin"]),
        (&json!("slower"), &json!({ "pct": 1.0, "source": "least" }))
    );
    assert!(least["notes"].to_string().contains("calibrate --noise"), "{least}");
    for (host, half_width, verdict, margin) in [
        ("here", 8.0, "same", json!({ "pct": 8.0, "source": "noise" })),
        ("here", 5.0, "cannot_tell", json!({ "pct": 5.0, "source": "noise" })),
        ("here", 0.4, "slower", json!({ "pct": 1.0, "source": "least" })),
        ("elsewhere", 8.0, "slower", json!({ "pct": 1.0, "source": "least" })),
    ] {
        calibration(&runs, host, half_width);
        let found = compared(&runs);
        assert_eq!((&found["verdict"], &found["margin"]), (&json!(verdict), &margin), "{host} {half_width}");
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
