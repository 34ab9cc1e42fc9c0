//! `stepledger calibrate`: what is true of this machine, whatever is run on it.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, value_parser};

use super::calibrate_noise;
use super::engine::Engine;
use super::exit::{Exit, Outcome};
use super::note::note;
use super::show::write_json;
use crate::record::{DeviceRates, Machine};
use crate::report::{doubts_of_rates, render_rates};
use crate::store::{Calibrations, StoreError, home};

const AFTER_HELP: &str = "\
Without --noise it measures what a device can do at most: memory bandwidth (copy and triad, over arrays of \
four times all last-level caches together, of 1 GiB where the system does not list these, of 4 GiB at most; it warns where \
they are too small, and where rates scatter), the rate of a matrix product in f32 and in bf16, as large as three quarters of a second allow, and on a \
GPU that of multiply-adds. Each is the median of five rounds of 0.1 s or more; on a GPU copy, triad and multiply-adds are \
that of 20 launches. Runs made after that keep these rates, and `show` says what share of them a step reaches.

`--noise` trains the same model again and again, each time in a process of its own, in pairs. What the two runs of a \
pair differ by is noise: `stepledger compare` takes no smaller difference for a change, on this machine and this kind of \
device. Short steps are noisier than long ones, so give it the flags of what you mean to compare; 60 measured steps are \
the least, on a GPU times --sync-every.

Leave the machine as it is when you measure. All of it is kept in calibration.json in $STEPLEDGER_HOME (or \
$XDG_STATE_HOME/stepledger, or ~/.local/state/stepledger), for each machine and device.

Examples:
  stepledger calibrate
  stepledger calibrate --threads 1
  stepledger calibrate --device cuda
  stepledger calibrate --noise
  stepledger calibrate --noise --pairs 10 -- --batch 16 --threads 1";

#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub struct CalibrateArgs {
    /// The device to measure: cpu, cuda or cuda:N
    #[arg(long, value_name = "DEVICE", default_value = "cpu", conflicts_with = "noise")]
    pub device: String,
    /// Threads that libtorch computes with on a CPU; runs with as many use what is measured [default: all cores]
    #[arg(long, value_name = "N", conflicts_with = "noise", value_parser = value_parser!(i32).range(1..=1024))]
    pub threads: Option<i32>,
    /// Measure how much runs of the same program differ instead
    #[arg(long)]
    pub noise: bool,
    /// With --noise: how many pairs of runs
    #[arg(long, value_name = "N", default_value_t = 5, requires = "noise", value_parser = value_parser!(u32).range(5..=1000))]
    pub pairs: u32,
    /// With --noise: the folder of runs; these get a folder of their own in it
    #[arg(long, value_name = "DIR", default_value = "runs", requires = "noise")]
    pub out: PathBuf,
    /// Print what was found as one JSON object
    #[arg(long)]
    pub json: bool,
    /// With --noise: flags of `stepledger run` [default: its defaults]
    #[arg(last = true, value_name = "RUN FLAGS", requires = "noise")]
    pub flags: Vec<String>,
}

pub fn run(args: &CalibrateArgs, engine: &impl Engine) -> Outcome {
    if args.noise { calibrate_noise::run(args) } else { engine.calibrate(args) }
}

/// What is known of the user's machines, and the folder that it is kept in.
pub fn kept() -> anyhow::Result<(PathBuf, Calibrations)> {
    let home = folder()?;
    let known = Calibrations::load(&home).map_err(Exit::input)?;
    Ok((home, known))
}

/// What was measured of a machine's device before, with so many threads on a CPU. A calibration that cannot be read is
/// told, and is no reason to stop.
pub fn calibrated(machine: &Machine, device: &str, threads: Option<i64>) -> Option<DeviceRates> {
    let known = Calibrations::load(&home()?)
        .map_err(|error| note(format_args!("calibration not used: {error}")))
        .ok()?;
    known.of(machine)?.rates_of(device, threads).cloned()
}

/// Refuses, before anything is measured for it, a folder in which it could not be kept.
pub fn check_calibration_home() -> anyhow::Result<()> {
    Calibrations::check(&folder()?).map_err(|error| unkept(&error))
}

/// Prints what was measured of this machine's device, and keeps it; what cannot be kept was printed.
pub fn keep_rates(machine: &Machine, rates: DeviceRates, json: bool) -> anyhow::Result<()> {
    // Whoever has read enough of it still wants it kept.
    let printed = print(&rates, json);
    for doubt in doubts_of_rates(&rates) {
        note(format_args!("warning: {doubt}"));
    }
    keep(|known| known.of_mut(machine).keep(rates))?;
    printed
}

fn print(rates: &DeviceRates, json: bool) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    if json {
        write_json(&mut stdout, rates)?;
    } else {
        stdout.write_all(render_rates(rates).as_bytes())?;
    }
    Ok(stdout.flush()?)
}

/// Changes what is known, and says where it is kept.
pub fn keep(change: impl FnOnce(&mut Calibrations)) -> anyhow::Result<()> {
    let path = Calibrations::change(&folder()?, change).map_err(|error| unkept(&error))?;
    note(format_args!("kept in {}", path.display()));
    Ok(())
}

fn folder() -> anyhow::Result<PathBuf> {
    home().ok_or_else(|| Exit::input("there is no folder to keep the calibration in; set STEPLEDGER_HOME"))
}

fn unkept(error: &StoreError) -> anyhow::Error {
    Exit::input(match error {
        StoreError::Write { path, source } => format!(
            "the calibration cannot be kept: {}: {source}; set STEPLEDGER_HOME to a folder that can be written to",
            path.display()
        ),
        error => format!("the calibration cannot be kept: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn what_cannot_be_kept_names_the_folder_and_the_variable() {
        let error = Calibrations::check(Path::new("/proc/version/home")).unwrap_err();
        let error = unkept(&error).to_string();
        for words in ["/proc/version/home", "STEPLEDGER_HOME"] {
            assert!(error.contains(words) && !error.contains("--out"), "{words}: {error}");
        }
    }
}
