//! Memory that grows from step to step.

use std::collections::BTreeMap;

use serde::Serialize;

use super::step_memory::StepSpan;
use crate::record::{AllocationRow, Category, LedgerMoment, Moment, RunRow, StepRow};
use crate::stats::{MeanInterval, mean_interval};

/// Fewer measured steps tell a trend from chance too badly.
const LEAST_STEPS: usize = 10;

const CONFIDENCE: f64 = 0.95;

/// Growth must go on in each of so many equal stretches of the measured steps.
const STRETCHES: usize = 4;

/// The moments at which steps are compared, the first that every measured step has.
const MOMENTS: [Moment; 3] = [Moment::OptimizerEnd, Moment::BackwardEnd, Moment::ForwardEnd];

/// A category that grew over the measured steps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemoryCreep {
    pub category: Category,
    /// The moment of each step that was compared.
    pub moment: Moment,
    /// How many measured steps were.
    pub steps: usize,
    /// The mean growth, and its 95 % interval.
    pub bytes_per_step: f64,
    pub low: f64,
    pub high: f64,
    /// What most of it was made in; null where no block tells.
    pub blame: Option<Blame>,
}

/// Where what was made in the measured steps, and still lives after them, was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Blame {
    /// A scope; or the phase, with the operator where it is known, for what was made outside of scopes.
    pub place: String,
    pub bytes: i64,
    pub blocks: i64,
}

/// The categories that creep, the fastest first; nobody is blamed yet.
///
/// Each category's bytes at the same moment of all measured steps are a series, and the differences of
/// neighbours its increments. It creeps when two things hold:
///
/// - The mean increment has a 95 % interval by Student's t that lies above 0, over at least 10 steps. One
///   jump among n increments has t = 1 whatever its size, so a single jump never passes; but several may.
/// - It grew, end against begin, in each quarter of the steps. What is made once in the first steps (the
///   optimizer's states without warm-up, a cache that fills up) does not grow in the last quarter; a leak in
///   every tenth step still does in all of them, where "most increments are positive" would pass it over.
///
/// # Errors
/// Why nothing can be said: memory was not traced, or there are fewer than 10 measured steps.
pub fn creeping(steps: &[StepRow], ledger: &[LedgerMoment]) -> Result<Vec<MemoryCreep>, String> {
    // A run that was traced has a ledger as soon as it has a step.
    if ledger.is_empty() && !steps.is_empty() {
        return Err("memory was not traced".to_owned());
    }
    let measured: Vec<i64> = steps.iter().filter(|step| !step.warmup).map(|step| step.step).collect();
    if measured.len() < LEAST_STEPS {
        return Err(format!("needs {LEAST_STEPS} measured steps, has {}", measured.len()));
    }
    let series = MOMENTS.iter().find_map(|moment| Some((*moment, series(&measured, ledger, *moment)?)));
    let (moment, series) = series.ok_or("no phase ended in every measured step")?;
    let creep = |&category: &Category| {
        let bytes: Vec<i64> = series.iter().map(|moment| moment.bytes[category]).collect();
        let growth = growth(&bytes)?;
        let MeanInterval { mean: bytes_per_step, low, high, .. } = growth;
        Some(MemoryCreep { category, moment, steps: bytes.len(), bytes_per_step, low, high, blame: None })
    };
    let mut creeps: Vec<MemoryCreep> = Category::ALL.iter().filter_map(creep).collect();
    creeps.sort_by(|a, b| b.bytes_per_step.total_cmp(&a.bytes_per_step));
    Ok(creeps)
}

/// The moment of each step in turn; `None` unless every step has it.
fn series<'a>(measured: &[i64], ledger: &'a [LedgerMoment], moment: Moment) -> Option<Vec<&'a LedgerMoment>> {
    let by_step: BTreeMap<i64, &LedgerMoment> =
        ledger.iter().filter(|row| row.moment == moment).map(|row| (row.step, row)).collect();
    measured.iter().map(|step| by_step.get(step).copied()).collect()
}

