//! Datasets of every schema version so far still open.
//!
//! `tests/datasets/v1` was written once, by
//!
//!     STEPLEDGER_FREEZE=1 cargo test --no-default-features --test store frozen
//!
//! which makes `v<SCHEMA_VERSION>` where there is none yet. Never write one anew once its version has been
//! released (version 1: with 0.1.0): it stands for the files that people have.

use std::path::{Path, PathBuf};

use stepledger::record::{RunStatus, SCHEMA_VERSION};
use stepledger::store::Dataset;

use crate::{Rows, create, push, rows};

const STEPS: i64 = 4;

fn datasets() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/datasets")
}

#[test]
fn version_1_opens_and_holds_what_was_put_in() {
    freeze_if_asked();
    let dir = datasets().join("v1");
    assert_eq!(Dataset::open(&dir).unwrap().run(), &rows::run("v1", RunStatus::Complete));
    assert_eq!(Rows::read(&dir), Rows::of(0..STEPS));
}

#[test]
fn every_schema_version_has_a_frozen_dataset() {
    freeze_if_asked();
    for version in 1..=SCHEMA_VERSION {
        let dir = datasets().join(format!("v{version}"));
        assert_eq!(Dataset::open(&dir).unwrap().run().schema_version, version);
    }
}

fn freeze_if_asked() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let name = format!("v{SCHEMA_VERSION}");
        if std::env::var_os("STEPLEDGER_FREEZE").is_some() && !datasets().join(&name).exists() {
            freeze(&name);
        }
    });
}

fn freeze(name: &str) {
    let mut writer = create(&datasets(), name);
    push(&mut writer, 0..STEPS / 2);
    writer.flush(&rows::open()).unwrap();
    push(&mut writer, STEPS / 2..STEPS);
    writer.finish(&rows::run(name, RunStatus::Complete), &rows::open()).unwrap();
}
