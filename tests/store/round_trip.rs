use std::sync::Arc;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use stepledger::record::*;
use stepledger::store::{Dataset, DatasetWriter, RunFolder};

use crate::rows::{self, instant};
use crate::{Rows, create, push};

#[test]
fn what_is_written_reads_back() {
    let out = tempfile::tempdir().unwrap();
    let mut writer = create(out.path(), "a");
    push(&mut writer, 0..3);
    assert_eq!(writer.buffered_steps(), 3);
    writer.flush(&rows::open()).unwrap();
    assert_eq!(writer.buffered_steps(), 0);
    push(&mut writer, 3..5);
    let complete = rows::run("a", RunStatus::Complete);
    let dir = writer.finish(&complete, &rows::open()).unwrap();
    assert_eq!(Dataset::open(&dir).unwrap().run(), &complete);
    assert_eq!(Rows::read(&dir), Rows::of(0..5));
}

#[test]
fn one_step_can_be_read_alone() {
    let out = tempfile::tempdir().unwrap();
    let mut writer = create(out.path(), "a");
    push(&mut writer, 0..2);
    writer.flush(&rows::open()).unwrap();
    push(&mut writer, 2..4);
    writer.flush(&rows::open()).unwrap();
    let dataset = Dataset::open(writer.dir()).unwrap();
    let all = Rows::of(2..3);
    assert_eq!(dataset.phases_of(2).unwrap(), all.phases);
    assert_eq!(dataset.ledger_of(2).unwrap(), all.ledger);
    let born: Vec<_> = all.allocations.into_iter().filter(|row| row.step == Some(2)).collect();
    assert_eq!(dataset.allocations_of(2).unwrap(), born);
    assert_eq!(dataset.phases_of(9).unwrap(), []);
}

#[test]
fn a_loss_that_is_not_a_number_is_no_missing_loss() {
    let out = tempfile::tempdir().unwrap();
    let mut writer = create(out.path(), "a");
    let (step, ..) = rows::step(0);
    writer.push(StepRow { loss: Some(f64::NAN), ..step }, vec![], vec![], vec![]);
    writer.flush(&[]).unwrap();
    let steps = Dataset::open(writer.dir()).unwrap().steps().unwrap();
    assert!(steps[0].loss.is_some_and(f64::is_nan));
}

#[test]
fn a_run_that_traced_no_memory_has_no_files_about_it() {
    let out = tempfile::tempdir().unwrap();
    let mut writer = create(out.path(), "a");
    let (step, phases, ..) = rows::step(0);
    writer.push(step, phases, vec![], vec![]);
    writer.flush(&[]).unwrap();
    let mut files: Vec<_> = writer
        .dir()
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files, ["phases-0001.parquet", "run.parquet", "steps-0001.parquet"]);
    let dataset = Dataset::open(writer.dir()).unwrap();
    assert_eq!((dataset.ledger().unwrap(), dataset.allocations().unwrap()), (vec![], vec![]));
}

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![0..1_000_000_i64, any::<i64>()]
}

fn name() -> impl Strategy<Value = Arc<str>> {
    prop_oneof![
        select(vec!["", "h.0.attn", "größe 中 \"\n"]).prop_map(Arc::from),
        any::<String>().prop_map(Arc::from)
    ]
}

/// Whole multiples of a microsecond, which is what is kept.
fn time() -> impl Strategy<Value = chrono::DateTime<chrono::Utc>> {
    (-1_000_000_000_000_000..1_000_000_000_000_000_i64).prop_map(instant)
}

fn loss() -> impl Strategy<Value = f64> {
    any::<f64>().prop_filter("NaN is not equal to itself", |loss| !loss.is_nan())
}

fn word<W: Copy + std::fmt::Debug>(all: &'static [W]) -> impl Strategy<Value = W> {
    select(all)
}

