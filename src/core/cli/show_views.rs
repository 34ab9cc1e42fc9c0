//! The views of `stepledger show`: one step's memory, or its modules, from closer.

use std::io::Write;

use serde::Serialize;

use super::exit::{DONE, Exit, Outcome};
use super::show::{View, write_json};
use super::terminal;
use crate::report::{
    Change, StepMemory, StepSpan, Timeline, by_scope, memory_step, peak_view, render_by_scope, render_peak,
    render_timeline, timeline,
};
use crate::store::Dataset;

/// Prints one view of a run: of step `only`, or of the last measured one.
pub fn show_view(dataset: &Dataset, view: &View, only: Option<i64>, json: bool) -> Outcome {
    let memory = read(dataset, view, only)?;
    match view {
        View::Peak { top } => {
            let peak = peak_view(&memory, *top).map_err(Exit::input)?;
            print(&peak, json, render_peak)
        }
        View::ByScope => {
            let table = by_scope(&memory, only).map_err(Exit::input)?;
            print(&table, json, render_by_scope)
        }
        View::Timeline { csv, width } => {
            let timeline = timeline(&memory).map_err(Exit::input)?;
            let text = |timeline: &Timeline| match csv {
                true => as_csv(timeline),
                false => render_timeline(timeline, width.unwrap_or_else(picture_width)),
            };
            print(&timeline, json, text)
        }
    }
}

/// Reads what a view is made of. Of the allocations only those that the step met are kept.
fn read(dataset: &Dataset, view: &View, only: Option<i64>) -> anyhow::Result<StepMemory> {
    let steps = dataset.steps().map_err(Exit::input)?;
    let step = memory_step(dataset.run(), &steps, only).map_err(Exit::input)?;
    let (number, (from_ns, until_ns)) = (step.step, StepSpan::of(dataset.run(), step).margin());
    let phases = match (view, only) {
        (View::ByScope, None) => dataset.phases(),
        _ => dataset.phases_of(number),
    };
    Ok(StepMemory {
        run: dataset.run().clone(),
        step: number,
        phases: phases.map_err(Exit::input)?,
        moments: dataset.ledger_of(number).map_err(Exit::input)?,
        lifetimes: dataset.alive_during(from_ns, until_ns).map_err(Exit::input)?,
        steps,
    })
}

fn print<T: Serialize>(view: &T, json: bool, text: impl Fn(&T) -> String) -> Outcome {
    let mut stdout = std::io::stdout().lock();
    match json {
        true => write_json(&mut stdout, view)?,
        false => write!(stdout, "{}", text(view))?,
    }
    stdout.flush()?;
    Ok(DONE)
}

fn as_csv(timeline: &Timeline) -> String {
    let rows = timeline.changes.iter().map(|change| change.cells().join(",") + "\n");
    std::iter::once(Change::columns().join(",") + "\n").chain(rows).collect()
}

/// What a picture is as wide as where nothing else is known.
const USUAL_WIDTH: usize = 100;

fn picture_width() -> usize {
    terminal::width(USUAL_WIDTH).clamp(super::show::NARROWEST, super::show::WIDEST)
}
