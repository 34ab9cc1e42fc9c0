//! Activation checkpointing: less memory, more time, the same losses.

use stepledger::record::{Category, Moment, StepRow, Trace};
use stepledger::stats::{Cycles, median};
use stepledger::train::{CheckpointPolicy, Config};
use tch::Device;

use super::Outcome;
use super::account::trained;
use super::common::Kept;
use super::row::{Row, largest};

/// Attention's backward adds up in an order of its own on a GPU, so that losses agree to a few digits only.
const NEAR: f64 = 1e-3;

pub fn policies(device: Device) -> Outcome<Vec<Row>> {
    let [none, full] = [CheckpointPolicy::None, CheckpointPolicy::Full];
    let (none, full) = (measured(device, none)?, measured(device, full)?);
    let table = |of: fn(&Measured) -> f64, unit: &str| {
        format!("none {:.1}{unit}, full {:.1}{unit}", of(&none), of(&full))
    };
    let less = |of: fn(&Measured) -> f64| of(&full) < of(&none);
    let apart = none.losses.iter().zip(&full.losses).map(|(a, b)| ((a - b) / a).abs());
    let apart = largest(apart);
    let extra = full.step_ms / none.step_ms;
    Ok(vec![
        Row::new(
            "checkpoint: activations kept",
            "full < none",
            table(|m| m.kept_mib, " MiB"),
            less(|m| m.kept_mib),
        ),
        Row::new("checkpoint: peak", "full < none", table(|m| m.peak_mib, " MiB"), less(|m| m.peak_mib)),
        Row::timed(
            device,
            "checkpoint: step",
            "full takes 1 to 1.7 times as long",
            format!("{extra:.2} ({})", table(|m| m.step_ms, " ms")),
            (1.0..=1.7).contains(&extra),
        ),
        Row::within("checkpoint: losses, relative difference", apart, (0.0, NEAR), ""),
    ])
}

struct Measured {
    kept_mib: f64,
    peak_mib: f64,
    step_ms: f64,
    losses: Vec<f64>,
}

fn measured(device: Device, checkpoint: CheckpointPolicy) -> Outcome<Measured> {
    let config = Config { device, checkpoint, steps: 10, warmup: 3, ..sized(device) };
    let kept = trained(&config, Trace::Allocations)?;
    Ok(Measured {
        kept_mib: mib(at(&kept, Moment::ForwardEnd, |bytes| bytes[Category::Activation])),
        peak_mib: mib(at(&kept, Moment::Peak, |bytes| bytes.total())),
        step_ms: step_ms(&kept)?,
        losses: kept.steps.iter().filter_map(|records| records.step.loss).collect(),
    })
}

/// As `show` has it: from one wait for the device to the next, since a step's own `wall_ns` ends on the host.
fn step_ms(kept: &Kept) -> Outcome<f64> {
    let run = kept.run.as_ref().ok_or("the run has no row")?;
    let steps: Vec<StepRow> = kept.steps.iter().map(|records| records.step.clone()).collect();
    let between = kept.steps.iter().flat_map(|records| &records.phases).collect();
    let cycles = Cycles::of(&run.step_spans(&steps, &between));
    if !cycles.told {
        return Err("no step is known to have waited for the device".into());
    }
    median(&cycles.times_ms()).ok_or_else(|| "no whole cycle of steps was measured".into())
}

fn sized(device: Device) -> Config {
    match device {
        Device::Cuda(_) => {
            Config { layers: 8, width: 768, heads: 12, seq: 512, batch: 16, ..Config::default() }
        }
        _ => Config::default(),
    }
}

/// Bytes at a moment of the last step.
fn at(kept: &Kept, moment: Moment, bytes: fn(&stepledger::record::ByCategory) -> i64) -> Option<i64> {
    let last = kept.steps.last()?;
    last.moments.iter().find(|row| row.moment == moment).map(|row| bytes(&row.bytes))
}

fn mib(bytes: Option<i64>) -> f64 {
    bytes.map_or(f64::NAN, |bytes| bytes as f64 / f64::from(1 << 20))
}
