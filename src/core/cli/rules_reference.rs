//! What `stepledger rules` holds a stage against where its input does not say: this machine's own calibration.

use clap::Args;

use super::calibrate::kept;
use super::exit::Exit;
use super::machine::identity;
use super::note::note;
use super::settings::all_cores;
use crate::record::{DeviceRates, MeasuredRate};
use crate::rules::{References, Rule};

#[derive(Debug, Args)]
pub struct ReferenceArgs {
    /// With attribute-bottleneck: take the references that the input leaves out from what `stepledger calibrate`
    /// measured of this device: cpu (with all cores), cuda or cuda:N
    #[arg(long, value_name = "DEVICE")]
    calibrated: Option<String>,

    /// With --calibrated: the type of the matrix products
    #[arg(long, default_value = "f32", requires = "calibrated", value_parser = ["f32", "bf16"])]
    dtype: String,
}

/// Products in the type that was asked for and STREAM's triad, as the device was measured to reach them.
pub fn references(args: &ReferenceArgs, rule: Rule) -> anyhow::Result<Option<References>> {
    let Some(device) = &args.calibrated else { return Ok(None) };
    if rule != Rule::AttributeBottleneck {
        return Err(Exit::input(format!(
            "--calibrated is for attribute-bottleneck; {rule} takes no references"
        )));
    }
    let (home, known) = kept()?;
    let (device, threads) = match device.as_str() {
        "cpu" => ("cpu", Some(i64::from(all_cores()))),
        "cuda" => ("cuda:0", None),
        device => (device, None),
    };
    let rates = known.of(&identity()).and_then(|machine| machine.rates_of(device, threads));
    let rates = rates.ok_or_else(|| {
        Exit::input(format!(
            "--calibrated {device}: nothing was measured of it on this machine ({} says); `stepledger calibrate --device \
             {device}` does",
            home.join("calibration.json").display()
        ))
    })?;
    let (products, triad) = reached(rates, &args.dtype);
    for (name, rate) in [("products", products), ("triad", triad)] {
        if let Some(doubt) = rate.doubt() {
            note(format_args!("warning: --calibrated {device}: its rate of {name} is {doubt}"));
        }
    }
    Ok(Some(References { tflops: products.median, dram_gbps: triad.median }))
}

/// Products in this type, and triad.
fn reached(rates: &DeviceRates, dtype: &str) -> (MeasuredRate, MeasuredRate) {
    let products = if dtype == "bf16" { rates.matmul_bf16_tflop_s } else { rates.matmul_f32_tflop_s };
    (products, rates.triad_gb_s)
}
