//! Every thread's allocations, against the allocator's own bookkeeping.
#![cfg(feature = "torch")]

#[path = "common/program.rs"]
mod program;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use program::{ROOT, Runs, stderr};
use stepledger::record::Category;
use stepledger::store::Dataset;

/// What stands before each block of ours (probe/hook/allocator.cpp).
const HEADER: i64 = 64;

fn build_double(runs: &Runs) -> PathBuf {
    let double = runs.file("liballoc_cpu.so");
    let source = Path::new(ROOT).join("tests/doubles/alloc_cpu.cpp");
    let mut compiler = Command::new("c++");
    let output = compiler
        .args(["-std=c++17", "-O1", "-shared", "-fPIC", "-o"])
        .arg(&double)
        .arg(source)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    double
}

/// Allocations, their bytes, and frees, as counted under the hook, in libtorch's own allocator.
fn counts(file: &Path) -> [i64; 3] {
    let text = fs::read_to_string(file).unwrap();
    let numbers: Vec<i64> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}

/// The program preloads the double, whose counts know nothing of the hook: as many allocations, byte for byte.
/// In bf16 on two threads, OpenMP's workers allocate (in flash attention's backward), which no thread-local
/// observer sees.
#[test]
fn nothing_is_lost_and_nothing_is_double_on_any_thread() {
    for threads in [1, 2] {
        for dtype in ["f32", "bf16", "amp-bf16"] {
            let runs = Runs::new();
            let log = runs.file("counts");
            let size = "--layers 2 --width 64 --heads 2 --seq 32 --batch 4 --steps 3 --warmup 1";
            let mut run = runs.command(&format!("{size} --threads {threads} --dtype {dtype}"));
            run.env("LD_PRELOAD", build_double(&runs)).env("ALLOC_COUNTS", &log);
            let output = run.output().unwrap();
            assert!(output.status.success(), "{}", stderr(&output));
            let [allocations, bytes, frees] = counts(&log);
            let dataset = Dataset::open(&runs.only_run()).unwrap();
            let lifetimes = dataset.allocations().unwrap();
            let seen: i64 = lifetimes.iter().map(|row| row.bytes).sum();
            assert_eq!(lifetimes.len() as i64, allocations, "{dtype}, {threads} threads");
            assert_eq!(seen + HEADER * allocations, bytes, "{dtype}, {threads} threads");
            let freed = lifetimes.iter().filter(|row| row.freed_ns.is_some()).count() as i64;
            assert!(freed <= frees, "{freed} frees of {frees}, {dtype}, {threads} threads");
            // What is alive as the account closes is what training keeps: a free that was lost, on whatever thread,
            // would leave something else.
            for row in lifetimes.iter().filter(|row| row.freed_ns.is_none()) {
                let kept = [Category::Parameter, Category::Gradient, Category::AdamState];
                assert!(kept.contains(&row.category), "{row:?}, {dtype}, {threads} threads");
            }
            assert!(dataset.steps().unwrap().iter().all(|step| step.difference_bytes == Some(0)));
            let workers = lifetimes.iter().filter(|row| row.thread > 0).count();
            assert_eq!(workers > 0, threads > 1, "{dtype}: {workers} allocations on other threads");
        }
    }
}
