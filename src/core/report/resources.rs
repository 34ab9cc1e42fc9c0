//! What is known of the work and the exposed times of a step on a GPU, as the rules want it.

use super::summary::Summary;
use crate::rules::ResourceRecord;

/// The fields of a [`ResourceRecord`], each where something measured it: what an account alone has are transfers and
/// waits. Work and kernels take counters that it does not read.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Resources {
    pub flops: Option<f64>,
    pub dram_bytes: Option<f64>,
    pub kernel_ms: Option<f64>,
    pub transfer_ms: Option<f64>,
    pub sync_ms: Option<f64>,
    pub launch_ms: Option<f64>,
}

/// What only the GPU's own counters tell.
const COUNTED: [&str; 3] = ["flops", "dram_bytes", "kernel_ms"];
const WHY_NOT_COUNTED: &str = " (a step's operations, bytes and kernels are told by the GPU's own counters, by way of CUPTI, \
    which are not read; its events bound the kernels' time from above only)";

impl Resources {
    /// Of the median step; `None` on a CPU, where none of it exists.
    pub fn of(summary: &Summary) -> Option<Self> {
        let step = &summary.step;
        (summary.device != "cpu").then_some(Resources {
            transfer_ms: step.transfer_ms,
            sync_ms: step.sync_ms,
            launch_ms: step.launch_ms,
            ..Resources::default()
        })
    }

    /// The record, or which of its fields nobody has measured.
    pub fn record(&self) -> Result<ResourceRecord, String> {
        let fields = [
            ("flops", self.flops),
            ("dram_bytes", self.dram_bytes),
            ("kernel_ms", self.kernel_ms),
            ("transfer_ms", self.transfer_ms),
            ("sync_ms", self.sync_ms),
            ("launch_ms", self.launch_ms),
        ];
        let [
            Some(flops),
            Some(dram_bytes),
            Some(kernel_ms),
            Some(transfer_ms),
            Some(sync_ms),
            Some(launch_ms),
        ] = fields.map(|(_, value)| value)
        else {
            let missing: Vec<_> =
                fields.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| *name).collect();
            let counted = missing.iter().any(|name| COUNTED.contains(name));
            let why = if counted { WHY_NOT_COUNTED } else { "" };
            return Err(format!("not measured: {}{why}", missing.join(", ")));
        };
        Ok(ResourceRecord { flops, dram_bytes, kernel_ms, transfer_ms, sync_ms, launch_ms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_measured_is_named_and_nothing_else() {
        let resources = Resources { transfer_ms: Some(0.0), sync_ms: Some(1.5), ..Resources::default() };
        let why = resources.record().unwrap_err();
        assert!(
            why.starts_with("not measured: flops, dram_bytes, kernel_ms, launch_ms (")
                && why.contains("CUPTI")
        );
        let all = Resources {
            flops: Some(1e9),
            dram_bytes: Some(1e6),
            kernel_ms: Some(2.0),
            launch_ms: Some(0.5),
            ..resources
        };
        let record = all.record().unwrap();
        assert_eq!((record.kernel_ms, record.sync_ms, record.launch_ms), (2.0, 1.5, 0.5));
        let untimed = Resources { sync_ms: None, ..all };
        assert_eq!(untimed.record().unwrap_err(), "not measured: sync_ms");
    }
}
