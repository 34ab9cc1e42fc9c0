//! Which setting of a sweep to take, in two sentences.

use serde::Serialize;

use super::cell::CellResult;
use crate::record::EvidenceLevel;
use crate::stats::{ENOUGH_PAIRS, LEAST_MARGIN, Paired, Place, judge_pairs};

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

/// The fastest setting that fits, and how sure that is: the runner-up's time a token over its own, in pairs of
/// interleaved runs.
pub fn answer(cells: &[CellResult], flags: &[String], capacity: Option<i64>) -> Answer {
    let mut ranked: Vec<&CellResult> =
        cells.iter().filter(|cell| cell.is_measured() && cell.fits != Some(false)).collect();
    ranked.sort_by(|a, b| speed(b).total_cmp(&speed(a)));
    let Some(best) = ranked.first() else { return none_fits(cells, flags, capacity) };
    let rival = ranked.get(1);
    let pairs = rival.and_then(|rival| judged(best, rival));
    // A comparison is worth what its weaker side is.
    let strong = |cell: &&CellResult| cell.evidence == Some(EvidenceLevel::RepeatedBenchmark);
    let weaker = rival.copied().filter(|rival| !strong(rival)).unwrap_or(best);
    Answer {
        best: Some(best.cell),
        runner_up: rival.map(|rival| rival.cell),
        sentences: [
            take(best, flags, ranked.len(), cells.len(), capacity),
            rival.map_or_else(|| alone(cells, capacity), |rival| against(best, rival, pairs.as_ref(), flags)),
        ],
        evidence: weaker.evidence.unwrap_or(EvidenceLevel::SmokeTest),
        why: weaker.why.clone().unwrap_or_default(),
    }
}

/// Tokens a second; where tokens are not counted, steps.
fn speed(cell: &CellResult) -> f64 {
    cell.tokens_per_s.or_else(|| cell.step_ms.map(|ms| 1e3 / ms)).unwrap_or(0.0)
}

/// The rival's time over the best's, by pairs of the same repeat.
fn judged(best: &CellResult, rival: &CellResult) -> Option<Paired> {
    let of_repeat = |repeat: usize| best.log_token_ns.iter().find(|(known, _)| *known == repeat);
    let differences: Vec<f64> =
        rival.log_token_ns.iter().filter_map(|(repeat, log)| Some(log - of_repeat(*repeat)?.1)).collect();
    judge_pairs(&differences, LEAST_MARGIN.ln_1p())
}

fn take(best: &CellResult, flags: &[String], fit: usize, all: usize, capacity: Option<i64>) -> String {
    let rate = match (best.tokens_per_s, best.step_ms) {
        (Some(rate), _) => format!("{rate:.0} tokens/s"),
        (None, Some(ms)) => format!("{ms:.2} ms a step"),
        (None, None) => String::new(),
    };
    let peak = best.peak_bytes.map(|bytes| format!(" at a peak of {}", mib(bytes))).unwrap_or_default();
    let among = match capacity {
        Some(capacity) => format!("the fastest of the {fit} settings (of {all}) that fit {}", mib(capacity)),
        None => format!("the fastest of the {fit} settings measured"),
    };
    let among =
        if fit == 1 { among.replace("fastest of the 1 settings", "only one of the settings") } else { among };
    format!("Take {}: {rate}{peak}, {among}.", best.named(flags))
}

fn against(best: &CellResult, rival: &CellResult, pairs: Option<&Paired>, flags: &[String]) -> String {
    let name = rival.named(flags);
    let capital = || name[..1].to_uppercase() + &name[1..];
    let memory = saves(best, rival);
    let Some(Paired { place, interval, pairs_needed }) = pairs else {
        return format!(
            "Next comes {name}, {:.1} % slower{memory}; one run each is no proof of that: use --repeats {ENOUGH_PAIRS}.",
            100.0 * (speed(best) / speed(rival) - 1.0)
        );
    };
    let pct = |log: f64| 100.0 * log.exp_m1();
    let range = format!("{:+.1} to {:+.1} %", pct(interval.low), pct(interval.high));
    match place {
        Place::Above => {
            format!(
                "Next comes {name}, whose tokens take {:.1} % longer ({range}){memory}.",
                pct(interval.mean)
            )
        }
        Place::Within | Place::Below => {
            format!("{} is as fast within 1 % ({range}){memory}: take either.", capital())
        }
        Place::Across => {
            let more = pairs_needed.map(|pairs| format!(", which some {pairs} repeats would decide"));
            let more = more.unwrap_or_default();
            format!("{} cannot be told from it by {} repeats ({range}{more}){memory}.", capital(), interval.n)
        }
    }
}

