//! Which setting of a sweep to take, in two sentences.

use serde::Serialize;

use super::cell::CellResult;
use super::duel::Duel;
use super::nothing::{alone, none};
use super::standing::{Standing, Tally};
use crate::compare::{CompareError, Verdict};
use crate::record::{EvidenceLevel, bytes, count};
use crate::stats::ENOUGH_PAIRS;

/// What a sweep says to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// The cell to take; `None` where none was measured or none fits.
    pub best: Option<usize>,
    /// The fastest of the others that fit.
    pub runner_up: Option<usize>,
    pub sentences: [String; 2],
    pub evidence: EvidenceLevel,
    pub why: String,
}

/// Judges a rival against the best; `None` where no repeat is there of both.
pub(super) type Judge<'a> = &'a dyn Fn(&CellResult, &CellResult) -> Option<Result<Duel, CompareError>>;

/// The fastest setting that is known to fit, and how sure that is.
pub fn answer(cells: &[CellResult], flags: &[String], capacity: Option<i64>, judge: Judge) -> Answer {
    let tally = Tally::of(cells, capacity);
    let mut ranked: Vec<&CellResult> =
        cells.iter().filter(|cell| Standing::of(cell, capacity) == Standing::Taken).collect();
    ranked.sort_by(|a, b| speed(b).total_cmp(&speed(a)));
    let Some(best) = ranked.first() else { return none(cells, flags, capacity, tally) };
    let rival = ranked.get(1);
    let (second, evidence, why) = match rival {
        None => (alone(cells.len(), tally), best.evidence, best.why.clone().unwrap_or_default()),
        Some(rival) => {
            let judged = judge(best, rival);
            let (evidence, why) = worth(judged.as_ref());
            (against(best, rival, judged.as_ref(), flags), Some(evidence), why)
        }
    };
    Answer {
        best: Some(best.cell),
        runner_up: rival.map(|rival| rival.cell),
        sentences: [take(best, flags, cells.len(), capacity, tally), second],
        evidence: evidence.unwrap_or(EvidenceLevel::SmokeTest),
        why,
    }
}

/// What a judgement is worth: where nothing could be told of the two best, the answer rests on nothing more.
fn worth(judged: Option<&Result<Duel, CompareError>>) -> (EvidenceLevel, String) {
    let nothing = |why: String| (EvidenceLevel::SmokeTest, why);
    match judged {
        None => nothing("the two best have no repeat in common".to_owned()),
        Some(Err(_)) => nothing("the two best cannot be compared".to_owned()),
        Some(Ok(duel)) => match duel.verdict {
            Verdict::Slower | Verdict::Same => {
                let enough = if duel.pairs < ENOUGH_PAIRS {
                    format!("; it takes {ENOUGH_PAIRS}")
                } else {
                    String::new()
                };
                (duel.evidence, format!("{} pairs of interleaved runs{enough}: {}", duel.pairs, duel.reason))
            }
            Verdict::CannotTell => nothing("the two best are not told apart".to_owned()),
            Verdict::Faster => nothing("repeats are missing of the two best".to_owned()),
        },
    }
}

/// Tokens a second; where tokens are not counted, steps.
fn speed(cell: &CellResult) -> f64 {
    cell.tokens_per_s.or_else(|| cell.step_ms.map(|ms| 1e3 / ms)).unwrap_or(0.0)
}

fn take(best: &CellResult, flags: &[String], all: usize, capacity: Option<i64>, tally: Tally) -> String {
    let rate = match (best.tokens_per_s, best.step_ms) {
        (Some(rate), _) => format!("{} tokens/s", count(rate.round() as i64)),
        (None, Some(ms)) => format!("{ms:.2} ms a step"),
        (None, None) => String::new(),
    };
    let peak = best.peak_bytes.map(|peak| format!(" at a peak of {}", bytes(peak))).unwrap_or_default();
    format!("Take {}: {rate}{peak}, {}.", best.named(flags), among(all, capacity, tally))
}

/// What it is the fastest of. That others do not fit is not said of those that nobody has measured.
fn among(all: usize, capacity: Option<i64>, tally: Tally) -> String {
    let fastest = match tally.taken {
        1 => "the only one of the settings".to_owned(),
        taken => format!("the fastest of the {taken} settings"),
    };
    let among = match capacity {
        Some(capacity) if tally.unsettled() == 0 => {
            format!("{fastest} (of {all}) that fit {}", bytes(capacity))
        }
        Some(capacity) => format!("{fastest} (of {all}) known to fit {}", bytes(capacity)),
        None => format!("{fastest} measured"),
    };
    // One that is alone has a sentence about the others.
    let others = if tally.taken == 1 || tally.unsettled() == 0 { String::new() } else { tally.others() };
    if others.is_empty() { among } else { format!("{among}; of the others {others}") }
}

