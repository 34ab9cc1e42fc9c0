//! How much runs of the same program differ on a machine, as its calibration has it.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize};

use crate::record::instant;

/// How much runs of the same program differ here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    #[serde(with = "instant")]
    pub measured_at: DateTime<Utc>,
    /// The device that computed, such as `cpu`. Where it was not written down, the flags tell it.
    #[serde(default)]
    pub device: Option<String>,
    /// Pairs of runs of the same program.
    pub pairs: usize,
    /// Half the width of Student's 95 % interval of the pairs' log ratios, in percent.
    pub half_width_pct: f64,
    /// The standard deviation of the pairs' log ratios, in percent.
    pub pair_sd_pct: f64,
    /// The mean log ratio in percent, which would be 0 if chance had no part in it.
    pub mean_pct: f64,
    pub step_ms: f64,
    /// The flags of `stepledger run` that it was measured with.
    pub flags: Vec<String>,
}

impl Noise {
    /// `cpu` or `cuda`.
    pub fn device_kind(&self) -> &str {
        let by_flags = if self.flags.iter().any(|flag| flag.contains("cuda")) { "cuda" } else { "cpu" };
        kind(self.device.as_deref().unwrap_or(by_flags))
    }

    /// Whether it was measured on a device of this kind.
    pub(super) fn is_of(&self, device: &str) -> bool {
        self.device_kind() == kind(device)
    }
}

/// `cuda` of `cuda:1`: the cards of one machine are as noisy as each other.
fn kind(device: &str) -> &str {
    device.split(':').next().unwrap_or(device)
}

/// One alone may stand without a list.
pub(super) fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Noise>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrSeveral {
        One(Box<Noise>),
        Several(Vec<Noise>),
    }
    Ok(match OneOrSeveral::deserialize(deserializer)? {
        OneOrSeveral::One(noise) => vec![*noise],
        OneOrSeveral::Several(noises) => noises,
    })
}

#[cfg(test)]
mod tests {
    use super::super::MachineCalibration;
    use super::*;

    #[test]
    fn noise_is_that_of_a_kind_of_device() {
        let one = r#"{"measured_at":"2026-01-31T12:00:00Z","pairs":5,"half_width_pct":8.0,"pair_sd_pct":2.0,
            "mean_pct":0.1,"step_ms":10.0,"flags":["--device","cuda:1"]}"#;
        let text = format!(r#"{{"host":"a","cpu":null,"logical_cpus":2,"noise":{one}}}"#);
        let mut machine: MachineCalibration = serde_json::from_str(&text).unwrap();
        assert!(machine.noise_of("cuda:0").is_some() && machine.noise_of("cpu").is_none());
        let of_cpu = Noise { device: Some("cpu".to_owned()), pairs: 7, ..machine.noise[0].clone() };
        machine.keep_noise("cpu", of_cpu.clone());
        machine.keep_noise("cpu", Noise { pairs: 9, ..of_cpu });
        let pairs = |device| machine.noise_of(device).map(|noise| noise.pairs);
        assert_eq!((pairs("cuda"), pairs("cpu"), machine.noise.len()), (Some(5), Some(9), 2));
        let again: MachineCalibration =
            serde_json::from_str(&serde_json::to_string(&machine).unwrap()).unwrap();
        assert_eq!(again, machine);
    }
}
