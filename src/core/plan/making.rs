//! A plan from what is known: policy by policy, then ranked.

use serde::Serialize;
use serde_json::{Map, Value};

use super::commands::Commands;
use super::error::PlanError;
use super::evidence::Evidence;
use super::fit::CONFIDENCE;
use super::measured::{Measured, NotUsed, canonical};
use super::missing::missing;
use super::no_largest::no_largest_batch;
use super::placement::{Placement, placement};
use super::policy::PolicyPlan;
use super::rank::{Best, RankedBy, Ranking, RunnerUp, rank};
use super::select::select;
use crate::record::{EvidenceLevel, ReferenceRates, Trace};
use crate::theory::{Architecture, Checkpoint, ModelKind, ProductsAtMost, Shape};

/// Who says what to fit into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CapacityFrom {
    Asked,
    /// It is what this machine has left now.
    Available,
    /// It is all the memory that the runs' device has, of which the rest of the machine needs some.
    Machine,
    /// It is what a control group's limit leaves now, as in a container, where that is less.
    Cgroup,
}

/// What is to be planned.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The memory to fit into.
    pub capacity_bytes: i64,
    pub capacity_from: CapacityFrom,
    /// The setting to plan for, as a run's configuration; with runs it is theirs instead.
    pub config: Map<String, Value>,
    /// Where to train, likewise.
    pub device: String,
    /// Fields of it that were asked for: runs that have others are not used. A `checkpoint` among them is the only
    /// policy to plan with; `device` and `trace` count too.
    pub given: Map<String, Value>,
    /// What `stepledger run` does without flags, so that commands name what differs.
    pub defaults: Map<String, Value>,
    /// What the device can do at most; runs that say it say it themselves.
    pub rates: Option<ReferenceRates>,
    pub runs: Vec<Measured>,
}

impl Request {
    /// A plan from the closed forms alone.
    pub fn from_theory(config: Map<String, Value>, capacity_bytes: i64) -> Self {
        let defaults = config.clone();
        Request {
            capacity_bytes,
            capacity_from: CapacityFrom::Asked,
            config,
            device: CPU.to_owned(),
            given: Map::new(),
            defaults,
            rates: None,
            runs: Vec::new(),
        }
    }
}

/// The setting a plan is for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Base {
    pub program: Option<String>,
    pub device: String,
    /// How deep the runs were traced; null without runs.
    pub trace: Option<Trace>,
    pub config: Map<String, Value>,
}

/// The answer. Its fields, in order, are the documented object of `plan --json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    pub capacity_bytes: i64,
    pub capacity_from: CapacityFrom,
    #[serde(flatten)]
    pub base: Base,
    /// Of all intervals.
    pub confidence: f64,
    /// What theory's bounds of time rest on; null where nobody has said what the device can do.
    pub products_at_most: Option<ProductsAtMost>,
    pub policies: Vec<PolicyPlan>,
    pub ranked_by: RankedBy,
    /// Null where nothing fits.
    pub best: Option<Best>,
    pub runner_up: Option<RunnerUp>,
    /// What the ranking is worth.
    pub evidence: EvidenceLevel,
    /// Which groups of blocks to recompute, in theory; null where there is none.
    pub placement: Option<Placement>,
    pub not_used: Vec<NotUsed>,
    /// What is not known, and what would tell it.
    pub missing: Vec<String>,
}

/// Plans.
///
/// # Errors
/// Where the capacity holds nothing, the runs are not of one workload, or nothing is known of it.
pub fn plan(request: &Request) -> Result<Plan, PlanError> {
    if request.capacity_bytes <= 0 {
        return Err(PlanError::Capacity(request.capacity_bytes));
    }
    let (runs, not_used) = select(&request.runs, &request.given, &request.defaults)?;
    let base = base(request, runs.first().copied());
    let shape = shape(&base);
    if runs.is_empty() && shape.is_none() {
        return Err(PlanError::NoTheory);
    }
    let products = products_at_most(request, &runs, shape);
    let evidence = evidence(&runs, shape, products.as_ref(), &request.given)?;
    check_floor(&evidence, request.capacity_bytes)?;
    let commands = Commands::new(&base, &request.defaults);
    let policies: Vec<PolicyPlan> = evidence
        .iter()
        .map(|evidence| {
            let planned = evidence.planned(request.capacity_bytes);
            let needs = needs(evidence, &planned, &commands, runs.is_empty());
            PolicyPlan { needs, ..planned }
        })
        .collect();
    if policies.iter().all(|policy| policy.max_batch.is_none()) {
        return Err(no_largest_batch(&evidence, policies, not_used));
    }
    let Ranking { by: ranked_by, best, runner_up, evidence } = rank(&policies, &commands);
    Ok(Plan {
        capacity_bytes: request.capacity_bytes,
        capacity_from: request.capacity_from,
        missing: missing(&runs, shape, products.as_ref(), &policies, &base),
        base,
        confidence: CONFIDENCE,
        products_at_most: products,
        placement: shape.and_then(|shape| placement(&shape, request.capacity_bytes)),
        policies,
        ranked_by,
        best,
        runner_up,
        evidence,
        not_used,
    })
}

/// The runs' own setting, if there are any; what was asked for beside it is for the runs to come.
fn base(request: &Request, run: Option<&Measured>) -> Base {
    let Some(run) = run else {
        let (device, config) = (request.device.clone(), request.config.clone());
        return Base { program: None, device, trace: None, config };
    };
    let mut config = run.config.clone();
    let known = request.given.iter().filter(|(field, _)| config.contains_key(*field));
    let known: Vec<_> = known.map(|(field, value)| (field.clone(), value.clone())).collect();
    config.extend(known);
    Base { program: Some(run.program.clone()), device: run.device.clone(), trace: Some(run.trace), config }
}

