//! The record of an experiment: one variable, two values, and what came of it.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::record::{EvidenceLevel, ExperimentRow};

/// How much the results are worth, and why no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    pub level: EvidenceLevel,
    pub why: String,
}

/// The one field in which two configurations differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Variable {
    /// Its dotted path: `batch`, `model.width`.
    pub field: String,
    /// `None` where that configuration lacks the field.
    pub baseline: Option<Value>,
    pub changed: Option<Value>,
}

/// One result under both configurations.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResultField {
    pub name: String,
    pub baseline: f64,
    pub changed: f64,
    /// `changed - baseline`, in the result's own unit.
    pub change: f64,
    /// The change as a percentage of the baseline's size. `None` where the baseline is 0.
    pub change_pct: Option<f64>,
}

/// An experiment of one variable.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExperimentRecord {
    /// The whole configuration before the change.
    pub baseline: Map<String, Value>,
    pub variable: Variable,
    pub results: Vec<ResultField>,
    pub evidence: Evidence,
}

/// Why something is not an experiment of one variable.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ExperimentError {
    #[error("the two configurations are the same: change one field")]
    NothingChanged,
    #[error("the two configurations differ in {}: {}; change one field at a time", fields.len(), fields.join(", "))]
    SeveralChanged { fields: Vec<String> },
    #[error(
        "the result {name} went from {baseline} to {changed}; both, and their change, must be finite numbers"
    )]
    NotFinite { name: String, baseline: f64, changed: f64 },
}

impl ExperimentRecord {
    /// The record of what changing `baseline` into `changed` did.
    ///
    /// Refuses two configurations that do not differ in exactly one field; fields of nested objects count one
    /// by one, and one that only one of them has differs.
    pub fn new(
        baseline: Map<String, Value>,
        changed: &Map<String, Value>,
        results: Vec<ResultField>,
        evidence: Evidence,
    ) -> Result<Self, ExperimentError> {
        let variable = Variable::between(&baseline, changed)?;
        Ok(Self { baseline, variable, results, evidence })
    }

    /// The record as rows to keep, one a result; the baseline was measured in run `baseline_run_id`.
    pub fn rows(&self, baseline_run_id: &str, recorded_at: DateTime<Utc>) -> Vec<ExperimentRow> {
        let json = |value: &Option<Value>| value.as_ref().map(Value::to_string);
        let row = |result: &ResultField| ExperimentRow {
            recorded_at,
            baseline_run_id: baseline_run_id.to_owned(),
            baseline_config: Value::Object(self.baseline.clone()).to_string(),
            variable: self.variable.field.clone(),
            baseline_value: json(&self.variable.baseline),
            changed_value: json(&self.variable.changed),
            result: result.name.clone(),
            baseline: result.baseline,
            changed: result.changed,
            change: result.change,
            change_pct: result.change_pct,
            evidence: self.evidence.level,
            why: self.evidence.why.clone(),
        };
        self.results.iter().map(row).collect()
    }
}

impl ResultField {
    /// A result with its changes.
    pub fn new(name: impl Into<String>, baseline: f64, changed: f64) -> Result<Self, ExperimentError> {
        let name = name.into();
        let change = changed - baseline;
        let change_pct = (baseline != 0.0).then(|| change / baseline.abs() * 100.0);
        if !change.is_finite() || change_pct.is_some_and(|pct| !pct.is_finite()) {
            return Err(ExperimentError::NotFinite { name, baseline, changed });
        }
        Ok(Self { name, baseline, changed, change, change_pct })
    }
}

/// The fields in which two configurations differ; those of nested objects one by one, by their dotted paths.
pub fn differences(baseline: &Map<String, Value>, changed: &Map<String, Value>) -> Vec<Variable> {
    let mut differences = Vec::new();
    compare("", baseline, changed, &mut differences);
    differences
}

impl Variable {
    fn between(baseline: &Map<String, Value>, changed: &Map<String, Value>) -> Result<Self, ExperimentError> {
        let mut differences = differences(baseline, changed);
        match differences.pop() {
            None => Err(ExperimentError::NothingChanged),
            Some(variable) if differences.is_empty() => Ok(variable),
            Some(last) => {
                differences.push(last);
                let fields = differences.into_iter().map(|variable| variable.field).collect();
                Err(ExperimentError::SeveralChanged { fields })
            }
        }
    }
}

fn compare(
    path: &str,
    baseline: &Map<String, Value>,
    changed: &Map<String, Value>,
    into: &mut Vec<Variable>,
) {
    let added = changed.keys().filter(|key| !baseline.contains_key(*key));
    for key in baseline.keys().chain(added) {
        let field = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match (baseline.get(key), changed.get(key)) {
            (Some(Value::Object(before)), Some(Value::Object(after))) => compare(&field, before, after, into),
            (before, after) if before == after => {}
            (before, after) => {
                into.push(Variable { field, baseline: before.cloned(), changed: after.cloned() });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Map<String, Value> {
        serde_json::from_str(text).unwrap()
    }

    fn record(baseline: &str, changed: &str) -> Result<ExperimentRecord, ExperimentError> {
        let evidence = Evidence { level: EvidenceLevel::SmokeTest, why: "it ran once".to_owned() };
        ExperimentRecord::new(config(baseline), &config(changed), Vec::new(), evidence)
    }

    #[test]
    fn the_one_variable_is_found_wherever_it_is() {
        let flat = record(r#"{"batch": 8, "seed": 1}"#, r#"{"seed": 1, "batch": 16}"#).unwrap().variable;
        assert_eq!((flat.field.as_str(), flat.changed), ("batch", Some(16.into())));
        let nested = record(r#"{"model": {"width": 8}}"#, r#"{"model": {"width": 8, "depth": 2}}"#).unwrap();
        assert_eq!((nested.variable.field.as_str(), nested.variable.baseline), ("model.depth", None));
    }

    #[test]
    fn none_or_several_are_refused_by_name() {
        assert_eq!(record("{}", "{}"), Err(ExperimentError::NothingChanged));
        let error =
            record(r#"{"batch": 8, "m": {"w": 1}}"#, r#"{"batch": 9, "m": {"w": 2}, "x": 0}"#).unwrap_err();
        assert!(error.to_string().contains("differ in 3: batch, m.w, x;"), "{error}");
    }

    #[test]
    fn changes_are_absolute_and_relative() {
        let slower = ResultField::new("step_ms", 80.0, 100.0).unwrap();
        assert_eq!((slower.change, slower.change_pct), (20.0, Some(25.0)));
        assert_eq!(ResultField::new("dropped", 0.0, 3.0).unwrap().change_pct, None);
        assert!(ResultField::new("loss", f64::NAN, 1.0).is_err());
        assert!(ResultField::new("loss", -f64::MAX, f64::MAX).is_err());
    }
}
