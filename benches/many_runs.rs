//! What `stepledger list`, `compare` and `plan` take for a folder of many runs, and how much memory.
//!
//! `cargo bench --bench many_runs [-- RUNS]`. The runs are made up, of 100 steps each; the time is that of the whole
//! program, from its start to its end, and the memory the most that it held.

use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

#[path = "../tests/store/rows.rs"]
#[allow(dead_code)] // this uses its own part of it
mod rows;

use stepledger::record::{RunRow, RunStatus};
use stepledger::store::DatasetWriter;

const ROUNDS: usize = 5;
const STEPS: i64 = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let runs: i64 = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(1000);
    println!("median (slowest) of {ROUNDS} rounds");
    for runs in [runs / 10, runs] {
        let folder = tempfile::tempdir()?;
        for run in 0..runs {
            make(&folder.path().join("a"), run, 8);
            if run < 5 {
                make(&folder.path().join("b"), run, 16);
            }
        }
        println!("{runs} runs");
        measure(folder.path(), "list", "list --out a")?;
        measure(folder.path(), "compare", "compare a b")?;
        measure(folder.path(), "plan", "plan --capacity-mb 64 --from a b")?;
    }
    Ok(())
}

/// A run like the default GPT's, without its allocations, which none of these commands reads.
fn make(out: &Path, number: i64, batch: i64) {
    let mut run = RunRow {
        started_at: rows::instant(60_000_000 * number),
        steps: Some(STEPS),
        ..rows::run(&format!("run-{batch}-{number:05}"), RunStatus::Complete)
    };
    run.config.insert("batch".to_owned(), batch.into());
    let mut writer = DatasetWriter::create(out, &run).unwrap();
    for step in 0..STEPS {
        let (mut row, phases, moments, _) = rows::step(step);
        row.optimizer_calls = Some(1);
        row.wall_ns = row.wall_ns * batch / 8;
        row.peak_bytes = row.peak_bytes.map(|bytes| bytes * batch / 8);
        writer.push(row, phases, moments, Vec::new());
    }
    writer.finish(&run, &[]).unwrap();
}

fn measure(folder: &Path, name: &str, args: &str) -> Result<(), Box<dyn Error>> {
    let (mut seconds, mut memory) = (Vec::new(), 0);
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        let mut command = Command::new(env!("CARGO_BIN_EXE_stepledger"));
        command.args(args.split_whitespace()).current_dir(folder).stdout(Stdio::null());
        let mut child = command.spawn()?;
        // Its peak, read while it runs: it is gone with the process.
        while child.try_wait()?.is_none() {
            memory = memory.max(peak_kib(child.id()).unwrap_or(0));
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        seconds.push(begin.elapsed().as_secs_f64());
        if !child.wait()?.success() {
            return Err(format!("stepledger {args} failed").into());
        }
    }
    seconds.sort_by(f64::total_cmp);
    let (median, slowest) = (seconds[ROUNDS / 2], seconds[ROUNDS - 1]);
    println!("  {name:8} {median:.3} s ({slowest:.3} s), {:.1} MiB", memory as f64 / 1024.0);
    Ok(())
}

fn peak_kib(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
