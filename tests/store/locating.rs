use std::fs;
use std::path::Path;

use stepledger::record::{RunRow, RunStatus};
use stepledger::store::{Dataset, DatasetWriter, newest, resolve};

use crate::rows::{self, instant};

/// Runs that started in the order given, in a folder that also holds other things.
fn out_with(runs: &[&str]) -> tempfile::TempDir {
    let out = tempfile::tempdir().unwrap();
    for (id, second) in runs.iter().zip(0..) {
        let run = RunRow { started_at: instant(second * 1_000_000), ..rows::run(id, RunStatus::Running) };
        DatasetWriter::create(out.path(), &run).unwrap();
    }
    fs::create_dir(out.path().join("zzz-no-run")).unwrap();
    fs::write(out.path().join("notes.txt"), "").unwrap();
    out
}

#[test]
fn the_newest_is_the_one_that_started_last() {
    let out = out_with(&["c", "a", "b"]);
    assert_eq!(newest(out.path()).unwrap(), out.path().join("b"));
    assert_eq!(resolve(out.path(), None).unwrap(), out.path().join("b"));
}

#[test]
fn a_newest_run_that_is_damaged_is_not_passed_over() {
    let out = out_with(&["old"]);
    fs::create_dir(out.path().join("broken")).unwrap();
    fs::write(out.path().join("broken/run.parquet"), "no Parquet").unwrap();
    let dir = newest(out.path()).unwrap();
    assert!(Dataset::open(&dir).unwrap_err().to_string().contains("broken/run.parquet is damaged"));
}

#[test]
fn a_run_is_found_by_id_by_prefix_and_by_path() {
    let out = out_with(&["20260101-1", "20260101-12", "20260202-7"]);
    let elsewhere = out_with(&["other"]);
    let path = elsewhere.path().join("other");
    let cases = [
        ("20260101-1", out.path().join("20260101-1")),
        ("20260101-12", out.path().join("20260101-12")),
        ("202602", out.path().join("20260202-7")),
        (path.to_str().unwrap(), path.clone()),
    ];
    for (asked, found) in cases {
        assert_eq!(resolve(out.path(), Some(asked)).unwrap(), found, "{asked}");
    }
}

#[test]
fn what_is_not_found_is_explained() {
    let check = |out: &Path, run: Option<&str>, expected: &[&str]| {
        let message = resolve(out, run).unwrap_err().to_string();
        expected.iter().for_each(|part| assert!(message.contains(part), "{message}"));
    };
    let out = out_with(&["20260101-1", "20260101-12", "20260202-7"]);
    check(
        out.path(),
        Some("2026"),
        &["could be any of", "20260202-7, 20260101-12, 20260101-1", "more of the name"],
    );
    check(out.path(), Some("1999"), &["no run in", "\"1999\"", "20260202-7"]);
    check(out.path(), Some("20260101-3"), &["there are: 20260101-1, 20260101-12, 20260202-7"]);
    check(out.path(), Some("zzz-no-run"), &["\"zzz-no-run\"", "there are: 20260202-7"]);
    // A folder of runs is none, wherever it is.
    let elsewhere = out.path().to_str().unwrap();
    check(
        Path::new("nowhere"),
        Some(elsewhere),
        &["is a folder of runs, not a run", &format!("--out {elsewhere}")],
    );
    let empty = out_with(&[]);
    let missing = empty.path().join("missing");
    for (out, run) in [(empty.path(), None), (empty.path(), Some("a")), (missing.as_path(), None)] {
        check(out, run, &["there is no run in", out.to_str().unwrap(), "stepledger run"]);
    }
    check(&empty.path().join("notes.txt"), None, &["cannot read", "notes.txt"]);
}
