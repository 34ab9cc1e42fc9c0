use stepledger::record::RunStatus;

use crate::{create, push, rows};

const STEPS: i64 = 110;
const STEPS_A_FLUSH: usize = 50;
/// The promise is 10 KiB with everything; the made-up run needs 1.6.
const MOST_BYTES_A_STEP: u64 = 3 * 1024;

#[test]
fn a_step_takes_little_room() {
    let out = tempfile::tempdir().unwrap();
    let mut writer = create(out.path(), "size");
    for step in 0..STEPS {
        push(&mut writer, [step]);
        if writer.buffered_steps() == STEPS_A_FLUSH {
            writer.flush(&rows::open()).unwrap();
        }
    }
    let dir = writer.finish(&rows::run("size", RunStatus::Complete), &rows::open()).unwrap();
    let bytes: u64 = dir.read_dir().unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    let bytes_a_step = bytes / STEPS as u64;
    assert!(bytes_a_step < MOST_BYTES_A_STEP, "{bytes_a_step} bytes a step");
}
