//! What of the command line needs libtorch.

use super::calibrate::CalibrateArgs;
use super::doctor::DoctorArgs;
use super::exit::Outcome;
use super::launch::launch;
use super::run_args::RunArgs;

/// The commands, and parts of commands, that need libtorch: the program passes them on, the engine carries them out.
pub trait Engine {
    /// Trains a toy model under instruments.
    fn run(&self, args: &RunArgs) -> Outcome;
    /// Measures what a device can do at most.
    fn calibrate(&self, args: &CalibrateArgs) -> Outcome;
    /// Tells the checks of `doctor` that need libtorch, as `--engine` says.
    fn examine(&self, args: &DoctorArgs) -> Outcome;
}

/// Passes everything on to the engine's shared library, which reads this process's command line again.
#[derive(Debug, Clone, Copy)]
pub struct Launcher;

impl Engine for Launcher {
    fn run(&self, _: &RunArgs) -> Outcome {
        launch()
    }

    fn calibrate(&self, _: &CalibrateArgs) -> Outcome {
        launch()
    }

    fn examine(&self, _: &DoctorArgs) -> Outcome {
        launch()
    }
}
