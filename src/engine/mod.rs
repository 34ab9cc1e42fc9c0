//! The engine: the commands that need libtorch, and the door through which the program calls them.

mod calibrate;
mod doctor;
mod progress;
mod reference;
mod run;

use std::ffi::c_int;
use std::panic::{catch_unwind, set_hook};

use stepledger_core::cli::{self, CalibrateArgs, DoctorArgs, Engine, Outcome, RunArgs, note};

/// With libtorch at hand, each command is carried out.
struct Torch;

impl Engine for Torch {
    fn run(&self, args: &RunArgs) -> Outcome {
        run::run(args)
    }

    fn calibrate(&self, args: &CalibrateArgs) -> Outcome {
        calibrate::calibrate(args)
    }

    fn examine(&self, args: &DoctorArgs) -> Outcome {
        doctor::examine(args)
    }
}

/// Runs the command line of this process, with libtorch at hand. Returns the exit code.
///
/// A panic is a bug of ours; it is told as one, and goes no further.
#[unsafe(no_mangle)]
extern "C" fn stepledger_engine() -> c_int {
    set_hook(Box::new(|panic| {
        note(format_args!("stepledger: a bug in stepledger, please report it: {panic}"))
    }));
    catch_unwind(|| cli::main(&Torch)).unwrap_or(cli::FAILED).into()
}
