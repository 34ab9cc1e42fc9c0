//! The account of a run: against itself, the allocator's own counters, and theory.

use std::sync::atomic::AtomicBool;

use stepledger::probe::Options;
use stepledger::record::{Category, LedgerMoment, Moment, Trace};
use stepledger::theory::Shape;
use stepledger::train::{Config, train};
use tch::Device;

use super::Outcome;
use super::common::{Kept, MemorySink};
use super::counters::{Counters, Counting, against};
use super::row::Row;

/// The driver's context and libraries take some hundred MiB beside libtorch's memory.
const MOST_BESIDE_MIB: f64 = 8192.0;

/// Trains the default GPT: each byte of the allocator's total is in a category, at every event.
pub fn account(device: Device) -> Outcome<Vec<Row>> {
    let before = Counters::of(device);
    let config = Config { device, steps: 20, warmup: 3, ..Config::default() };
    let (kept, after) = counted(&config, Trace::Ops)?;
    let steps = || kept.steps.iter().map(|records| &records.step);
    let most = |value: &dyn Fn(&stepledger::record::StepRow) -> Option<i64>| steps().filter_map(value).max();
    let difference = most(&|step| step.difference_bytes).ok_or("no step has a difference")?;
    let unattributed = kept.steps.iter().flat_map(|records| &records.moments);
    let unattributed =
        unattributed.map(|moment| moment.bytes[Category::Unattributed].abs()).max().unwrap_or(-1);
    let mut rows = vec![
        Row::same("account: allocator's total − categories, any event", difference, 0, " bytes"),
        Row::same("account: unattributed, any moment", unattributed, 0, " bytes"),
        Row::same("account: events dropped", steps().map(|step| step.dropped_events).sum(), 0, ""),
    ];
    rows.extend(against(Counters::of_account(&kept.open), before, after));
    rows.extend(against_theory(&kept)?);
    rows.push(match most(&|step| step.non_torch_bytes) {
        Some(beside) => {
            let mib = beside as f64 / f64::from(1 << 20);
            Row::within("account: device memory beside libtorch's", mib, (0.0, MOST_BESIDE_MIB), " MiB")
        }
        None => Row::not_run("account: device memory beside libtorch's", "a CPU has no caching allocator"),
    });
    Ok(rows)
}

/// What lives as long as the training is, by closed forms.
fn against_theory(kept: &Kept) -> Outcome<Vec<Row>> {
    let run = kept.run.as_ref().ok_or("the run has no row")?;
    let shape = Shape::of(&run.config).ok_or("the run's configuration has no shape")?;
    let last = kept.steps.last().ok_or("no step")?;
    let end = last.moments.iter().find(|moment| moment.moment == Moment::OptimizerEnd);
    let end: &LedgerMoment = end.ok_or("no ledger at the optimizer's end")?;
    let parameters = 4 * shape.parameters();
    Ok(vec![
        Row::same("account: parameters", end.bytes[Category::Parameter], parameters, " bytes"),
        Row::same("account: gradients", end.bytes[Category::Gradient], parameters, " bytes"),
        Row::same(
            "account: Adam's states",
            end.bytes[Category::AdamState],
            2 * parameters + 4 * shape.variables(),
            " bytes",
        ),
    ])
}

/// Trains, and returns the records.
pub fn trained(config: &Config, trace: Trace) -> Outcome<Kept> {
    counted(config, trace).map(|(kept, _)| kept)
}

/// The same, with the allocator's own counters as they are at its end.
fn counted(config: &Config, trace: Trace) -> Outcome<(Kept, Option<Counters>)> {
    let sink = MemorySink::default();
    let counting = Counting::new(sink.clone(), config.device);
    let counters = counting.counted();
    let settings = serde_json::to_value(config)?.as_object().cloned().unwrap_or_default();
    let options =
        Options::new("gpt").config(settings).trace(trace).warmup(config.warmup).device(config.device);
    train(config, options, counting, &mut |_| (), &AtomicBool::new(false))?;
    Ok((sink.0.take(), counters.get()))
}
