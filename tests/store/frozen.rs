//! Datasets of every schema version so far still open.
//!
//! Each folder of `tests/datasets` was written once, by
//!
//!     STEPLEDGER_FREEZE=1 cargo test --no-default-features --test store frozen
//!
//! which makes `v<SCHEMA_VERSION>` where there is none yet. Never write one anew: it stands for the files that
//! people have.

use std::path::{Path, PathBuf};

use stepledger::record::{RunRow, RunStatus, SCHEMA_VERSION};
use stepledger::store::Dataset;

use crate::{Rows, create, push, rows};

const STEPS: i64 = 4;

fn datasets() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/datasets")
}

#[test]
fn every_version_opens_and_holds_what_was_put_in() {
    freeze_if_asked();
    for version in 1..=SCHEMA_VERSION {
        let name = format!("v{version}");
        let dir = datasets().join(&name);
        let run = rows::run(&name, RunStatus::Complete);
        // Came with version 3, and with version 4.
        let reference_rates = run.reference_rates.clone().filter(|_| version >= 3);
        let steps = run.steps.filter(|_| version >= 4);
        let run = RunRow { schema_version: version, reference_rates, steps, ..run };
        assert_eq!(Dataset::open(&dir).unwrap().run(), &run);
        // What versions 2 to 4 added to the other tables is null here, as version 1 reads.
        assert_eq!(Rows::read(&dir), Rows::of(0..STEPS));
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
