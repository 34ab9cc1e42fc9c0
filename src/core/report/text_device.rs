//! What a run on a GPU tells beside what every run does, as text for a terminal.

use super::summary::Summary;
use super::units::{bytes, ms};
use crate::record::DeviceFacts;

/// The GPU in one line, as far as it is known.
pub fn facts(facts: &DeviceFacts) -> Option<String> {
    let name = facts.device_name.clone()?;
    let parts = [
        facts.compute_capability.as_ref().map(|version| format!("compute capability {version}")),
        facts.multiprocessors.map(|number| format!("{number} multiprocessors")),
        facts.device_memory_bytes.map(bytes),
        facts.driver_version.as_ref().map(|version| format!("driver {version}")),
        facts.cuda_runtime_version.as_ref().map(|version| format!("CUDA {version}")),
    ];
    let parts: Vec<_> = [name].into_iter().chain(parts.into_iter().flatten()).collect();
    Some(format!("  {}", parts.join(", ")))
}

/// Lines below the table of phases; empty on a CPU.
pub fn times(summary: &Summary) -> String {
    let lines = [goes_on(summary), exposed(summary), lead(summary)];
    lines.into_iter().flatten().map(|line| format!("\n {line}")).collect()
}

fn goes_on(summary: &Summary) -> Option<String> {
    let row = summary.device_goes_on.as_ref().filter(|row| row.calls > 0)?;
    Some(format!("{}: when a step has ended on the host, until the device is through with it", row.name))
}

/// What of a step was spent on neither computing nor nothing.
fn exposed(summary: &Summary) -> Option<String> {
    let (transfer, sync) = summary.step.transfer_ms.zip(summary.step.sync_ms)?;
    let launch = summary.step.launch_ms.map(|gaps| format!(", between phases without work {}", ms(gaps)));
    Some(format!(
        "exposed, a step: copying batches {}, waiting for the device {}{}",
        ms(transfer),
        ms(sync),
        launch.unwrap_or_default()
    ))
}

/// How far the host got ahead of the device, where it did most.
fn lead(summary: &Summary) -> Option<String> {
    let leads = summary.phases.iter().filter_map(|phase| Some((phase.lead_ms?, &phase.name)));
    let (lead, name) = leads.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    Some(format!("the host ran ahead of the device by {} at the end of {name}", ms(lead)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_driver_does_not_tell_is_left_out() {
        let some = DeviceFacts {
            device_name: Some("A card".to_owned()),
            multiprocessors: Some(132),
            ..DeviceFacts::default()
        };
        assert_eq!(facts(&some).as_deref(), Some("  A card, 132 multiprocessors"));
        assert_eq!(facts(&DeviceFacts::default()), None);
    }
}