fn against(
    best: &CellResult,
    rival: &CellResult,
    judged: Option<&Result<Duel, CompareError>>,
    flags: &[String],
) -> String {
    let name = rival.named(flags);
    let memory = peaks(best, rival);
    let longer = 100.0 * (speed(best) / speed(rival) - 1.0);
    let next = format!("Next comes {name}: its tokens take {longer:.1} % longer");
    let unproven = |why: &str| format!("{next}{memory}; that is no proof yet: {why}.");
    let duel = match judged {
        Some(Ok(duel)) if !duel.abstained => duel,
        Some(Ok(duel)) => return unproven(&duel.reason),
        Some(Err(error)) => return unproven(&error.to_string()),
        None => return unproven("no repeat is there of both; make them with --resume"),
    };
    let range = duel.change_pct.map(|(low, high)| format!("{low:+.1} to {high:+.1} %")).unwrap_or_default();
    match duel.verdict {
        Verdict::Slower => format!("{next} ({range}){memory}."),
        Verdict::Same => {
            format!(
                "{} is as fast within {:.1} % ({range}){memory}: take either.",
                capital(&name),
                duel.margin_pct
            )
        }
        Verdict::CannotTell => {
            let more = duel.pairs_needed.map(|pairs| format!(", which some {pairs} repeats would decide"));
            let (name, more) = (capital(&name), more.unwrap_or_default());
            format!("{name} cannot be told from it by {} repeats ({range}{more}){memory}.", duel.pairs)
        }
        // The mean over other repeats says otherwise.
        Verdict::Faster => format!(
            "{} comes next, but was faster in the {} repeats that are there of both ({range}){memory}: make those \
             that are missing with --resume before you decide.",
            capital(&name),
            duel.pairs
        ),
    }
}

fn capital(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// What the rival's peak differs by.
fn peaks(best: &CellResult, rival: &CellResult) -> String {
    match (best.peak_bytes, rival.peak_bytes) {
        (Some(best), Some(rival)) if rival < best => format!(", and it peaks {} lower", bytes(best - rival)),
        (Some(best), Some(rival)) if rival > best => format!(", and it peaks {} higher", bytes(rival - best)),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::result::made_up::cell;
    use super::*;

    const MIB: i64 = 1 << 20;

    fn duel(verdict: Verdict, pairs: usize) -> Duel {
        Duel {
            verdict,
            reason: "the whole interval is where it is".to_owned(),
            change_pct: Some((9.8, 12.3)),
            pairs,
            pairs_needed: (verdict == Verdict::CannotTell).then_some(11),
            abstained: false,
            margin_pct: 1.5,
            evidence: EvidenceLevel::RepeatedBenchmark,
        }
    }

    fn of(cells: &[CellResult], capacity: Option<i64>, judged: Option<Duel>) -> Answer {
        let flags = ["batch".to_owned(), "checkpoint".to_owned()];
        answer(cells, &flags, capacity, &|_, _| judged.clone().map(Ok))
    }

    /// The second sentence about `full`, whose peak is 20 MiB lower, and what the answer is worth.
    fn about_full(judged: Option<Duel>) -> (String, EvidenceLevel) {
        let told = of(&[cell(8, "none", 1000.0, 50 * MIB), cell(8, "full", 900.0, 30 * MIB)], None, judged);
        assert_eq!((told.best, told.runner_up.is_some()), (Some(1), true));
        (told.sentences[1].clone(), told.evidence)
    }

    #[test]
    fn the_fastest_that_fits_is_taken_and_the_next_is_told() {
        let fits = |cell| CellResult { fits: Some(true), ..cell };
        let too_much = CellResult { fits: Some(false), ..cell(16, "none", 2000.0, 90 * MIB) };
        let cells =
            [too_much, fits(cell(8, "none", 1000.0, 50 * MIB)), fits(cell(8, "full", 900.0, 30 * MIB))];
        let told = of(&cells, Some(64 * MIB), Some(duel(Verdict::Slower, 5)));
        assert_eq!(
            told.sentences[0],
            "Take batch 8, checkpoint none: 1,000 tokens/s at a peak of 50.0 MiB, the fastest of the 2 settings \
             (of 3) that fit 64.0 MiB."
        );
        assert_eq!(
            told.sentences[1],
            "Next comes batch 8, checkpoint full: its tokens take 11.1 % longer (+9.8 to +12.3 %), and it peaks \
             20.0 MiB lower."
        );
        assert_eq!(told.evidence, EvidenceLevel::RepeatedBenchmark);
        assert!(told.why.starts_with("5 pairs of interleaved runs: the whole interval"), "{}", told.why);
    }

    #[test]
    fn each_verdict_has_its_sentence_and_its_worth() {
        let (same, worth) = about_full(Some(duel(Verdict::Same, 5)));
        assert_eq!(worth, EvidenceLevel::RepeatedBenchmark);
        assert!(same.starts_with("Batch 8, checkpoint full is as fast within 1.5 %"), "{same}");
        let (unclear, worth) = about_full(Some(duel(Verdict::CannotTell, 5)));
        assert_eq!(worth, EvidenceLevel::SmokeTest);
        assert!(unclear.contains("cannot be told from it by 5 repeats"), "{unclear}");
        assert!(unclear.contains("which some 11 repeats would decide"), "{unclear}");
        let (faster, worth) = about_full(Some(duel(Verdict::Faster, 3)));
        assert_eq!(worth, EvidenceLevel::SmokeTest);
        assert!(faster.contains("was faster in the 3 repeats that are there of both"), "{faster}");
        let abstained = Duel { abstained: true, ..duel(Verdict::CannotTell, 2) };
        let (unproven, worth) = about_full(Some(abstained));
        assert_eq!(worth, EvidenceLevel::SmokeTest);
        assert!(unproven.contains("no proof yet") && unproven.contains("the whole interval"), "{unproven}");
        let (apart, worth) = about_full(None);
        assert_eq!(worth, EvidenceLevel::SmokeTest);
        assert!(apart.contains("no repeat is there of both"), "{apart}");
    }

    #[test]
    fn a_multiple_of_the_time_is_told_as_that() {
        let cells = [cell(8, "none", 4668.0, 50), cell(8, "full", 1000.0, 50)];
        let told = of(&cells, None, Some(duel(Verdict::Slower, 5)));
        assert!(told.sentences[1].contains("its tokens take 366.8 % longer"), "{:?}", told.sentences);
    }
}
