//! What a sweep answers where there is no setting to take, or none to compare it with.

use super::answer::Answer;
use super::cell::CellResult;
use super::standing::Tally;
use crate::record::{EvidenceLevel, RunStatus, bytes};

/// The second sentence about a setting that is alone.
pub(super) fn alone(all: usize, tally: Tally) -> String {
    let others = tally.others();
    let reasons = if tally.failed > 0 { "; the reasons are in the table" } else { "" };
    match tally {
        _ if all == 1 => {
            "It is the only setting of the grid; give a flag several values to compare.".to_owned()
        }
        Tally { too_large, .. } if too_large == all - 1 => "No other setting of the grid fits.".to_owned(),
        _ => format!("There is nothing to compare it with: of the others {others}{reasons}."),
    }
}

/// The answer where no setting can be taken.
pub(super) fn none(cells: &[CellResult], flags: &[String], capacity: Option<i64>, tally: Tally) -> Answer {
    let all = cells.len();
    let sentences = [none_of(all, capacity, tally), way_out(cells, flags, tally)];
    let why = "nothing was measured that could be taken".to_owned();
    Answer { best: None, runner_up: None, sentences, evidence: EvidenceLevel::SmokeTest, why }
}

fn none_of(all: usize, capacity: Option<i64>, tally: Tally) -> String {
    let within = capacity.map_or_else(|| "the memory there is".to_owned(), bytes);
    match tally {
        Tally { too_large, .. } if too_large == all => format!("None of the {all} settings fits {within}."),
        Tally { no_peak, .. } if no_peak == all => {
            format!("Which of the {all} settings fit {within} is not known: memory was not traced.")
        }
        Tally { failed, .. } if failed == all => {
            format!("None of the {all} settings came to a measured step.")
        }
        _ => format!("None of the {all} settings is known to fit {within}: {}.", tally.others()),
    }
}

/// What to do where there is nothing to take; memory is the way out only where that is what lacked.
fn way_out(cells: &[CellResult], flags: &[String], tally: Tally) -> String {
    let reasons = if tally.failed > 0 { " The reasons of those that failed are in the table." } else { "" };
    match tally {
        Tally { not_run: 1.., .. } => "Make the runs that are missing with --resume.".to_owned(),
        Tally { no_peak: 1.., .. } => format!("Sweep again with --trace allocations.{reasons}"),
        Tally { too_large: 1.., .. } => format!("{}{reasons}", more_memory(cells, flags)),
        _ => "The reasons are in the table.".to_owned(),
    }
}

