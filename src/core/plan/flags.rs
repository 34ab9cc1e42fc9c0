//! A configuration as the flags of `stepledger run`.

use serde_json::{Map, Value};

use super::select::plain;
use crate::theory::ModelKind;

/// Fields of a toy model's configuration that are no flags of the same name, or are planned.
const NO_FLAG: &[&str] = &["batch", "checkpoint"];

/// What older runs of the MLP could say, and no run of it can be told: it has no attention.
const ATTENTION: &[&str] = &["heads", "attention"];

/// The flags that make `config` where it differs from `defaults`, with this batch and policy. Fields without a
/// default are no flags.
pub fn run_flags(
    config: &Map<String, Value>,
    defaults: &Map<String, Value>,
    batch: i64,
    checkpoint: Option<&str>,
) -> Vec<String> {
    let mut flags = vec!["--batch".to_owned(), batch.to_string()];
    flags.extend(checkpoint.into_iter().flat_map(|policy| ["--checkpoint".to_owned(), policy.to_owned()]));
    let is_mlp = config.get("model").and_then(Value::as_str) == Some(ModelKind::Mlp.as_str());
    let no_flag = |field: &str| NO_FLAG.contains(&field) || is_mlp && ATTENTION.contains(&field);
    for (field, value) in config {
        let Some(default) = defaults.get(field).filter(|_| !no_flag(field)) else { continue };
        let flag = format!("--{}", field.replace('_', "-"));
        match value {
            _ if same(value, default) => (),
            Value::Null | Value::Bool(false) => (),
            Value::Bool(true) => flags.push(flag),
            Value::Array(values) => {
                flags.extend([flag, values.iter().map(plain).collect::<Vec<_>>().join(",")]);
            }
            _ => flags.extend([flag, plain(value)]),
        }
    }
    flags
}

fn same(one: &Value, other: &Value) -> bool {
    one == other || one.as_f64().is_some_and(|one| other.as_f64() == Some(one))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_as_usual_needs_no_flag() {
        let defaults = json!({
            "layers": 4, "batch": 8, "checkpoint": "none", "lr": 0.001, "betas": [0.9, 0.95], "threads": null,
            "master_weights": false, "dropout": 0.0, "data": null,
        });
        let config = json!({
            "layers": 6, "batch": 8, "checkpoint": "full", "lr": 1e-3, "betas": [0.9, 0.99], "threads": 2,
            "master_weights": true, "dropout": 0, "data": null, "of_my_own": 3,
        });
        let (config, defaults) = (config.as_object().unwrap(), defaults.as_object().unwrap());
        let flags = run_flags(config, defaults, 24, Some("every:2")).join(" ");
        assert_eq!(
            flags,
            "--batch 24 --checkpoint every:2 --layers 6 --betas 0.9,0.99 --threads 2 --master-weights"
        );
    }

    #[test]
    fn the_mlp_is_told_nothing_of_attention() {
        let defaults = json!({"model": "gpt", "heads": 4, "attention": "sdpa"});
        let flags = |model: &str| {
            let config = json!({"model": model, "heads": 2, "attention": "math"});
            run_flags(config.as_object().unwrap(), defaults.as_object().unwrap(), 8, None).join(" ")
        };
        assert_eq!(flags("mlp"), "--batch 8 --model mlp");
        assert_eq!(flags("gpt"), "--batch 8 --heads 2 --attention math");
    }
}
