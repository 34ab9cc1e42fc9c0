//! Two runs as an experiment of one variable.

use serde_json::{Map, Value};

use super::summary::Summary;
use crate::record::{EvidenceLevel, by_content};
use crate::rules::{Evidence, ExperimentError, ExperimentRecord, ResultField};

/// The record of what the change between two runs did. One run a side is a smoke test: without repeats there
/// is no interval to hold the change against.
///
/// # Errors
/// When the runs differ in other than exactly one field of what was configured or where it ran.
pub fn experiment(baseline: &Summary, changed: &Summary) -> Result<ExperimentRecord, ExperimentError> {
    let evidence = Evidence {
        level: EvidenceLevel::SmokeTest,
        why: format!(
            "one run a side ({} and {} measured steps); without repeated runs the change has no interval",
            baseline.step.n, changed.step.n
        ),
    };
    let mut sides = [fixed(baseline), fixed(changed)];
    by_content(&mut sides);
    let [before, after] = sides;
    ExperimentRecord::new(before, &after, results(baseline, changed)?, evidence)
}

/// Everything that a result may depend on: the configuration, and where it ran.
fn fixed(summary: &Summary) -> Map<String, Value> {
    let mut fields = summary.config.clone();
    let machine = &summary.machine;
    for (name, value) in [
        ("program", Some(summary.program.clone())),
        ("device", Some(summary.device.clone())),
        ("trace", Some(summary.trace.to_owned())),
        ("cpu", machine.cpu.clone()),
        ("host", machine.host.clone()),
        ("torch_version", summary.versions.torch.clone()),
        ("stepledger_version", Some(summary.versions.stepledger.clone())),
    ] {
        fields.insert(name.to_owned(), value.into());
    }
    fields
}

/// The results that both runs have.
fn results(baseline: &Summary, changed: &Summary) -> Result<Vec<ResultField>, ExperimentError> {
    type Reading = (&'static str, fn(&Summary) -> Option<f64>);
    const READINGS: [Reading; 5] = [
        ("step_ms", |run| run.step.median_ms),
        ("tokens_per_s", |run| run.step.tokens_per_s),
        ("peak_bytes", |run| run.step.peak_bytes.map(|bytes| bytes as f64)),
        ("activation_bytes", activation_bytes),
        ("last_loss", |run| run.losses.last().copied().flatten().filter(|loss| loss.is_finite())),
    ];
    READINGS
        .iter()
        .filter_map(|(name, read)| Some(ResultField::new(*name, read(baseline)?, read(changed)?)))
        .collect()
}

fn activation_bytes(run: &Summary) -> Option<f64> {
    let moment = run.ledger.get(crate::record::Moment::ForwardEnd.as_str())?;
    Some(moment.0.bytes[crate::record::Category::Activation] as f64)
}