prop_compose! {
    fn step_row()(
        (step, warmup, started_at, wall_ns) in (number(), any::<bool>(), time(), number()),
        (loss, tokens) in (option::of(loss()), option::of(number())),
        (events, dropped_events, observer_ns) in (number(), number(), number()),
        (peak_bytes, peak_phase) in (option::of(number()), option::of(word(Phase::ALL))),
        difference_bytes in option::of(number()),
        (device_busy_pct, cpu_wait_ns) in (option::of(0.0..100.0), option::of(number())),
        (rounding_bytes, cached_bytes, non_torch_bytes) in (option::of(number()), option::of(number()), option::of(number())),
        (transfer_ns, sync_ns, launch_ns) in (option::of(number()), option::of(number()), option::of(number())),
        (lead_ns, optimizer_calls) in (option::of(number()), option::of(number())),
    ) -> StepRow {
        StepRow {
            step, warmup, started_at, wall_ns, loss, tokens, events, dropped_events, peak_bytes, peak_phase,
            difference_bytes, observer_ns, device_busy_pct, cpu_wait_ns, rounding_bytes, cached_bytes, non_torch_bytes,
            transfer_ns, sync_ns, launch_ns, lead_ns, optimizer_calls,
        }
    }
}

prop_compose! {
    fn phase_row()(
        (step, kind, phase) in (number(), word(SpanKind::ALL), word(Phase::ALL)),
        (name, parent) in (name(), option::of(name())),
        (calls, begin_ns, total_ns, device_ns) in (number(), option::of(number()), number(), option::of(number())),
        lead_ns in option::of(number()),
    ) -> PhaseRow {
        PhaseRow { step, kind, phase, name, parent, calls, begin_ns, total_ns, device_ns, lead_ns }
    }
}

prop_compose! {
    fn allocation_row()(
        (step, bytes, category) in (option::of(number()), number(), word(Category::ALL)),
        (detail, phase, thread) in (option::of(word(Detail::ALL)), option::of(word(Phase::ALL)), any::<i32>()),
        (name, scope, op, at_ns) in (option::of(name()), option::of(name()), option::of(name()), number()),
        (freed_ns, freed_step) in (option::of(number()), option::of(number())),
        freed_phase in option::of(word(Phase::ALL)),
    ) -> AllocationRow {
        AllocationRow {
            id: 0, step, bytes, category, detail, name, phase, scope, op, thread, at_ns, freed_ns,
            freed_step, freed_phase,
        }
    }
}

fn ledger_moments() -> impl Strategy<Value = Vec<LedgerMoment>> {
    let content = (number(), number(), vec(number(), Category::ALL.len()));
    btree_map((number(), word(Moment::ALL)), content, 0..12).prop_map(|moments| {
        let moment =
            |((step, moment), (at_ns, allocator_bytes, counts)): ((i64, Moment), (i64, i64, Vec<i64>))| {
                let mut bytes = ByCategory::default();
                Category::ALL.iter().zip(counts).for_each(|(&category, count)| bytes[category] = count);
                LedgerMoment { step, moment, at_ns, bytes, allocator_bytes }
            };
        moments.into_iter().map(moment).collect()
    })
}

prop_compose! {
    fn failed_allocation()(
        (at_ns, asked_bytes, step) in (number(), number(), option::of(number())),
        (phase, scope, op) in (option::of(word(Phase::ALL)), option::of(name()), option::of(name())),
    ) -> FailedAllocation {
        FailedAllocation { at_ns, asked_bytes, step, phase, scope, op }
    }
}

prop_compose! {
    fn device_facts()(
        (device_name, compute_capability, driver_version) in any::<(Option<String>, Option<String>, Option<String>)>(),
        (cuda_driver_version, cuda_runtime_version, allocator_settings) in any::<(Option<String>, Option<String>, Option<String>)>(),
        (multiprocessors, device_memory_bytes, device_free_bytes) in any::<(Option<i64>, Option<i64>, Option<i64>)>(),
        (sm_clock_mhz, memory_clock_mhz) in any::<(Option<i64>, Option<i64>)>(),
        (power_w, power_limit_w) in (option::of(loss()), option::of(loss())),
    ) -> DeviceFacts {
        DeviceFacts {
            device_name, compute_capability, multiprocessors, device_memory_bytes, device_free_bytes, driver_version,
            cuda_driver_version, cuda_runtime_version, sm_clock_mhz, memory_clock_mhz, power_w, power_limit_w,
            allocator_settings,
        }
    }
}

