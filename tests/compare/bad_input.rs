//! What cannot be compared, and what is said of it.

use serde_json::json;
use stepledger::record::{RunStatus, SCHEMA_VERSION};

use super::made_up::Made;
use super::{Runs, compare, repeated, stepledger};

#[track_caller]
fn refused(runs: &Runs, base: &str, candidate: &str, parts: &[&str]) {
    let said = stepledger(runs, &["compare", base, candidate, "--json"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(2), ""), "{}", said.stderr);
    assert!(parts.iter().all(|part| said.stderr.contains(part)), "{}", said.stderr);
}

#[test]
fn a_run_is_not_compared_with_itself() {
    let runs = repeated(2, &Made::usual(), &Made::usual());
    refused(&runs, "base/b-0", "base/b-0", &["b-0 is on both sides"]);
    refused(&runs, "base", "base", &["is on both sides", "name another one"]);
    refused(&runs, "base", "base/b-1", &["b-1 is on both sides"]);
}

#[test]
fn runs_that_did_not_complete_are_named_as_such() {
    let runs = repeated(1, &Made::usual(), &Made::usual());
    for (status, part) in [
        (RunStatus::Running, "still going on, or was killed"),
        (RunStatus::Failed, "failed, the disk was full"),
        (RunStatus::Interrupted, "interrupted"),
        (RunStatus::OutOfMemory, "out_of_memory"),
    ] {
        Made { status, ..Made::usual() }.write(runs.path(), status.as_str());
        refused(&runs, "base", status.as_str(), &[status.as_str(), part]);
    }
}

#[test]
fn among_repeats_they_are_left_out_by_name() {
    let runs = repeated(5, &Made::usual(), &Made { step_ms: 11.0, ..Made::usual() });
    Made { status: RunStatus::Running, minute: 50, ..Made::usual() }.write(&runs.file("base"), "killed");
    Made { steps: 0, minute: 51, ..Made::usual() }.write(&runs.file("base"), "empty");
    Made { schema_version: SCHEMA_VERSION + 1, ..Made::usual() }.write(&runs.file("base"), "newer");
    std::fs::create_dir(runs.file("base/broken")).unwrap();
    std::fs::write(runs.file("base/broken/run.parquet"), "no Parquet").unwrap();
    let said = compare(&runs, &["--json"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let found = said.json();
    assert_eq!((&found["verdict"], &found["pairs"]), (&json!("slower"), &json!(5)), "{found}");
    let left_out = found["base"]["left_out"].as_array().unwrap();
    let of = |run: &str| left_out.iter().find(|out| out["run"] == run).unwrap()["why"].to_string();
    assert!(of("killed").contains("was killed") && of("empty").contains("no measured step"), "{left_out:?}");
    assert!(of("newer").contains("schema version") && of("broken").contains("damaged"), "{left_out:?}");
    assert_eq!(left_out.len(), 4);
    let text = compare(&runs, &[]).stdout;
    assert!(text.contains("left out: killed: it is still going on"), "{text}");
}

#[test]
fn a_folder_of_several_configurations_is_refused_by_their_fields() {
    let runs = repeated(2, &Made::usual(), &Made::usual());
    Made::usual().with("batch", json!(16)).with("seed", json!(3)).write(&runs.file("base"), "other");
    refused(&runs, "base", "candidate", &["several configurations", "batch, seed vary"]);
}

#[test]
fn nothing_to_compare_is_said() {
    let runs = repeated(1, &Made::usual(), &Made::usual());
    refused(
        &runs,
        "base",
        "nowhere",
        &["nowhere", "there are: candidate (a folder of runs), base (a folder of runs)"],
    );
    stepledger(&runs, &["baseline", "set", "main", "base"]);
    refused(&runs, "base", "mian", &["there are: main (a baseline), "]);
    refused(&runs, "base", "cnadidate", &["there are: candidate (a folder of runs), "]);
    refused(&runs, "base", "", &["is called \"\""]);
    std::fs::create_dir(runs.file("hollow")).unwrap();
    refused(&runs, "base", "hollow", &["no run in", "hollow"]);
    Made { steps: 0, ..Made::usual() }.write(runs.path(), "unmeasured");
    refused(&runs, "base", "unmeasured", &["no measured step (4 of warm-up)", "--steps 60"]);
    Made { schema_version: SCHEMA_VERSION + 1, ..Made::usual() }.write(runs.path(), "from-the-future");
    refused(&runs, "base", "from-the-future", &["schema version", "at least as new"]);
    Made { step_ms: 0.0, ..Made::usual() }.write(runs.path(), "timeless");
    refused(&runs, "base", "timeless", &["took 0 ns"]);
    Made { status: RunStatus::Failed, ..Made::usual() }.write(&runs.file("failures"), "one");
    refused(&runs, "base", "failures", &["no run in failures can be compared", "one: it did not complete"]);
    for run in 0..7 {
        Made { status: RunStatus::Failed, ..Made::usual() }.write(&runs.file("many"), &format!("f{run}"));
    }
    refused(&runs, "base", "many", &["f4: it did not complete", "; and 2 more"]);
}
