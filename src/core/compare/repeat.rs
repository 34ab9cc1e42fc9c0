//! One run of a side, in a few numbers.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};

use super::Unusable;
use crate::record::{LedgerMoment, Phase, RunRow, RunStatus, SpanKind, StepRow};
use crate::stats::{Cycles, RunEstimate, Settled, TRIM, trimmed_mean};
use crate::store::PhaseTime;

/// The largest share of a run's time that the instruments may have cost.
pub const MOST_OVERHEAD: f64 = 0.05;

/// The tables of one run that a comparison looks at.
#[derive(Debug, Clone)]
pub struct RunTables {
    pub run: RunRow,
    pub steps: Vec<StepRow>,
    pub phases: Vec<PhaseTime>,
    /// The moments of the step that [`peak_step`] names.
    pub ledger: Vec<LedgerMoment>,
}

/// What a comparison keeps of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Repeat {
    pub run_id: String,
    pub started_at: DateTime<Utc>,
    pub finished_at: Option<DateTime<Utc>>,
    /// Of the measured steps' times, in nanoseconds; on a GPU that is waited for now and then, and where gradients are
    /// accumulated over steps, of whole cycles.
    pub time: RunEstimate,
    /// Whether its steps are known to have waited for the device; else these are the host's times.
    pub waits: bool,
    /// In one of how many steps its optimizer runs; `None` where that is not known, or it does not at all.
    pub steps_per_update: Option<f64>,
    /// Measured steps that are left out, since their cycles are longer or shorter than most.
    pub uneven_steps: usize,
    /// The trimmed mean of the logarithms of a phase's times, over the same steps; `None` where it did not run.
    pub phases: [Option<f64>; Phase::ALL.len()],
    /// The mean over the measured steps; `None` where one was not counted.
    pub tokens_per_step: Option<f64>,
    /// `(events · hook_ns_per_event + observer_ns) / wall_ns` over the measured steps: what the instruments cost,
    /// as a share of the steps' time. `None` where the hook's cost is not known.
    pub overhead: Option<f64>,
    /// Over the measured steps; `None` where memory was not traced.
    pub peak_bytes: Option<i64>,
    /// The moments of the step of that peak.
    pub ledger: Vec<LedgerMoment>,
    /// The logarithms of the step times that `time` rests on, for as long as they are needed.
    pub log_times: Option<Vec<f64>>,
}

/// The step whose ledger speaks for a run: of the measured steps with the highest peak, the last.
pub fn peak_step(steps: &[StepRow]) -> Option<i64> {
    let traced = steps.iter().filter(|step| !step.warmup && step.peak_bytes.is_some());
    traced.max_by_key(|step| step.peak_bytes).map(|step| step.step)
}

/// Whether a run ended as it should; only such a one is worth reading on.
pub fn completed(run: &RunRow) -> Result<(), Unusable> {
    match run.status {
        RunStatus::Complete => Ok(()),
        RunStatus::Running => Err(Unusable::Unfinished),
        status => Err(Unusable::Ended { status, reason: run.reason.clone() }),
    }
}

impl Repeat {
    /// Whether rows of the `phases` table are gone, so that the times of phases are not known.
    pub(super) fn lacks_phases(&self) -> bool {
        self.phases.iter().all(Option::is_none)
    }

    /// Whether the ledger of the step of the peak is gone, though memory was traced.
    pub(super) fn lacks_ledger(&self) -> bool {
        self.peak_bytes.is_some() && self.ledger.is_empty()
    }

    /// What runs are put in order by: their start, then their id.
    pub fn when(&self) -> (DateTime<Utc>, &str) {
        (self.started_at, &self.run_id)
    }

    /// What the tables of a completed run with measured steps come to.
    pub fn of(tables: &RunTables) -> Result<Self, Unusable> {
        let RunTables { run, steps, phases, ledger } = tables;
        completed(run)?;
        let measured: Vec<&StepRow> = steps.iter().filter(|step| !step.warmup).collect();
        run.lacks(steps.len()).map_or(Ok(()), Err)?;
        let timed = Timed::of(tables)?;
        let (time, settled) = timed.estimate(steps.len())?;
        let kept: Vec<i64> = timed.steps[settled.warmup..].iter().map(|step| step.step).collect();
        Ok(Repeat {
            run_id: run.run_id.clone(),
            started_at: run.started_at,
            finished_at: run.finished_at,
            time,
            waits: timed.cycles.told,
            steps_per_update: timed.cycles.steps_per_update(),
            uneven_steps: timed.cycles.uneven_steps,
            phases: phase_times(phases, &kept, timed.cycles.length),
            tokens_per_step: tokens_per_step(&measured),
            overhead: overhead(run, &measured),
            peak_bytes: measured.iter().filter_map(|step| step.peak_bytes).max(),
            ledger: ledger.clone(),
            log_times: Some(settled.log_times),
        })
    }
}

