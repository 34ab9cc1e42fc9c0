//! `stepledger calibrate`: what a device can do at most.

use stepledger_core::cli::{
    CalibrateArgs, DONE, Exit, Outcome, all_cores, check_calibration_home, keep_rates, memory_left_bytes,
};

use crate::probe::{check_libtorch, machine};
use crate::rates::{Host, measure};
use crate::train::device;

/// Measures, prints and keeps it; that it can be kept is looked at before.
pub fn calibrate(args: &CalibrateArgs) -> Outcome {
    check_libtorch().map_err(Exit::input)?;
    let device = device(&args.device).map_err(Exit::input)?;
    check_calibration_home()?;
    let memory_bytes = memory_left_bytes().and_then(|bytes| u64::try_from(bytes).ok());
    let rates = measure(device, Host { threads: args.threads.unwrap_or_else(all_cores), memory_bytes })?;
    keep_rates(&machine(), rates, args.json)?;
    Ok(DONE)
}
