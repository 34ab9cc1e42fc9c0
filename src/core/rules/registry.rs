//! The seven rules by name: what each reads, the lines it draws, where it comes from, and its answer to JSON.

use serde::Serialize;

use super::field::Field;
use super::thresholds::{Threshold, Thresholds};
use super::{
    Attribution, DiscriminationExperiment, Hotspot, Lang, MemoryLedger, NextValidation, References,
    ResourceMetrics, RuleError, StepSummary, attribute_bottleneck, build_discrimination_experiment,
    choose_next_validation, derive_resource_metrics, input, memory_ledger, summarize_step_metrics,
    top_hotspots,
};
use crate::record::words;

words! {
    /// One of the seven rules.
    Rule, "rule" {
        SummarizeStepMetrics = "summarize-step-metrics",
        TopHotspots = "top-hotspots",
        MemoryLedger = "memory-ledger",
        ChooseNextValidation = "choose-next-validation",
        DeriveResourceMetrics = "derive-resource-metrics",
        AttributeBottleneck = "attribute-bottleneck",
        BuildDiscriminationExperiment = "build-discrimination-experiment",
    }
}

/// What there is to know about a rule without applying it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spec {
    pub summary: &'static str,
    pub inputs: &'static [Field],
    pub thresholds: &'static [Threshold],
    pub source: &'static str,
}

/// The answer of any rule; in JSON, the answer itself.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Answer {
    StepSummary(StepSummary),
    Hotspots(Vec<Hotspot>),
    MemoryLedger(MemoryLedger),
    NextValidation(NextValidation),
    ResourceMetrics(ResourceMetrics),
    Attribution(Attribution),
    Experiment(DiscriminationExperiment),
}

impl Rule {
    pub const fn spec(self) -> &'static Spec {
        match self {
            Rule::SummarizeStepMetrics => &summarize_step_metrics::SPEC,
            Rule::TopHotspots => &top_hotspots::SPEC,
            Rule::MemoryLedger => &memory_ledger::SPEC,
            Rule::ChooseNextValidation => &choose_next_validation::SPEC,
            Rule::DeriveResourceMetrics => &derive_resource_metrics::SPEC,
            Rule::AttributeBottleneck => &attribute_bottleneck::SPEC,
            Rule::BuildDiscriminationExperiment => &build_discrimination_experiment::SPEC,
        }
    }

    /// Applies the rule to one JSON object. `thresholds` and `lang` are used by the rules that have them.
    pub fn apply_json(self, text: &str, thresholds: &Thresholds, lang: Lang) -> Result<Answer, RuleError> {
        self.apply_json_on(text, thresholds, lang, None)
    }

    /// The same on a machine that reaches these `references`, which the input then may leave out.
    pub fn apply_json_on(
        self,
        text: &str,
        thresholds: &Thresholds,
        lang: Lang,
        references: Option<References>,
    ) -> Result<Answer, RuleError> {
        let input = input::read(text, self.spec().inputs)?;
        Ok(match self {
            Rule::SummarizeStepMetrics => {
                Answer::StepSummary(summarize_step_metrics::apply(input, thresholds)?)
            }
            Rule::TopHotspots => Answer::Hotspots(top_hotspots::apply(input)?),
            Rule::MemoryLedger => Answer::MemoryLedger(memory_ledger::apply(input)?),
            Rule::ChooseNextValidation => Answer::NextValidation(choose_next_validation::apply(input, lang)?),
            Rule::DeriveResourceMetrics => Answer::ResourceMetrics(derive_resource_metrics::apply(input)?),
            Rule::AttributeBottleneck => {
                Answer::Attribution(attribute_bottleneck::apply(input, thresholds, references)?)
            }
            Rule::BuildDiscriminationExperiment => {
                Answer::Experiment(build_discrimination_experiment::apply(input)?)
            }
        })
    }
}