impl Base {
    /// Whether it is a setting of `stepledger run`.
    pub fn is_toy(&self) -> bool {
        self.program.as_ref().is_none_or(|program| is_toy(program, &self.config))
    }
}

/// Whether this is one of the toy models, of which `stepledger run` is the program. Another program may have one's
/// name, or a configuration that looks like one's.
pub fn is_toy(program: &str, config: &Map<String, Value>) -> bool {
    let mut config = config.clone();
    // No theory covers it, but `run` has it.
    config.shift_remove("dropout");
    program.parse::<ModelKind>().is_ok() && shape_of(config).is_some()
}

/// The toy model's sizes, of any batch and policy.
fn shape(base: &Base) -> Option<Shape> {
    base.is_toy().then(|| shape_of(base.config.clone()))?
}

fn shape_of(mut config: Map<String, Value>) -> Option<Shape> {
    config.entry("batch").or_insert(1.into());
    config.insert("checkpoint".to_owned(), Checkpoint::None.to_string().into());
    Shape::of(&config)
}

/// What the device does at most of the setting's products: by the newest calibration that a run was made under, or by
/// what was asked with.
fn products_at_most(request: &Request, runs: &[&Measured], shape: Option<Shape>) -> Option<ProductsAtMost> {
    let measured_at = |rates: &&ReferenceRates| match rates {
        ReferenceRates::Calibrated(rates) => Some(rates.measured_at),
        ReferenceRates::Datasheet(_) => None,
    };
    let known = runs.iter().filter_map(|run| run.reference_rates.as_ref()).max_by_key(measured_at);
    ProductsAtMost::of(known.or(request.rates.as_ref())?, shape?.precision)
}

/// What is known of each policy there is, or of the one asked for.
fn evidence<'r>(
    runs: &[&'r Measured],
    shape: Option<Shape>,
    products: Option<&'r ProductsAtMost>,
    given: &Map<String, Value>,
) -> Result<Vec<Evidence<'r>>, PlanError> {
    let mut policies: Vec<Option<String>> = shape.iter().flat_map(policies_of).map(Some).collect();
    for run in runs {
        if !policies.contains(&run.checkpoint()) {
            policies.push(run.checkpoint());
        }
    }
    let asked = given.get("checkpoint").and_then(Value::as_str).map(canonical);
    let wanted = |policy: &&Option<String>| asked.is_none() || **policy == asked;
    let found: Vec<Evidence> =
        policies.iter().filter(wanted).map(|policy| of_policy(policy, runs, shape, products)).collect();
    match (found.is_empty(), asked) {
        (true, Some(asked)) => {
            let known = policies.into_iter().flatten().collect::<Vec<_>>().join(", ");
            Err(PlanError::NoSuchPolicy { asked, known })
        }
        _ => Ok(found),
    }
}

fn of_policy<'r>(
    policy: &Option<String>,
    runs: &[&'r Measured],
    shape: Option<Shape>,
    products: Option<&'r ProductsAtMost>,
) -> Evidence<'r> {
    let runs = runs.iter().copied().filter(|run| run.checkpoint() == *policy).collect();
    let checkpoint = policy.as_ref().and_then(|policy| policy.parse().ok());
    let shape = shape.zip(checkpoint).map(|(shape, checkpoint)| Shape { checkpoint, ..shape });
    Evidence::new(policy.clone(), runs, shape, products)
}

/// Every policy of a toy model, each once: `every:1` is `full`.
fn policies_of(shape: &Shape) -> Vec<String> {
    let groups = (2..=shape.layers).map(Checkpoint::Every);
    let core = matches!(shape.architecture, Architecture::Gpt { .. }).then_some(Checkpoint::Selective);
    let all = [Checkpoint::None, Checkpoint::Full].into_iter().chain(core).chain(groups);
    all.map(|policy| policy.to_string()).collect()
}

/// A capacity below the parameters is a slip; one that holds them is answered, if only with what would fit.
fn check_floor(evidence: &[Evidence], capacity_bytes: i64) -> Result<(), PlanError> {
    let Some(shape) = evidence.iter().find_map(|evidence| evidence.shape) else { return Ok(()) };
    let parameter_bytes = shape.parameter_bytes();
    let least =
        evidence.iter().filter_map(|evidence| Some((evidence.peak_bytes(1)?, evidence))).min_by_key(|e| e.0);
    match least {
        Some((floor_bytes, evidence)) if capacity_bytes < parameter_bytes => {
            Err(PlanError::BelowParameters {
                capacity_bytes,
                parameter_bytes,
                checkpoint: evidence.checkpoint.clone().unwrap_or_default(),
                floor_bytes,
                floor_mb: floor_bytes / MIB + i64::from(floor_bytes % MIB > 0),
            })
        }
        _ => Ok(()),
    }
}

const MIB: i64 = 1 << 20;

/// The device whose kernels and allocator the theory is of.
pub(crate) const CPU: &str = "cpu";

/// The run that would tell what is null, or scaled from one batch. From theory alone, no policy's in particular.
fn needs(
    evidence: &Evidence,
    planned: &PolicyPlan,
    commands: &Commands,
    theory_alone: bool,
) -> Option<String> {
    let has_line = evidence.time.as_ref().is_some_and(|time| time.line.is_some());
    let complete = planned.max_batch.is_some() && has_line;
    (!complete && !theory_alone).then(|| {
        let batch = evidence.further_batch(commands.usual_batch());
        commands.run(batch, evidence.checkpoint.as_deref())
    })
}