prop_compose! {
    fn run_row()(
        (rank, status, trace) in (any::<i32>(), word(RunStatus::ALL), word(Trace::ALL)),
        (program, device, stepledger_version) in any::<(String, String, String)>(),
        (reason, torch_version, host, os, cpu) in any::<(Option<String>, Option<String>, Option<String>, Option<String>, Option<String>)>(),
        (started_at, finished_at) in (time(), option::of(time())),
        (key, value) in any::<(String, i64)>(),
        (parameters, logical_cpus, memory_bytes, torch_threads) in any::<(Option<i64>, Option<i64>, Option<i64>, Option<i64>)>(),
        (events, dropped_events, hook_ns_per_event) in (number(), number(), option::of(loss())),
        steps in option::of(number()),
        missing in vec(any::<String>(), 0..4),
        (capacity_bytes, out_of_memory) in (option::of(number()), option::of(failed_allocation())),
        device_facts in device_facts(),
    ) -> RunRow {
        RunRow {
            schema_version: SCHEMA_VERSION, run_id: "any".to_owned(), rank, program, status, reason, started_at,
            finished_at, config: [(key, value.into())].into_iter().collect(), device, parameters, trace,
            capacity_bytes, out_of_memory,
            machine: Machine { host, os, cpu, logical_cpus, memory_bytes, torch_threads }, device_facts,
            reference_rates: None, stepledger_version, torch_version, steps, events, dropped_events, hook_ns_per_event, missing,
        }
    }
}

/// Gives each lifetime its own id, as the ledger does.
fn numbered(rows: Vec<AllocationRow>) -> Vec<AllocationRow> {
    rows.into_iter().zip(0..).map(|(row, id)| AllocationRow { id, ..row }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_rows_read_back_equal(
        run in run_row(),
        steps in vec(step_row(), 1..6),
        phases in vec(phase_row(), 0..12),
        ledger in ledger_moments(),
        allocations in vec(allocation_row(), 0..24),
        still_open in 0..8_usize,
    ) {
        let out = tempfile::tempdir().unwrap();
        let written = Rows { steps, phases, ledger, allocations: numbered(allocations) };
        let mut writer = DatasetWriter::create(out.path(), &run).unwrap();
        let (open, closed) = written.allocations.split_at(still_open.min(written.allocations.len()));
        let (first, rest) = written.steps.split_first().unwrap();
        writer.push(first.clone(), written.phases.clone(), written.ledger.clone(), closed.to_vec());
        writer.flush(open).unwrap();
        rest.iter().for_each(|step| writer.push(step.clone(), vec![], vec![], vec![]));
        let dir = writer.finish(&run, open).unwrap();
        let dataset = Dataset::open(&dir).unwrap();
        prop_assert_eq!(dataset.run(), &run);
        prop_assert_eq!(Rows::read(&dir), written);
    }
}

/// A step of a million events has 64 MB of lifetimes, whose pages a probe wants to see again.
#[test]
fn a_folder_gives_back_the_room_of_many_lifetimes_once_they_are_its_own() {
    let runs = tempfile::tempdir().unwrap();
    let mut folder = RunFolder::new(runs.path());
    folder.begin(&rows::run("roomy", RunStatus::Running)).unwrap();
    let (step, phases, moments, few) = rows::step(0);
    let ended: Vec<_> = few.iter().cycle().take(MANY_LIFETIMES).cloned().collect();
    let place = ended.as_ptr();
    folder.push(StepRecords { step: step.clone(), phases, moments, ended });
    folder.push(StepRecords { step, phases: vec![], moments: vec![], ended: few });
    assert_eq!(folder.spent(), None, "nothing is written yet");
    folder.flush(&[]).unwrap();
    // The next flush waits for the one before.
    folder.flush(&[]).unwrap();
    let room = folder.spent().unwrap();
    assert_eq!((room.as_ptr(), room.len()), (place, 0));
    assert_eq!(folder.spent(), None, "few are not worth it");
}