/// The measured steps whose time is known, one whole cycle after the other.
struct Timed<'a> {
    steps: Vec<&'a StepRow>,
    times_ns: Vec<i64>,
    cycles: Cycles,
}

impl<'a> Timed<'a> {
    fn of(tables: &'a RunTables) -> Result<Self, Unusable> {
        let RunTables { run, steps, phases, .. } = tables;
        let cycles = Cycles::of(&run.step_spans(steps, &phases.iter().collect()));
        if steps.iter().any(|step| !step.warmup) {
            check(&cycles)?;
        }
        let (steps, times_ns): (Vec<&StepRow>, _) =
            cycles.places().map(|at| (&steps[at], cycles.time_ns(at))).unzip();
        Ok(Timed { steps, times_ns, cycles })
    }

    /// `steps`: how many the run has, warm-up included.
    fn estimate(&self, steps: usize) -> Result<(RunEstimate, Settled), Unusable> {
        let times: Vec<f64> = self.times_ns.iter().map(|&ns| ns as f64).collect();
        let settled = Settled::of(&times, self.cycles.length);
        let estimate = settled.as_ref().and_then(Settled::estimate);
        estimate.zip(settled).ok_or_else(|| match self.steps.iter().find(|step| step.wall_ns <= 0) {
            Some(step) => Unusable::NoTime { step: step.step, wall_ns: step.wall_ns },
            None => Unusable::NoMeasuredStep { steps },
        })
    }
}

/// Why there is no cycle, where there is none.
fn check(cycles: &Cycles) -> Result<(), Unusable> {
    match cycles {
        cycles if cycles.count() > 0 => Ok(()),
        Cycles { uneven_steps: 1.., accumulates, .. } => Err(Unusable::Uneven { accumulates: *accumulates }),
        Cycles { accumulates: true, .. } => Err(Unusable::NoWholeUpdate),
        _ => Err(Unusable::NoWholeCycle),
    }
}

/// Of each phase, over the whole cycles of the steps `kept`, for one step. A step in which it did not run counts as one
/// in which it took no time, unless no phase of the step is there at all: a step has what is left of it, `other`.
fn phase_times(phases: &[PhaseTime], kept: &[i64], cycle: usize) -> [Option<f64>; Phase::ALL.len()] {
    let known: HashSet<i64> =
        phases.iter().filter(|row| row.kind == SpanKind::Phase).map(|row| row.step).collect();
    if !kept.iter().all(|step| known.contains(step)) {
        return [None; Phase::ALL.len()];
    }
    let cycles = kept.len() / cycle;
    let places = kept.iter().take(cycles * cycle).enumerate();
    let places: HashMap<i64, usize> = places.map(|(place, step)| (*step, place / cycle)).collect();
    let mut times = [const { Vec::new() }; Phase::ALL.len()];
    for row in phases.iter().filter(|row| row.kind == SpanKind::Phase) {
        let Some(&place) = places.get(&row.step) else { continue };
        let times = &mut times[row.phase as usize];
        times.resize(cycles, 0.0);
        times[place] += row.total_ns as f64 / cycle as f64;
    }
    times.map(|times| trimmed_mean(&times.iter().map(|time| time.ln()).collect::<Vec<_>>(), TRIM))
}

fn tokens_per_step(measured: &[&StepRow]) -> Option<f64> {
    let tokens: Option<Vec<f64>> =
        measured.iter().map(|step| step.tokens.map(|tokens| tokens as f64)).collect();
    let mean = tokens?.iter().sum::<f64>() / measured.len() as f64;
    (mean > 0.0).then_some(mean)
}