/// What the rival's peak is lower by, where it is.
fn saves(best: &CellResult, rival: &CellResult) -> String {
    match (best.peak_bytes, rival.peak_bytes) {
        (Some(best), Some(rival)) if rival < best => {
            format!(" and peaks {} lower", mib(best - rival))
        }
        (Some(best), Some(rival)) if rival > best => {
            format!(" and peaks {} higher", mib(rival - best))
        }
        _ => String::new(),
    }
}

fn alone(cells: &[CellResult], capacity: Option<i64>) -> String {
    match (cells.len(), capacity) {
        (1, _) => "It is the only setting of the grid; give a flag several values to compare.".to_owned(),
        (_, Some(_)) => "No other setting of the grid fits.".to_owned(),
        (_, None) => "No other setting of the grid has been measured.".to_owned(),
    }
}

fn none_fits(cells: &[CellResult], flags: &[String], capacity: Option<i64>) -> Answer {
    let least = cells.iter().filter(|cell| cell.peak_bytes.is_some()).min_by_key(|cell| cell.peak_bytes);
    let measured = cells.iter().any(CellResult::is_measured);
    let sentences = match (capacity, least) {
        (Some(capacity), Some(least)) if measured => [
            format!("None of the {} settings fits {}.", cells.len(), mib(capacity)),
            format!(
                "The least is {}, at a peak of {}: allow that much, or take smaller batches or more recomputation.",
                least.named(flags),
                mib(least.peak_bytes.unwrap_or_default())
            ),
        ],
        (Some(capacity), _) => [
            format!("None of the {} settings came to a measured step within {}.", cells.len(), mib(capacity)),
            "Allow more memory, or take smaller batches or more recomputation; `stepledger plan` says what fits."
                .to_owned(),
        ],
        (None, _) => [
            format!("None of the {} settings came to a measured step.", cells.len()),
            "The reasons are in the table.".to_owned(),
        ],
    };
    let why = "nothing was measured that could be taken".to_owned();
    Answer { best: None, runner_up: None, sentences, evidence: EvidenceLevel::SmokeTest, why }
}

fn mib(bytes: i64) -> String {
    let mib = bytes as f64 / f64::from(1 << 20);
    if mib < 10.0 { format!("{mib:.2} MiB") } else { format!("{mib:.1} MiB") }
}

#[cfg(test)]
mod tests {
    use super::super::result::made_up::cell;
    use super::*;

    const MIB: i64 = 1 << 20;

    fn of(cells: &[CellResult], capacity: Option<i64>) -> Answer {
        answer(cells, &["batch".to_owned(), "checkpoint".to_owned()], capacity)
    }

    #[test]
    fn the_fastest_that_fits_is_taken_and_the_next_is_told() {
        let too_much = CellResult { fits: Some(false), ..cell(16, "none", 2000.0, 90 * MIB, 0.1) };
        let cells = [too_much, cell(8, "none", 1000.0, 50 * MIB, 0.1), cell(8, "full", 900.0, 30 * MIB, 0.1)];
        let told = of(&cells, Some(64 * MIB)).sentences;
        assert_eq!(
            told[0],
            "Take batch 8, checkpoint none: 1000 tokens/s at a peak of 50.0 MiB, the fastest of the 2 settings \
             (of 3) that fit 64.0 MiB."
        );
        assert_eq!(
            told[1],
            "Next comes batch 8, checkpoint full, whose tokens take 11.1 % longer (+11.1 to +11.1 %) and peaks \
             20.0 MiB lower."
        );
    }

    #[test]
    fn a_difference_within_the_noise_is_called_that() {
        let mut rival = cell(8, "full", 995.0, 30 * MIB, 0.0);
        rival
            .log_token_ns
            .iter_mut()
            .zip([-0.04, 0.05, 0.01, -0.02, 0.03])
            .for_each(|((_, log), d)| *log += d);
        let told = of(&[cell(8, "none", 1000.0, 50 * MIB, 0.0), rival], None);
        assert!(told.sentences[1].contains("cannot be told from it by 5 repeats"), "{:?}", told.sentences);
        let same = of(&[cell(8, "none", 1000.0, 50, 0.1), cell(4, "none", 999.0, 50, 0.1)], None);
        assert!(same.sentences[1].contains("as fast within 1 %"), "{:?}", same.sentences);
    }

    #[test]
    fn where_nothing_fits_the_least_is_named() {
        let cells = [CellResult { fits: Some(false), ..cell(8, "full", 900.0, 30 * MIB, 0.1) }];
        let told = of(&cells, Some(16 * MIB));
        assert_eq!((told.best, told.evidence), (None, EvidenceLevel::SmokeTest));
        assert!(
            told.sentences[1].contains("batch 8, checkpoint full, at a peak of 30.0 MiB"),
            "{:?}",
            told.sentences
        );
    }
}