fn more_memory(cells: &[CellResult], flags: &[String]) -> String {
    // What ran out of memory would have peaked at is not known.
    let peaked = cells.iter().filter(|cell| cell.status != RunStatus::OutOfMemory);
    let peaks = peaked.filter_map(|cell| Some((cell, cell.peak_bytes?)));
    match peaks.min_by_key(|(_, peak)| *peak) {
        Some((least, peak)) => format!(
            "The least is {}, at a peak of {}: allow that much, or take smaller batches or more recomputation.",
            least.named(flags),
            bytes(peak)
        ),
        None => "Allow more memory, or take smaller batches or more recomputation; `stepledger plan` says what fits."
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::answer;
    use super::super::result::made_up::cell;
    use super::*;

    const MIB: i64 = 1 << 20;

    fn of(cells: &[CellResult], capacity: i64) -> Answer {
        let flags = ["batch".to_owned(), "checkpoint".to_owned()];
        answer(cells, &flags, Some(capacity), &|_, _| None)
    }

    fn failed(batch: i64) -> CellResult {
        let cell = cell(batch, "none", 1.0, 1);
        let status = RunStatus::Failed;
        CellResult { status, step_ms: None, tokens_per_s: None, peak_bytes: None, fits: None, ..cell }
    }

    fn not_run(batch: i64) -> CellResult {
        CellResult { tried: false, status: RunStatus::Interrupted, ..failed(batch) }
    }

    fn fitting(batch: i64, rate: f64) -> CellResult {
        CellResult { fits: Some(true), ..cell(batch, "none", rate, 20 * MIB) }
    }

    fn too_large(batch: i64) -> CellResult {
        CellResult { fits: Some(false), ..cell(batch, "none", 3000.0, 90 * MIB) }
    }

    fn untraced(batch: i64) -> CellResult {
        CellResult { peak_bytes: None, fits: None, ..cell(batch, "none", 5000.0, 1) }
    }

    #[test]
    fn what_nobody_measured_is_not_said_to_fit() {
        let told = of(&[untraced(2), untraced(64)], MIB);
        assert_eq!(told.best, None);
        assert_eq!(
            told.sentences,
            [
                "Which of the 2 settings fit 1.00 MiB is not known: memory was not traced.",
                "Sweep again with --trace allocations."
            ]
        );
        // The fastest is passed over for one that is known to fit.
        let told = of(&[untraced(64), CellResult { cell: 2, ..fitting(2, 10.0) }], 64 * MIB);
        assert_eq!(told.best, Some(2));
        assert!(told.sentences[0].ends_with("the only one of the settings (of 2) known to fit 64.0 MiB."));
        assert!(told.sentences[1].contains("of the others 1 has no known peak"), "{:?}", told.sentences);
    }

    #[test]
    fn what_failed_or_was_not_run_is_not_said_not_to_fit() {
        for (others, expected) in [
            (vec![failed(16)], "of the others 1 failed; the reasons are in the table."),
            (vec![not_run(16), not_run(32)], "of the others 2 have not been run yet."),
            (vec![too_large(16), failed(32)], "of the others 1 does not fit and 1 failed; the reasons"),
            (vec![too_large(16), too_large(32)], "No other setting of the grid fits."),
        ] {
            let told = of(&[vec![fitting(8, 10.0)], others].concat(), 64 * MIB);
            assert!(told.sentences[1].contains(expected), "{expected}: {:?}", told.sentences);
        }
        let four = [fitting(4, 10.0), fitting(8, 9.0), not_run(16), not_run(32)];
        let told = of(&four, 64 * MIB);
        assert!(
            told.sentences[0].ends_with(
                "the fastest of the 2 settings (of 4) known to fit 64.0 MiB; of the others 2 have not been run yet."
            ),
            "{:?}",
            told.sentences
        );
    }

    #[test]
    fn memory_is_the_way_out_only_where_it_lacked() {
        for (cells, first, second) in [
            (
                vec![failed(8), failed(16)],
                "None of the 2 settings came to a measured step.",
                "The reasons are in the table.",
            ),
            (
                vec![too_large(8), failed(16)],
                "None of the 2 settings is known to fit 64.0 MiB: 1 does not fit and 1 failed.",
                "The least is batch 8, checkpoint none, at a peak of 90.0 MiB: allow that much, or take smaller batches \
                 or more recomputation. The reasons of those that failed are in the table.",
            ),
            (
                vec![failed(8), not_run(16)],
                "None of the 2 settings is known to fit 64.0 MiB: 1 failed and 1 has not been run yet.",
                "Make the runs that are missing with --resume.",
            ),
        ] {
            assert_eq!(of(&cells, 64 * MIB).sentences, [first, second]);
        }
    }

    #[test]
    fn what_was_out_of_memory_once_is_not_taken_and_its_peak_is_no_way_out() {
        let out = CellResult { status: RunStatus::OutOfMemory, ..too_large(64) };
        let told = of(&[out.clone(), fitting(8, 10.0)], 64 * MIB);
        assert!(told.sentences[0].starts_with("Take batch 8, "), "{:?}", told.sentences);
        let told = of(&[out], 64 * MIB);
        assert!(told.sentences[1].starts_with("Allow more memory, "), "{:?}", told.sentences);
    }

    #[test]
    fn where_nothing_fits_the_least_is_named() {
        let cells = [CellResult { fits: Some(false), ..cell(8, "full", 900.0, 30 * MIB) }];
        let told = of(&cells, 16 * MIB);
        assert_eq!((told.best, told.evidence), (None, EvidenceLevel::SmokeTest));
        assert!(
            told.sentences[1].contains("batch 8, checkpoint full, at a peak of 30.0 MiB"),
            "{:?}",
            told.sentences
        );
    }
}
