//! `stepledger doctor`: what works on this machine, what does not, and what to do about it.

use std::io::Write;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;

use super::doctor_engine;
use super::doctor_machine::{calibration, free_space};
use super::doctor_python::{engine_version, pytorch};
use super::engine::Engine;
use super::exit::{DONE, FAILED, INTERRUPTED, Outcome};
use super::interrupt::stop_flag;
use super::show::write_json;
use super::terminal;
use crate::report::{Check, Checkup, render_checkup};

const AFTER_HELP: &str = "\
Looks at what `stepledger run` needs (the engine, libtorch, the hook in its allocator, room for the records) and at what \
some commands can use (GPUs, CUDA's libraries, tools that listen, PyTorch as an oracle, a calibration). What does not work \
is told with the way out. Exit code 0: `run` works, on a CPU at least; 1: it cannot work.

What needs libtorch is looked at in a process of its own, so that a library that crashes or hangs is a finding, too.";

#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub struct DoctorArgs {
    /// The folder of runs to look for room in
    #[arg(long, value_name = "DIR", default_value = "runs")]
    out: PathBuf,
    /// Print one JSON object (documented in the README)
    #[arg(long)]
    json: bool,
    /// Tell what the engine finds, and nothing else, through the open file with this number
    #[arg(long, value_name = "FILE", hide = true)]
    pub engine: Option<RawFd>,
    /// With --engine: what ended an earlier process that looked at it; begin behind the last one
    #[arg(long, value_name = "CHECK", hide = true)]
    pub fatal: Vec<String>,
}

pub fn run(args: &DoctorArgs, engine: &impl Engine) -> Outcome {
    if args.engine.is_some() {
        return engine.examine(args);
    }
    let stop = stop_flag()?;
    let checkup = Checkup::new(env!("CARGO_PKG_VERSION"), checks(args, &stop));
    if stop.load(Ordering::Relaxed) {
        return Ok(INTERRUPTED);
    }
    let mut stdout = std::io::stdout().lock();
    if args.json {
        write_json(&mut stdout, &checkup)?;
    } else {
        stdout.write_all(render_checkup(&checkup, terminal::width(terminal::USUAL)).as_bytes())?;
    }
    Ok(if checkup.run_works { DONE } else { FAILED })
}

fn checks(args: &DoctorArgs, stop: &AtomicBool) -> Vec<Check> {
    let patient = || !stop.load(Ordering::Relaxed);
    let mut checks = doctor_engine::checks(patient);
    let engine = engine_version(&checks);
    checks.extend([pytorch(engine.as_deref(), patient), calibration(), free_space(&args.out)]);
    checks
}