fn overhead(run: &RunRow, measured: &[&StepRow]) -> Option<f64> {
    let sum = |value: fn(&StepRow) -> i64| measured.iter().map(|step| value(step) as f64).sum::<f64>();
    let events = sum(|step| step.events);
    // Where nothing was hooked, nothing was spent in the hook.
    let hooked = if events == 0.0 { 0.0 } else { events * run.hook_ns_per_event? };
    Some((hooked + sum(|step| step.observer_ns)) / sum(|step| step.wall_ns))
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::super::made_up::Made;
    use super::*;

    /// A step of the host takes 1 ms and what follows it another, one of the device 10; the host waits in every `every`th.
    fn behind(every: i64, steps: i64) -> RunTables {
        let row = |step: i64| {
            let waits = step % every == every - 1;
            StepRow {
                step,
                warmup: step < 2 * every,
                started_at: DateTime::UNIX_EPOCH
                    + TimeDelta::milliseconds(step / every * 10 * every + step % every * 2),
                wall_ns: if waits { 10_000_000 * every - 2_000_000 * (every - 1) } else { 1_000_000 },
                loss: waits.then_some(1.0),
                ..StepRow::default()
            }
        };
        let mut tables = Made { steps: 0, ..Made::default() }.tables("a", 0);
        tables.run.device = "cuda:0".to_owned();
        RunTables { steps: (0..steps).map(row).collect(), ..tables }
    }

    #[test]
    fn a_run_whose_steps_are_partly_gone_is_no_repeat() {
        let mut tables = Made { steps: 96, ..Made::default() }.tables("a", 0);
        tables.steps.truncate(65);
        let why = Repeat::of(&tables).unwrap_err().to_string();
        assert!(why.starts_with("65 of its 96 steps are there; bring"), "{why}");
    }

    #[test]
    fn a_device_that_is_waited_for_now_and_then_is_judged_by_whole_cycles() {
        for every in [1, 4, 5] {
            let time = Repeat::of(&behind(every, 60 * every)).unwrap().time;
            assert!((time.log_time.exp() / 1e7 - 1.0).abs() < 1e-9, "{every}: {}", time.log_time.exp());
            assert_eq!((time.cycle, time.measured), (every as usize, 58));
        }
        let few = Repeat::of(&behind(4, 40)).unwrap().time.weakness(0.1).unwrap().to_string();
        assert!(few.contains("8 cycles of 4 steps") && few.contains("240 steps"), "{few}");
        assert_eq!(Repeat::of(&behind(40, 90)), Err(Unusable::NoWholeCycle));
    }

    #[test]
    fn a_device_that_is_not_known_to_be_waited_for_is_told() {
        let mut tables = behind(4, 120);
        assert!(Repeat::of(&tables).unwrap().waits);
        tables.steps.iter_mut().for_each(|step| step.loss = None);
        let repeat = Repeat::of(&tables).unwrap();
        assert_eq!((repeat.waits, repeat.time.cycle), (false, 1));
    }

    /// 10 ms a step, of which every fourth has the optimizer, but for those `skipped`.
    fn accumulating(steps: usize, skipped: &[i64]) -> RunTables {
        let mut tables = Made { steps, ..Made::default() }.tables("a", 0);
        for row in &mut tables.steps {
            let ran = row.step % 4 == 3 && !skipped.contains(&row.step);
            row.optimizer_calls = Some(ran.into());
        }
        tables
    }

    #[test]
    fn accumulation_makes_cycles_and_an_optimizer_that_is_left_out_costs_its_own_alone() {
        let repeat = Repeat::of(&accumulating(160, &[])).unwrap();
        assert_eq!((repeat.time.cycle, repeat.time.measured, repeat.uneven_steps), (4, 40, 0));
        let repeat = Repeat::of(&accumulating(160, &[79])).unwrap();
        assert_eq!((repeat.time.cycle, repeat.time.measured, repeat.uneven_steps), (4, 38, 8));
    }

    #[test]
    fn cycles_of_no_one_rhythm_are_refused() {
        let why = |steps, skipped: &[i64]| Repeat::of(&accumulating(steps, skipped)).unwrap_err().to_string();
        // Cycles of 4, 4, 8 and 12.
        let uneven = why(28, &[11, 19, 23]);
        assert!(uneven.contains("cycles of many lengths, of accumulation, and those of no one"), "{uneven}");
    }

    #[test]
    fn a_device_that_is_waited_for_between_optimizers_has_both_at_a_cycles_end() {
        let mut tables = behind(4, 120);
        tables.steps.iter_mut().for_each(|row| row.optimizer_calls = Some((row.step % 3 == 2).into()));
        assert_eq!(Repeat::of(&tables).unwrap().time.cycle, 12);
        // 8 measured steps are two waits and no whole cycle.
        tables.steps.truncate(16);
        assert_eq!(Repeat::of(&tables), Err(Unusable::NoWholeUpdate));
    }
}
