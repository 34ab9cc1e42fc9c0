//! Which fields of a configuration say how many samples a step has.

use serde_json::Value;

use super::setting::Difference;

/// What stands before `batch` in the names of its size: which part of a batch it is, or whose.
const PARTS: [&str; 12] = [
    "micro",
    "mini",
    "global",
    "local",
    "total",
    "effective",
    "train",
    "training",
    "per",
    "device",
    "gpu",
    "rank",
];
/// What stands around the word for accumulation.
const AROUND: [&str; 11] =
    ["grad", "grads", "gradient", "gradients", "step", "steps", "batches", "iter", "iters", "num", "n"];
const ACCUMULATION: [&str; 3] = ["accum", "accumulate", "accumulation"];

/// Whether the two sides have steps of different sizes: the field has the name of such a size, and numbers for values.
pub(super) fn is_step_size(difference: &Difference) -> bool {
    let values = || [&difference.base, &difference.candidate].into_iter().flatten();
    let given = || values().filter(|value| !value.is_null());
    given().next().is_some() && given().all(Value::is_number) && names_step_size(&difference.field)
}

/// By any of the names it goes by, in whole words of the path's last part: `batch_size`, `train.microBatch`,
/// `grad_accum_steps`; not `batch_norm` or `num_batches`.
fn names_step_size(path: &str) -> bool {
    let field = path.rsplit('.').next().unwrap_or(path);
    let words = words(field);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let is_batch = |words: &[&str]| matches!(words, [parts @ .., "batch"] if parts.iter().all(|part| PARTS.contains(part)));
    let is_count = |words: &[&str]| matches!(words, ["micro", "batches"] | ["num" | "n", "micro", "batches"]);
    let accumulates = words.iter().any(|word| ACCUMULATION.contains(word))
        && words.iter().all(|word| ACCUMULATION.contains(word) || AROUND.contains(word));
    is_batch(words.strip_suffix(&["size"]).unwrap_or(&words)) || is_count(&words) || accumulates
}

/// `microBatch`, `micro_batch` and `micro-batch` alike; what is written in one word is taken apart where it is usual.
fn words(field: &str) -> Vec<String> {
    let mut parted = String::new();
    let mut after_small = false;
    for letter in field.chars() {
        if letter.is_uppercase() && after_small {
            parted.push('_');
        }
        after_small = letter.is_lowercase();
        parted.extend(letter.to_lowercase());
    }
    let parted = parted.replace("batchsize", "batch_size");
    let parted = parted.replace("microbatch", "micro_batch").replace("minibatch", "mini_batch");
    parted.split(['_', '-', ' ']).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::setting::FieldKind;
    use super::*;

    fn difference(field: &str, base: Option<Value>, candidate: Option<Value>) -> Difference {
        Difference { field: field.to_owned(), kind: FieldKind::Choice, base, candidate }
    }

    #[test]
    fn a_steps_size_has_many_names() {
        for field in [
            "batch",
            "batch_size",
            "batchSize",
            "BatchSize",
            "BATCH_SIZE",
            "batchsize",
            "train.microBatch",
            "micro_batch_size",
            "data.mini-batch-size",
            "per_device_train_batch_size",
            "num_microbatches",
            "accumulate",
            "accumulation",
            "grad_accum_steps",
            "gradient_accumulation_steps",
            "accumulate_grad_batches",
        ] {
            let found = difference(field, Some(json!(4)), Some(json!(8)));
            assert!(is_step_size(&found), "{field}");
            assert!(is_step_size(&difference(field, None, Some(json!(8)))), "{field} on one side");
        }
    }

    #[test]
    fn words_that_hold_one_of_them_are_none() {
        for field in [
            "batch_norm",
            "num_batches",
            "batch_first",
            "batching",
            "eval_batch_size",
            "accumulator_dtype",
            "accum_dtype",
            "layers",
            "lr",
        ] {
            assert!(!is_step_size(&difference(field, Some(json!(4)), Some(json!(8)))), "{field}");
        }
        for values in [(json!(true), json!(false)), (json!("mean"), json!("sum")), (json!(8), json!("auto"))]
        {
            assert!(!is_step_size(&difference("batch", Some(values.0), Some(values.1))));
        }
        assert!(!is_step_size(&difference("batch", None, Some(Value::Null))));
    }
}
