//! What a step costs in the dataset: bytes on disk, and milliseconds a flush.
//!
//!     cargo bench --no-default-features --bench store [-- DIR]
//!
//! DIR keeps the dataset (it must not hold a run `bench` yet); without it a temporary folder is used.

#[path = "../tests/store/rows.rs"]
#[allow(dead_code)]
mod rows;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use stepledger_core::record::RunStatus;
use stepledger_core::store::{Dataset, DatasetWriter};

const STEPS: i64 = 110;
const STEPS_A_FLUSH: usize = 50;

fn main() {
    let temporary = tempfile::tempdir().unwrap();
    let named = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let out = named.map_or(temporary.path().to_owned(), PathBuf::from);
    let mut writer = DatasetWriter::create(&out, &rows::run("bench", RunStatus::Running)).unwrap();
    let mut flushes = Vec::new();
    for step in 0..STEPS {
        let (step, phases, moments, closed) = rows::step(step);
        writer.push(step, phases, moments, closed);
        if writer.buffered_steps() == STEPS_A_FLUSH {
            flushes.push(timed(|| writer.flush(&rows::open()).unwrap()).1);
        }
    }
    let dir = writer.finish(&rows::run("bench", RunStatus::Complete), &rows::open()).unwrap();
    println!("flush of {STEPS_A_FLUSH} steps: {flushes:?}");
    report_sizes(&dir);
    report_reading(&dir);
}

fn report_sizes(dir: &Path) {
    let mut files: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap()).collect();
    files.sort_by_key(|file| file.file_name());
    let size = |file: &fs::DirEntry| file.metadata().unwrap().len();
    for file in &files {
        println!("{:>9} B  {}", size(file), file.file_name().display());
    }
    let total: u64 = files.iter().map(size).sum();
    println!("{:>9} B a step", total / STEPS as u64);
}

fn report_reading(dir: &Path) {
    let dataset = Dataset::open(dir).unwrap();
    let (lifetimes, all) = timed(|| dataset.allocations().unwrap());
    let (_, one) = timed(|| dataset.allocations_of(STEPS / 2).unwrap());
    println!("reading {} lifetimes: {all:?}; those of one step: {one:?}", lifetimes.len());
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}
