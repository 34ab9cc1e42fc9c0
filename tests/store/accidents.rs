//! Kills, full disks, foreign and broken files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use stepledger::record::{RunRow, RunStatus, SCHEMA_VERSION};
use stepledger::store::{Dataset, DatasetWriter, StoreError};

use crate::program::python;
use crate::{Rows, create, push, rows};

#[test]
fn a_killed_run_shows_what_was_flushed_and_is_running() {
    let out = tempfile::tempdir().unwrap();
    let mut writer = create(out.path(), "killed");
    push(&mut writer, 0..2);
    writer.flush(&rows::open()).unwrap();
    push(&mut writer, 2..4);
    let dir = writer.dir().to_owned();
    drop(writer);
    fs::write(dir.join("steps-0002.parquet.tmp"), "PAR1 cut short").unwrap();
    assert_eq!(Dataset::open(&dir).unwrap().run().status, RunStatus::Running);
    assert_eq!(Rows::read(&dir), Rows::of(0..2));
}

/// The disk is full for one file: its temporary name leads to a device that is always full.
fn fill_disk(dir: &Path, file: &str) {
    symlink("/dev/full", dir.join(format!("{file}.tmp"))).unwrap();
}

#[test]
fn a_full_disk_costs_nothing_that_was_flushed_and_a_later_flush_gets_the_rest() {
    for table in ["allocations", "ledger", "phases", "steps"] {
        let out = tempfile::tempdir().unwrap();
        let mut writer = create(out.path(), "full");
        push(&mut writer, 0..2);
        writer.flush(&rows::open()).unwrap();
        push(&mut writer, 2..4);
        let part = format!("{table}-0002.parquet");
        fill_disk(writer.dir(), &part);

        let message = writer.flush(&rows::open()).unwrap_err().to_string();
        for expected in [part.as_str(), "No space left", "free some space", "--out"] {
            assert!(message.contains(expected), "{message}");
        }
        assert_eq!(writer.buffered_steps(), 2, "{table}");
        assert!(
            fs::symlink_metadata(writer.dir().join(part + ".tmp")).is_err(),
            "{table}: left its temporary file"
        );
        assert_eq!(Rows::read(writer.dir()).steps, Rows::of(0..2).steps, "{table}");

        push(&mut writer, 4..5);
        writer.flush(&rows::open()).unwrap();
        assert_eq!(Rows::read(writer.dir()), Rows::of(0..5), "{table}");
    }
}

#[test]
fn a_full_disk_at_the_end_is_said_in_the_run() {
    let cases = [(RunStatus::Complete, RunStatus::Failed), (RunStatus::Interrupted, RunStatus::Interrupted)];
    for (meant, kept) in cases {
        let out = tempfile::tempdir().unwrap();
        let mut writer = create(out.path(), "full");
        push(&mut writer, 0..2);
        fill_disk(writer.dir(), "steps-0001.parquet");
        let dir = writer.dir().to_owned();
        let run = RunRow { reason: Some("as asked".to_owned()), ..rows::run("full", meant) };
        let error = writer.finish(&run, &rows::open()).unwrap_err().to_string();
        let dataset = Dataset::open(&dir).unwrap();
        assert_eq!(dataset.run().status, kept);
        assert_eq!(dataset.run().reason, Some(format!("as asked; {error}")));
    }
}

#[test]
fn a_folder_that_went_away_is_named() {
    let out = tempfile::tempdir().unwrap();
    let mut writer = create(out.path(), "gone");
    push(&mut writer, 0..1);
    fs::remove_dir_all(writer.dir()).unwrap();
    let message = writer.flush(&rows::open()).unwrap_err().to_string();
    assert!(
        message.contains("allocations-open.parquet") && message.contains("its folder is gone"),
        "{message}"
    );
}

#[test]
fn a_run_gets_a_new_folder_or_none() {
    let out = tempfile::tempdir().unwrap();
    let attempt =
        |out: &Path, id: &str| DatasetWriter::create(out, &rows::run(id, RunStatus::Running)).unwrap_err();
    create(out.path(), "twice");
    assert!(matches!(attempt(out.path(), "twice"), StoreError::Exists(_)));
    for id in ["", ".", "..", "a/b", "/a", "a/"] {
        assert!(matches!(attempt(out.path(), id), StoreError::RunId(_)), "{id:?}");
    }
    let file = out.path().join("file");
    fs::write(&file, "").unwrap();
    let message = attempt(&file, "a").to_string();
    assert!(message.contains("/file") && message.contains("a file is in the way"), "{message}");
}

