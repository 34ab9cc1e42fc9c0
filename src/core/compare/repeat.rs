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
    /// Of the measured steps' times, in nanoseconds; on a GPU that is waited for now and then, of whole cycles.
    pub time: RunEstimate,
    /// Whether its steps are known to have waited for the device; else these are the host's times.
    pub waits: bool,
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
    /// What runs are put in order by: their start, then their id.
    pub fn when(&self) -> (DateTime<Utc>, &str) {
        (self.started_at, &self.run_id)
    }

    /// What the tables of a completed run with measured steps come to.
    pub fn of(tables: &RunTables) -> Result<Self, Unusable> {
        let RunTables { run, steps, phases, ledger } = tables;
        completed(run)?;
        let measured: Vec<&StepRow> = steps.iter().filter(|step| !step.warmup).collect();
        run.lacks(measured.len()).map_or(Ok(()), Err)?;
        let timed = Timed::of(tables)?;
        let (time, settled) = timed.estimate(steps.len())?;
        let kept: Vec<i64> = timed.steps[settled.warmup..].iter().map(|step| step.step).collect();
        Ok(Repeat {
            run_id: run.run_id.clone(),
            started_at: run.started_at,
            finished_at: run.finished_at,
            time,
            waits: timed.waits,
            phases: phase_times(phases, &kept, timed.cycle),
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
    /// Steps to a cycle: as many as lie between two waits for the device, and as make whole cycles of accumulation.
    cycle: usize,
    waits: bool,
}

impl<'a> Timed<'a> {
    fn of(tables: &'a RunTables) -> Result<Self, Unusable> {
        let RunTables { run, steps, phases, .. } = tables;
        let cycles = Cycles::of(&run.step_spans(steps, &phases.iter().collect()));
        if cycles.count() == 0 && steps.iter().any(|step| !step.warmup) {
            return Err(Unusable::NoWholeCycle);
        }
        let (steps, times_ns): (Vec<&StepRow>, _) =
            cycles.places().map(|at| (&steps[at], cycles.time_ns(at))).unzip();
        let accumulation = accumulation_cycle(phases, &steps);
        let cycle = least_common_multiple(cycles.length.max(1), accumulation);
        Ok(Timed { steps, times_ns, cycle, waits: cycles.told })
    }

    /// `steps`: how many the run has, warm-up included.
    fn estimate(&self, steps: usize) -> Result<(RunEstimate, Settled), Unusable> {
        let times: Vec<f64> = self.times_ns.iter().map(|&ns| ns as f64).collect();
        let settled = Settled::of(&times, self.cycle);
        let estimate = settled.as_ref().and_then(Settled::estimate);
        estimate.zip(settled).ok_or_else(|| match self.steps.iter().find(|step| step.wall_ns <= 0) {
            Some(step) => Unusable::NoTime { step: step.step, wall_ns: step.wall_ns },
            None if self.steps.is_empty() => Unusable::NoMeasuredStep { steps },
            None => Unusable::ShortOfACycle { cycle: self.cycle },
        })
    }
}

fn least_common_multiple(a: usize, b: usize) -> usize {
    let (mut greatest_divisor, mut rest) = (a, b);
    while rest > 0 {
        (greatest_divisor, rest) = (rest, greatest_divisor % rest);
    }
    a / greatest_divisor * b
}

/// How many steps an accumulation cycle has. A step of ours is a whole one; a loop that begins a step for each
/// micro-batch is known by an optimizer that runs in every second step, or every third.
fn accumulation_cycle(phases: &[PhaseTime], measured: &[&StepRow]) -> usize {
    let optimizer = |row: &&PhaseTime| row.kind == SpanKind::Phase && row.phase == Phase::Optimizer;
    let ran: HashSet<i64> = phases.iter().filter(optimizer).map(|row| row.step).collect();
    let places: Vec<usize> = (0..measured.len()).filter(|&at| ran.contains(&measured[at].step)).collect();
    let [first, second, ..] = places[..] else { return 1 };
    let cycle = second - first;
    let regular = (0..measured.len()).filter(|at| at % cycle == first % cycle).eq(places.iter().copied());
    if regular { cycle } else { 1 }
}

/// Of each phase, over the whole cycles of the steps `kept`, for one step. A step in which it did not run counts as one
/// in which it took no time.
fn phase_times(phases: &[PhaseTime], kept: &[i64], cycle: usize) -> [Option<f64>; Phase::ALL.len()] {
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

    fn cycle_of(steps: i64, ran: impl Fn(i64) -> bool) -> usize {
        let steps: Vec<StepRow> = (0..steps).map(|step| StepRow { step, ..StepRow::default() }).collect();
        let row = |step: &StepRow| PhaseTime {
            step: step.step,
            kind: SpanKind::Phase,
            phase: Phase::Optimizer,
            total_ns: 1,
        };
        let phases: Vec<PhaseTime> = steps.iter().filter(|step| ran(step.step)).map(row).collect();
        accumulation_cycle(&phases, &steps.iter().collect::<Vec<_>>())
    }

    #[test]
    fn an_optimizer_that_runs_every_nth_step_makes_a_cycle_of_n() {
        assert_eq!(cycle_of(60, |step| step % 4 == 3), 4);
        assert_eq!(cycle_of(61, |step| step % 3 == 0), 3);
        for (what, cycle) in [
            ("in every step", cycle_of(60, |_| true)),
            ("in none", cycle_of(60, |_| false)),
            ("in one", cycle_of(60, |step| step == 5)),
            ("now and then", cycle_of(60, |step| [3, 7, 12].contains(&step))),
            ("and no more from the middle on", cycle_of(60, |step| step % 4 == 3 && step < 30)),
        ] {
            assert_eq!(cycle, 1, "{what}");
        }
    }
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
        tables.run.config.insert("steps".to_owned(), 96.into());
        tables.steps.drain(..31);
        // What another program means by its steps is not known.
        assert!(Repeat::of(&tables).is_ok());
        tables.run.program = "gpt".to_owned();
        let why = Repeat::of(&tables).unwrap_err().to_string();
        assert!(why.starts_with("65 of its 96 measured steps are there; bring"), "{why}");
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

    #[test]
    fn accumulation_and_waits_are_both_whole_in_a_cycle() {
        let tables = behind(4, 120);
        let row = |step| PhaseTime { step, kind: SpanKind::Phase, phase: Phase::Optimizer, total_ns: 1 };
        let phases = (0..120).filter(|step| step % 3 == 2).map(row).collect();
        let mut tables = RunTables { phases, ..tables };
        assert_eq!(Repeat::of(&tables).unwrap().time.cycle, 12);
        // 8 measured steps are two waits and no whole cycle.
        tables.steps.truncate(16);
        let why = Repeat::of(&tables).unwrap_err().to_string();
        assert!(
            why.contains("no whole cycle of 12 steps was measured") && why.contains("--steps 720"),
            "{why}"
        );
    }
}