/// The mean increment of a series that creeps.
fn growth(series: &[i64]) -> Option<MeanInterval> {
    let increments: Vec<f64> = series.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    let growth = mean_interval(&increments, CONFIDENCE)?;
    let last = series.len() - 1;
    let ends = |stretch: usize| series[last * stretch / STRETCHES];
    let goes_on = (0..STRETCHES).all(|stretch| ends(stretch + 1) > ends(stretch));
    (growth.low > 0.0 && goes_on).then_some(growth)
}

/// The end of the last measured step, whose survivors may be to blame; `None` where nothing creeps.
pub fn creep_instant(run: &RunRow, steps: &[StepRow], ledger: &[LedgerMoment]) -> Option<i64> {
    creeping(steps, ledger).ok().filter(|creeps| !creeps.is_empty())?;
    let last = steps.iter().rfind(|step| !step.warmup)?;
    Some(StepSpan::of(run, last).end_ns())
}

/// Says of each creep where most of what stayed was made: of its category, made since the first measured step
/// began, and among `alive`, which live at [`creep_instant`].
pub fn blame(creeps: &mut [MemoryCreep], run: &RunRow, steps: &[StepRow], alive: &[AllocationRow]) {
    let Some(first) = steps.iter().find(|step| !step.warmup) else { return };
    let begin_ns = StepSpan::of(run, first).begin_ns;
    let stayed = |row: &&AllocationRow| row.step.map_or(row.at_ns >= begin_ns, |step| step >= first.step);
    for creep in creeps {
        let mut places: BTreeMap<String, (i64, i64)> = BTreeMap::new();
        for row in alive.iter().filter(stayed).filter(|row| row.category == creep.category) {
            let (bytes, blocks) = places.entry(place(row)).or_default();
            *bytes += row.bytes;
            *blocks += 1;
        }
        let most = places.into_iter().max_by_key(|(_, (bytes, _))| *bytes);
        creep.blame = most.map(|(place, (bytes, blocks))| Blame { place, bytes, blocks });
    }
}

fn place(row: &AllocationRow) -> String {
    match (&row.scope, row.phase, &row.op) {
        (Some(scope), ..) => scope.to_string(),
        (None, Some(phase), Some(op)) => format!("{phase}, {op}"),
        (None, Some(phase), None) => phase.to_string(),
        (None, None, _) => "between the steps".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn creeps(series: impl IntoIterator<Item = i64>) -> Option<MeanInterval> {
        growth(&series.into_iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_run_without_steps_lacks_those_and_not_the_trace() {
        let step = StepRow::default();
        assert_eq!(creeping(&[], &[]).unwrap_err(), "needs 10 measured steps, has 0");
        assert_eq!(creeping(&[step], &[]).unwrap_err(), "memory was not traced");
    }

    #[test]
    fn a_leak_of_the_same_size_every_step_is_found_exactly() {
        let growth = creeps((0..10).map(|step| 1_000 + 4 * step)).unwrap();
        assert_eq!((growth.mean, growth.low, growth.high), (4.0, 4.0, 4.0));
    }

    #[test]
    fn a_leak_under_noise_or_in_every_tenth_step_is_found() {
        let noise = [3, -2, 1, 0, -3, 2, -1];
        let growth = creeps((0..100).map(|step| 500 * step + 200 * noise[step as usize % 7])).unwrap();
        assert!(0.0 < growth.low && growth.low < 500.0 && 500.0 < growth.high, "{growth:?}");
        assert!(creeps((0..100).map(|step| step / 10 * 4096)).is_some());
    }

    #[test]
    fn what_stays_or_only_swings_does_not_creep() {
        assert_eq!(creeps([4096; 50]), None);
        assert_eq!(creeps((0..50).map(|step| (step % 2) * 4096)), None);
        assert_eq!(creeps((0..50).map(|step| 1_000_000 - 4 * step)), None);
    }

    #[test]
    fn a_jump_is_no_creep_wherever_it_is() {
        for at in 1..40 {
            assert_eq!(creeps((0..40).map(|step| if step < at { 0 } else { 6_674_640 })), None, "{at}");
        }
    }

    #[test]
    fn growth_that_has_come_to_an_end_is_no_creep() {
        assert_eq!(creeps((0..40).map(|step| 4096 * step.min(25))), None);
    }
}
