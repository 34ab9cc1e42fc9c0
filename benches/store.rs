//! What a step costs in the dataset: bytes on disk, and CPU milliseconds of a run's start, flushes and end.
//!
//!     cargo bench --no-default-features --bench store [-- DIR]
//!
//! DIR keeps the dataset (it must not hold a run `bench` yet); without it a temporary folder is used. To
//! compare encoders set TMPDIR to a folder in memory, such as /dev/shm: ext4 takes ever longer to make files
//! where many have just been removed, as rounds of this bench do.

#[path = "../tests/store/rows.rs"]
#[allow(dead_code)]
mod rows;

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rows::StepRows;
use stepledger_core::record::{AllocationRow, RunStatus};
use stepledger_core::store::{Dataset, DatasetWriter};

const STEPS_A_FLUSH: i64 = 50;
const ROUNDS: usize = 20;

fn main() {
    let temporary = tempfile::tempdir().unwrap();
    let named = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let out = named.map_or(temporary.path().join("kept"), PathBuf::from);
    println!("CPU time on the writing thread, median (least) of {ROUNDS}:");
    let default = [0, STEPS_A_FLUSH].map(default_steps);
    measure("default GPT", temporary.path(), &default);
    measure("small GPT", temporary.path(), &[0, STEPS_A_FLUSH].map(small_steps));
    let dir = write(&out, "bench", &default, &mut Costs::default());
    report_sizes(&dir);
    report_reading(&dir);
}

/// The steps of two flushes.
type Steps = [Vec<StepRows>; 2];

fn default_steps(first: i64) -> Vec<StepRows> {
    share_names((first..first + STEPS_A_FLUSH).map(rows::step).collect())
}

/// Steps of 5 ms with more blocks, as many lifetimes as two default ones.
fn small_steps(first: i64) -> Vec<StepRows> {
    let step = |step| {
        let (row, phases, moments, mut ended) = rows::step(2 * step);
        ended.extend(rows::step(2 * step + 1).3);
        (row, phases, moments, ended)
    };
    share_names((first..first + STEPS_A_FLUSH).map(step).collect())
}

/// As in a run, where each name is one allocation.
fn share_names(mut steps: Vec<StepRows>) -> Vec<StepRows> {
    let mut known: HashSet<Arc<str>> = HashSet::new();
    let mut share = |name: &mut Arc<str>| match known.get(name) {
        Some(first) => *name = Arc::clone(first),
        None => _ = known.insert(Arc::clone(name)),
    };
    for (_, phases, _, ended) in &mut steps {
        phases.iter_mut().for_each(|row| {
            [Some(&mut row.name), row.parent.as_mut()].into_iter().flatten().for_each(&mut share)
        });
        ended
            .iter_mut()
            .for_each(|row| [&mut row.name, &mut row.scope].into_iter().flatten().for_each(&mut share));
    }
    steps
}

#[derive(Default)]
struct Costs {
    start: Vec<Duration>,
    flush: Vec<Duration>,
    end: Vec<Duration>,
}

fn measure(what: &str, out: &Path, steps: &Steps) {
    let mut costs = Costs::default();
    let mut bytes = 0;
    for round in 0..ROUNDS {
        let dir = write(out, &format!("{what}-{round}"), steps, &mut costs);
        bytes = sizes(&dir).iter().map(|(_, size)| size).sum::<u64>() / (2 * STEPS_A_FLUSH as u64);
    }
    let Costs { start, flush, end } = costs;
    let [start, flush, end] = [start, flush, end].map(summary);
    println!("{what:<12} start {start}; flush of {STEPS_A_FLUSH} steps {flush}; end {end}; {bytes} B a step");
}

/// A run of two flushes, the second of which is its end but for `run.parquet`.
fn write(out: &Path, run_id: &str, steps: &Steps, costs: &mut Costs) -> PathBuf {
    let open: Vec<AllocationRow> = rows::open();
    let run = rows::run(run_id, RunStatus::Running);
    let mut writer = timed(&mut costs.start, || DatasetWriter::create(out, &run).unwrap());
    for steps in steps.clone() {
        timed(&mut costs.flush, || {
            for (step, phases, moments, ended) in steps {
                writer.push(step, phases, moments, ended);
            }
            writer.flush(&open).unwrap();
        });
    }
    let run = rows::run(run_id, RunStatus::Complete);
    timed(&mut costs.end, || writer.finish(&run, &open).unwrap())
}

fn summary(mut times: Vec<Duration>) -> String {
    times.sort();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    format!("{:.2} ms ({:.2})", ms(times[times.len() / 2]), ms(times[0]))
}

fn sizes(dir: &Path) -> Vec<(String, u64)> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let mut files: Vec<_> = entries
        .map(|entry| (entry.file_name().display().to_string(), entry.metadata().unwrap().len()))
        .collect();
    files.sort();
    files
}

fn report_sizes(dir: &Path) {
    for (file, size) in sizes(dir) {
        println!("{size:>9} B  {file}");
    }
}

fn report_reading(dir: &Path) {
    let dataset = Dataset::open(dir).unwrap();
    let start = Instant::now();
    let lifetimes = dataset.allocations().unwrap();
    let all = start.elapsed();
    let start = Instant::now();
    dataset.allocations_of(STEPS_A_FLUSH / 2).unwrap();
    println!("reading {} lifetimes: {all:?}; those of one step: {:?}", lifetimes.len(), start.elapsed());
}

/// Adds the CPU time that `work` takes of this thread: the disk and other processes are left out.
fn timed<T>(times: &mut Vec<Duration>, work: impl FnOnce() -> T) -> T {
    let start = cpu_time();
    let result = work();
    times.push(cpu_time() - start);
    result
}

fn cpu_time() -> Duration {
    #[repr(C)]
    struct Timespec {
        seconds: i64,
        nanoseconds: i64,
    }
    unsafe extern "C" {
        fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
    }
    const CLOCK_THREAD_CPUTIME_ID: i32 = if cfg!(target_os = "macos") { 16 } else { 3 };
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: `time` is what the call fills, laid out as on every 64-bit Unix.
    assert_eq!(unsafe { clock_gettime(CLOCK_THREAD_CPUTIME_ID, &raw mut time) }, 0);
    Duration::new(time.seconds as u64, time.nanoseconds as u32)
}