#[test]
fn a_run_from_the_future_is_refused_by_its_version() {
    let out = tempfile::tempdir().unwrap();
    for version in [SCHEMA_VERSION + 1, 0, -1] {
        let id = format!("v{version}");
        let run = RunRow { schema_version: version, ..rows::run(&id, RunStatus::Complete) };
        let dir = DatasetWriter::create(out.path(), &run).unwrap().dir().to_owned();
        let message = Dataset::open(&dir).unwrap_err().to_string();
        let expected = format!("schema version {version}, and this build reads 1 to {SCHEMA_VERSION}");
        assert!(message.contains(&expected) && message.contains("at least as new"), "{message}");
    }
}

#[test]
fn what_is_no_run_or_no_table_is_named() {
    let out = tempfile::tempdir().unwrap();
    let message = Dataset::open(out.path()).unwrap_err().to_string();
    assert!(message.contains("holds no run.parquet"), "{message}");

    let mut writer = create(out.path(), "a");
    push(&mut writer, 0..1);
    writer.flush(&[]).unwrap();
    let dir = writer.dir().to_owned();
    fs::write(dir.join("steps-0002.parquet"), "half a fi").unwrap();
    let dataset = Dataset::open(&dir).unwrap();
    let message = dataset.steps().unwrap_err().to_string();
    assert!(message.contains("steps-0002.parquet is damaged"), "{message}");
    assert_eq!(dataset.phases().unwrap(), Rows::of(0..1).phases, "the other tables still read");

    fs::copy(dir.join("phases-0001.parquet"), dir.join("steps-0002.parquet")).unwrap();
    let message = dataset.steps().unwrap_err().to_string();
    assert!(message.contains("steps-0002.parquet is damaged: it has no column `warmup`"), "{message}");

    fs::copy(dir.join("steps-0001.parquet"), dir.join("run.parquet")).unwrap();
    let message = Dataset::open(&dir).unwrap_err().to_string();
    assert!(message.contains("run.parquet is damaged: it has no column `schema_version`"), "{message}");
}

/// An error or other values, but never a panic: every so many bytes one that is wrong, or the file's end.
#[test]
fn a_broken_file_never_panics() {
    let out = tempfile::tempdir().unwrap();
    let mut writer = create(out.path(), "a");
    push(&mut writer, 0..1);
    writer.flush(&[]).unwrap();
    let dataset = Dataset::open(writer.dir()).unwrap();
    let path = writer.dir().join("steps-0001.parquet");
    let whole = fs::read(&path).unwrap();
    for place in (0..whole.len()).step_by(7) {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x55;
        fs::write(&path, &bytes).unwrap();
        let _ = dataset.steps();
        fs::write(&path, &whole[..place]).unwrap();
        assert!(dataset.steps().is_err(), "cut at {place}");
    }
}

#[test]
fn experiments_are_added_one_after_the_other() {
    let out = tempfile::tempdir().unwrap();
    let mut writer = create(out.path(), "a");
    push(&mut writer, 0..1);
    let dir = writer.finish(&rows::run("a", RunStatus::Complete), &rows::open()).unwrap();
    for times in 1..=2 {
        Dataset::open(&dir).unwrap().keep_experiment(rows::experiment()).unwrap();
        let kept = Dataset::open(&dir).unwrap().experiments().unwrap();
        assert_eq!(kept, vec![rows::experiment(); times].concat());
    }
    assert_eq!(Rows::read(&dir), Rows::of(0..1));
}

#[test]
fn what_other_tools_wrote_again_is_read_or_its_compression_is_named() {
    let out = tempfile::tempdir().unwrap();
    let mut writer = create(out.path(), "rewritten");
    push(&mut writer, 0..3);
    let dir = writer.finish(&rows::run("rewritten", RunStatus::Complete), &rows::open()).unwrap();
    let rewrite = |codec| python("tests/python/recompress.py", &[&dir.to_string_lossy(), codec]);
    for codec in ["snappy", "none"] {
        assert!(rewrite(codec)["tables"].as_i64() >= Some(5));
        assert_eq!(Rows::read(&dir), Rows::of(0..3), "{codec}");
    }
    rewrite("gzip");
    let message = Dataset::open(&dir).unwrap_err().to_string();
    assert!(message.contains("run.parquet is compressed with GZIP,"), "{message}");
    assert!(message.contains("Zstandard or Snappy") && !message.contains("damaged"), "{message}");
}

/// No flag takes a record elsewhere than to its run.
#[test]
fn an_experiment_that_cannot_be_kept_is_told_where_it_belongs() {
    let out = tempfile::tempdir().unwrap();
    let dir = DatasetWriter::create(out.path(), &rows::run("run", RunStatus::Complete))
        .unwrap()
        .finish(&rows::run("run", RunStatus::Complete), &[])
        .unwrap();
    fs::create_dir(dir.join("experiments-0001.parquet.tmp")).unwrap();
    let error = Dataset::open(&dir).unwrap().keep_experiment(rows::experiment()).unwrap_err().to_string();
    assert!(error.contains("experiments-0001.parquet") && error.contains("kept with its run"), "{error}");
    assert!(!error.contains("--out"), "{error}");
}
