//! The dataset on disk: what is written reads back, whatever happens in between.

#[path = "../common/program.rs"]
mod program;

mod accidents;
mod frozen;
mod locating;
mod round_trip;
mod rows;
mod schema_page;
mod size;

use std::path::Path;

use stepledger::record::{AllocationRow, LedgerMoment, PhaseRow, RunStatus, StepRow};
use stepledger::store::{Dataset, DatasetWriter};

/// Everything but the run's own row.
#[derive(Debug, Clone, PartialEq, Default)]
struct Rows {
    steps: Vec<StepRow>,
    phases: Vec<PhaseRow>,
    ledger: Vec<LedgerMoment>,
    allocations: Vec<AllocationRow>,
}

impl Rows {
    /// What the made-up run holds after `steps`, its open lifetimes included.
    fn of(steps: impl IntoIterator<Item = i64>) -> Self {
        let mut all = Rows { allocations: rows::open(), ..Rows::default() };
        for (step, phases, ledger, closed) in steps.into_iter().map(rows::step) {
            all.steps.push(step);
            all.phases.extend(phases);
            all.ledger.extend(ledger);
            all.allocations.extend(closed);
        }
        all.allocations.sort_by_key(|row| row.id);
        all
    }

    fn read(dir: &Path) -> Self {
        let dataset = Dataset::open(dir).unwrap();
        Rows {
            steps: dataset.steps().unwrap(),
            phases: dataset.phases().unwrap(),
            ledger: dataset.ledger().unwrap(),
            allocations: dataset.allocations().unwrap(),
        }
    }
}

fn create(out: &Path, run_id: &str) -> DatasetWriter {
    DatasetWriter::create(out, &rows::run(run_id, RunStatus::Running)).unwrap()
}

fn push(writer: &mut DatasetWriter, steps: impl IntoIterator<Item = i64>) {
    for (step, phases, ledger, closed) in steps.into_iter().map(rows::step) {
        writer.push(step, phases, ledger, closed);
    }
}
