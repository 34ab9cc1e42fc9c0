//! What `stepledger list` takes for a folder of many runs.
//!
//! `cargo bench --bench list [-- RUNS]`. The runs are made up, of 100 steps each; the time is that of the whole
//! program, from its start to its end.

use std::error::Error;
use std::process::Command;
use std::time::Instant;

#[path = "../tests/list/made_up.rs"]
#[allow(dead_code)] // this uses its own part of it
mod made_up;

use made_up::MadeUp;

const ROUNDS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let runs: i64 = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(1000);
    let folder = tempfile::tempdir()?;
    for run in 0..runs {
        // A name that lives as long as the program, as the made-up runs of the tests have.
        let id: &'static str = format!("run-{run:05}").leak();
        MadeUp { steps: 100, ..MadeUp::new(id, run, 1 + run % 16) }.write(folder.path());
    }
    let mut seconds = Vec::new();
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        let output = Command::new(env!("CARGO_BIN_EXE_stepledger"))
            .arg("list")
            .arg("--out")
            .arg(folder.path())
            .output()?;
        seconds.push(begin.elapsed().as_secs_f64());
        let lines = String::from_utf8_lossy(&output.stdout).lines().count() as i64;
        if lines != runs + 1 {
            return Err(format!(
                "{lines} lines for {runs} runs: {}",
                String::from_utf8_lossy(&output.stderr)
            )
            .into());
        }
    }
    seconds.sort_by(f64::total_cmp);
    println!(
        "{runs} runs: {:.3} s (median of {ROUNDS}; the slowest {:.3} s)",
        seconds[ROUNDS / 2],
        seconds[ROUNDS - 1]
    );
    Ok(())
}
