//! `stepledger calibrate`: what a device can do at most.

use stepledger_core::cli::{CalibrateArgs, DONE, Exit, Outcome, all_cores, keep_rates};

use crate::probe::{check_libtorch, machine};
use crate::rates::measure;
use crate::train::device;

/// Measures, keeps and prints it.
pub fn calibrate(args: &CalibrateArgs) -> Outcome {
    check_libtorch().map_err(Exit::input)?;
    let device = device(&args.device).map_err(Exit::input)?;
    let rates = measure(device, args.threads.unwrap_or_else(all_cores))?;
    keep_rates(&machine(), rates, args.json)?;
    Ok(DONE)
}
